"""An index object dies with its data object, its rule, or an erasure; nothing else takes it for anything."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa
import pytest

from lake_core import naming
from lake_core.ids import IdSource
from log_lake.agents.compact.run import compact_pool, plan_pool
from log_lake.agents.retention.report import retention_lines
from log_lake.agents.retention.run import plan, retain
from log_lake.erasure.run import erase
from log_lake.erasure.verify import verify
from log_lake.indexes.names import index_name, list_indexes
from log_lake.indexes.rule import parse_rule
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.repair.fsck import Fsck
from log_lake.repair.rebuild_objects import read_candidates
from log_lake.stores.memory import MemoryStore
from log_lake.vacuum.execute import vacuum
from log_lake.vacuum.orphans import scan_orphans
from tests.support.clocks import DAY, Clock

RULE = parse_rule("index.who", "bloom(who)")


@dataclass
class World:
    """A pool with a rule, on a store whose clock stands still until a test moves it."""

    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self.store = MemoryStore("memory://indexes", clock=self.clock)
        self.lake = Lake.create_on(self.store, ids=IdSource(clock=self.clock), author="test")
        self.lake.create_pool(
            "p", key="k", settings={"load.inline": "0", "history.keep": "1d", RULE.setting: str(RULE)}
        )

    @property
    def pool(self) -> Pool:
        return self.lake.pool("p")

    def load(self, *names: str, pool: str = "p", branch: str = "main") -> None:
        keys = list(range(len(names)))
        self.lake.pool(pool).branch(branch).append(pa.table({"k": keys, "who": list(names)}))
        self.clock.now += 1

    def compact(self) -> None:
        compact_pool(self.lake, "p", plan_pool(self.lake, "p", strategy="full", now=self.clock.now))
        self.clock.now += 1

    def indexed(self) -> set[str]:
        """The data objects that have an index."""
        return {one.object_id for one in list_indexes(self.store, self.pool.config.id)}

    def objects(self) -> set[str]:
        """The data objects on the store."""
        names = (naming.data_id(info.name) for info in self.store.list(self.pool.config.id))
        return {name for name in names if name}

    def left_out(self, name: str, *, pool: str = "p", at: str = "main") -> int:
        """How many references an index rules out of a scan."""
        return self.lake.pool(pool).at(at).plan(where=f"who = '{name}'").left_out.by_index

    def findings(self) -> list[str]:
        return [one.kind for one in Fsck(self.lake.context, older_than=0).run()]


def test_loads_and_compactions_make_indexes_and_a_vacuum_deletes_them() -> None:
    world = World()
    world.load("ada", "zoe")
    world.load("aaa", "zoe")
    assert len(world.indexed()) == 2
    assert world.indexed() == world.objects()
    assert world.left_out("ada") == 1
    world.compact()
    assert len(world.indexed()) == 3
    world.clock.now += 10 * DAY
    vacuum(world.pool)
    assert world.indexed() == world.objects() == {r.object for r in world.pool.at().references}
    assert world.left_out("bea") == 1
    assert world.pool.at().to_table(where="who = 'bea'").num_rows == 0


def test_what_lies_in_the_journal_and_rejected_records_have_no_index() -> None:
    world = World()
    world.lake.configure_pool("p", {"load.inline": "64KiB"})
    world.load("ada")
    assert not world.indexed()
    assert world.pool.at().to_table(where="who = 'ada'").num_rows == 1


def test_a_scan_takes_the_indexes_of_writers_that_died() -> None:
    world = World()
    world.load("ada", "zoe")
    (live,) = world.indexed()
    dead = world.lake.context.ids.new()
    world.store.create(index_name(world.pool.config.id, dead, RULE.digest), b"index")
    scan_orphans(world.pool)
    vacuum(world.pool)
    assert world.indexed() == {live, dead}  # its writer may be about to commit
    world.clock.now += 30 * DAY
    world.load("aaa")
    world.clock.now += 1
    scan_orphans(world.pool)
    vacuum(world.pool)
    assert dead not in world.indexed()
    assert live in world.indexed()


def test_a_dropped_rule_and_a_changed_one() -> None:
    world = World()
    world.load("ada", "zoe")
    world.lake.configure_pool("p", {RULE.setting: "bloom(k)"})
    assert world.left_out("bea") == 0
    vacuum(world.pool)
    assert not world.indexed()
    world.lake.configure_pool("p", {RULE.setting: ""})
    world.load("aaa")
    assert not world.indexed()


def test_the_agent_retention_finds_the_indexes_of_a_dropped_rule_in_an_idle_pool() -> None:
    world = World()
    world.load("ada", "zoe")
    assert plan(world.lake, "p").idle
    world.lake.configure_pool("p", {RULE.setting: ""})
    work = plan(world.lake, "p")
    assert list(retention_lines("p", work)) == ["p: delete 1 unused index"]
    retain(world.lake, "p")
    assert not world.indexed()
    assert plan(world.lake, "p").idle


def test_fsck_names_damaged_and_foreign_indexes_and_no_others() -> None:
    world = World()
    world.load("ada", "zoe")
    world.load("aaa", "zoe")
    assert world.findings() == []
    first, second = sorted(one.info.name for one in list_indexes(world.store, world.pool.config.id))
    data = world.store.get(first) or b""
    world.store.put(first, data[:-1] + bytes([data[-1] ^ 1]))
    world.store.put(second, data)
    assert world.findings() == ["index_damaged", "index_damaged"]
    candidates, _ = read_candidates(world.store, world.pool.config.id, lambda what, count: None)
    assert {one.object for one in candidates} == world.objects()


def test_an_erasure_leaves_no_index_of_an_erased_record() -> None:
    world = World()
    world.load("ada", "zoe")
    world.load("aaa", "zoe")
    before = world.indexed()
    leftover = index_name(world.pool.config.id, world.lake.context.ids.new(), RULE.digest)
    world.store.create(leftover, b"who = ada")
    world.clock.now += 1
    receipt = erase(world.pool, where="who = 'ada'")
    assert receipt.status == "done"
    assert world.store.get(leftover) is None
    assert len(before - world.indexed()) == 1
    assert not world.pool.at().plan(where="who = 'ada'").references
    assert list(verify(world.pool, receipt)) == []
    world.store.create(leftover, b"who = ada")
    assert [line for line in verify(world.pool, receipt) if leftover in line]


def test_branches_and_clones_read_the_indexes_of_their_objects() -> None:
    world = World()
    world.load("ada", "zoe")
    world.load("aaa", "zoe")
    world.pool.create_branch("work")
    assert world.left_out("bea", at="work") == 2
    world.lake.clone("p", "c")
    world.clock.now += 1
    assert world.left_out("bea", pool="c") == 2
    assert not list(list_indexes(world.store, world.lake.pool("c").config.id))
    world.lake.drop_pool("c")


@pytest.mark.parametrize("text", ["bloom", "bloom()", "hash(who)", "bloom(who", "values"])
def test_a_rule_that_is_none_is_refused(text: str) -> None:
    from lake_core.errors import InvalidInput

    with pytest.raises(InvalidInput, match="bloom"):
        World().lake.configure_pool("p", {"index.x": text})
    with pytest.raises(InvalidInput, match="1 to 64"):
        World().lake.configure_pool("p", {"index.a.b": "bloom(who)"})
