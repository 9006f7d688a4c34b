"""A pool made anew from its data objects holds what the objects hold: each record once, whatever is damaged.

A random history of loads and compactions, some of them never committed, some of several outputs; then the journal
goes, and any objects are damaged or deleted.  Each record has a number of its own, so "what the sound objects hold"
is a set of numbers, read from the files without the lake.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lake_core import naming
from lake_core.history import Reference
from lake_core.ids import IdSource
from lake_core.keys.ranges import EVERYTHING
from log_lake.agents.tombstones import run as tombstones
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.objects.read import DataObject
from log_lake.repair.finding import DAMAGE
from log_lake.repair.fsck import Fsck
from log_lake.repair.rebuild import RebuildPlan, Wanted, plan_rebuild, rebuild
from log_lake.rewriting.compaction import begin_compaction, compact
from log_lake.rewriting.work import write_piece
from log_lake.stores.guard import GuardedStore
from log_lake.stores.memory import MemoryStore
from log_lake.workers import Worker
from tests.support.rewrites import committed as commit_now

START = 1_800_000_000.0


@dataclass
class World:
    """A lake in memory; each id is made in a second of its own."""

    kind: str
    chance: random.Random
    store: MemoryStore = field(init=False)
    now: float = START
    next: int = 0

    def __post_init__(self) -> None:
        self.store = MemoryStore("memory://rebuild", clock=self.clock)
        self.lake = Lake.create_on(self.store, ids=IdSource(clock=self.clock), author="test")
        aggregates = {"v": "sum"} if self.kind == "aggregate" else {}
        self.pool = self.lake.create_pool("p", key="k", kind=self.kind, aggregates=aggregates)

    def clock(self) -> float:
        self.now += 1.0
        return self.now

    def load(self, count: int) -> None:
        """Records with a few keys, each with a number of its own."""
        ids = range(self.next, self.next + count)
        self.next += count
        keys = [self.chance.randrange(12) for _ in ids]
        self.pool.branch().append(pa.table({"k": keys, "id": list(ids), "v": [1] * count}))

    def some(self) -> list[Reference]:
        held = self.pool.at().references
        return self.chance.sample(held, self.chance.randint(1, len(held)))

    def compact(self, *, outputs: int, committed: bool) -> None:
        """Merge some references; all, if it matters which load is newer: a load left out has no sequence."""
        if not self.pool.at().references:
            return
        chosen = self.some() if self.kind == "append" else self.pool.at().references
        branch = self.pool.branch()
        work = begin_compaction(branch, chosen, outputs=outputs, message="")
        new_id = self.lake.context.ids.new
        written = [write_piece(work, Worker(lambda: self.store, new_id), n) for n in range(len(work.pieces))]
        if committed:
            commit_now(branch, work, written)

    def objects(self) -> list[str]:
        return [i.name for i in self.store.list(f"{self.pool.config.id}/data")]

    def forget_the_journal(self) -> None:
        for info in list(self.store.list(naming.pool_journal(self.pool.config.id))):
            self.store.delete(info.name)

    def damage(self, name: str) -> None:
        """Cut it, turn a bit of its data, or delete it."""
        data = bytearray(self.store.get(name) or b"")
        how = self.chance.randrange(3)
        if how == 0:
            self.store.delete(name)
        elif how == 1:
            self.store.put(name, bytes(data[: self.chance.randrange(len(data))]))
        else:
            self.turn_a_bit(name)

    def turn_a_bit(self, name: str) -> None:
        """In the data, where the footer tells what was there."""
        data = bytearray(self.store.get(name) or b"")
        data[self.chance.randrange(4, 40)] ^= 1
        self.store.put(name, bytes(data))

    def numbers_in_sound_objects(self, only: tuple[str, ...] | None = None) -> set[int]:
        found: set[int] = set()
        for name in self.objects():
            id = name.rpartition("/")[2].removesuffix(".parquet")
            if only is not None and id not in only:
                continue
            try:
                with DataObject(GuardedStore(self.store), pool_id=self.pool.config.id, object_id=id) as data:
                    data.check_bytes()
                    batches = data.batches(EVERYTHING, key=self.pool.config.key, columns=None)
                    found |= {n for batch in batches for n in batch.column("id").to_pylist()}
            except Exception:  # whatever the damage, its records are gone
                continue
        return found

    def rebuilt(self) -> Pool:
        rebuild(self.lake, plan_rebuild(self.lake, "p", Wanted()), guess=True)
        return Lake.open_on(self.store, ids=IdSource(clock=self.clock)).pool("p")


STEPS = st.lists(
    st.sampled_from(["load", "load", "load", "compact", "compact in pieces", "never committed"]),
    min_size=1,
    max_size=9,
)


def run(world: World, steps: list[str]) -> None:
    world.load(5)
    for step in steps:
        if step == "load":
            world.load(world.chance.randint(1, 8))
        else:
            outputs = 3 if step == "compact in pieces" else 1
            world.compact(outputs=outputs, committed=step != "never committed")


LONG = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.parametrize("kind", ["append", "upsert", "aggregate"])
@given(steps=STEPS, seed=st.integers(0, 2**32))
@settings(max_examples=30, deadline=None)
def test_without_its_journal_a_pool_reads_as_before(kind: str, steps: list[str], seed: int) -> None:
    world = World(kind, random.Random(seed))
    run(world, steps)
    before = world.pool.at().to_table()
    world.forget_the_journal()
    assert not plan_rebuild(world.lake, "p", Wanted()).unordered, "nothing is gone"
    pool = world.rebuilt()
    after = pool.at().to_table()
    if kind == "append":  # records of equal keys may have another order
        assert Counter(after["id"].to_pylist()) == Counter(before["id"].to_pylist())
    else:
        assert after == before
    pool.branch().append(pa.table({"k": [3], "id": [-1], "v": [1]}))
    table = pool.at().to_table().to_pylist()
    assert -1 in [r["id"] for r in table], "what is written later is the newest"
    assert [f for f in Fsck(world.lake.context, data=True).run() if f.severity == DAMAGE] == []


def rebuilt_after(world: World) -> tuple[Counter[int], set[int], RebuildPlan]:
    """The numbers in the pool that is made anew, those in sound objects that count, and the plan."""
    world.forget_the_journal()
    expected = world.numbers_in_sound_objects()
    plan = plan_rebuild(world.lake, "p", Wanted())
    left_out = world.numbers_in_sound_objects(plan.void)
    pool = world.rebuilt()
    table = pool.at().to_table()
    found = Counter(table["id"].to_pylist() if table.num_rows else [])
    assert set(found) <= expected
    assert pool.at().records == found.total()
    assert [f for f in Fsck(world.lake.context, ["p"], data=True).run() if f.severity == DAMAGE] == []
    # a compaction that another one overtook may hold the only copy of what it had merged beside
    return found, expected - (left_out - set(found)), plan


@given(steps=STEPS, seed=st.integers(0, 2**32), share=st.sampled_from([0.2, 0.5, 0.8]))
@LONG
def test_each_record_of_a_sound_object_is_back_once_if_pages_are_damaged(
    steps: list[str], seed: int, share: float
) -> None:
    world = World("append", random.Random(seed))
    run(world, steps)
    for name in world.objects():
        if world.chance.random() < share:
            world.turn_a_bit(name)
    found, expected, plan = rebuilt_after(world)
    assert found == Counter(expected)
    assert not plan.guessed


@given(steps=STEPS, seed=st.integers(0, 2**32), share=st.sampled_from([0.2, 0.5, 0.8]))
@LONG
def test_if_objects_are_cut_or_gone_each_record_is_back_once_or_the_plan_says_that_it_guessed(
    steps: list[str], seed: int, share: float
) -> None:
    world = World("append", random.Random(seed))
    run(world, steps)
    for name in world.objects():
        if world.chance.random() < share:
            world.damage(name)
    if not world.numbers_in_sound_objects():
        return
    found, expected, plan = rebuilt_after(world)
    if not plan.guessed:
        assert found == Counter(expected)


@pytest.mark.parametrize("kind", ["append", "upsert"])
@given(steps=STEPS, seed=st.integers(0, 2**32))
@settings(max_examples=25, deadline=None)
def test_deletes_that_were_applied_stay_deletes(kind: str, steps: list[str], seed: int) -> None:
    world = World(kind, random.Random(seed))
    run(world, steps)
    branch = world.pool.branch()
    branch.delete(where=f"k >= {world.chance.randrange(13)} and k <= {world.chance.randrange(13)}")
    branch.delete(where=f"id < {world.chance.randrange(10)}")
    held = world.pool.at().references
    if len(held) > 0:
        compact(branch, held)
    expected = world.pool.at().to_table()
    world.forget_the_journal()
    if not expected.num_rows:
        return  # no output tells that all records went
    after = world.rebuilt().at().to_table()
    assert Counter(after["id"].to_pylist()) == Counter(expected["id"].to_pylist())


def test_the_agent_that_removes_deleted_records_is_understood_too() -> None:
    world = World("append", random.Random(1))
    world.load(20)
    world.load(20)
    world.pool.branch().delete(where="id >= 15 and id < 25")
    tombstones.apply(world.pool.branch(), now=world.clock(), at_once=True)
    expected = Counter(world.pool.at().to_table()["id"].to_pylist())
    world.forget_the_journal()
    assert Counter(world.rebuilt().at().to_table()["id"].to_pylist()) == expected
