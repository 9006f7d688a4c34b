"""Expiry removes records and changes none: no older version of a record comes back, whatever kind the pool has.

A pool gets loads, deletes and compactions of references chosen at random.  Then something expires.  What is left
must have been there before, record for record.  What is gone must have been old.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from itertools import count
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from lake_core.errors import Conflict
from lake_core.history import Reference
from lake_core.history.revealing import must_stay
from lake_core.ids import IdSource
from lake_core.keys.encoding import encode_value
from log_lake.agents.retention.expire import expire
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.rewriting.compaction import compact
from log_lake.stores.memory import MemoryStore
from tests.support.clocks import Clock

KINDS = ("append", "upsert", "aggregate")
AGE = 1000.0


class World:
    """A pool in memory; `n` of each record is unique, `t` is its time, `at` when it was loaded."""

    def __init__(self, kind: str) -> None:
        self.clock = Clock()
        self.numbers = count(1)
        self.store = MemoryStore(f"memory://expiry-{id(self)}", clock=self.clock)
        self.lake = Lake.create_on(self.store, ids=IdSource(clock=self.clock))
        self.lake.create_pool(
            "p", key="k", kind=kind, aggregates={"n": "sum"} if kind == "aggregate" else None
        )

    @property
    def pool(self) -> Pool:
        return self.lake.pool("p")

    def load(self, keys: list[int], ages: list[int]) -> None:
        self.pool.branch().append(
            pa.table(
                {
                    "k": keys,
                    "n": [next(self.numbers) for _ in keys],
                    "t": [self.clock.now - ages[i % len(ages)] for i in range(len(keys))],
                    "at": [self.clock.now] * len(keys),
                }
            )
        )
        self.clock.now += 10

    def compact(self, chosen: list[int]) -> None:
        references = self.pool.at().references
        inputs = [references[i % len(references)] for i in chosen] if references else []
        with suppress(Conflict):  # an aggregate pool refuses some choices
            if inputs:
                compact(self.pool.branch(), list(dict.fromkeys(inputs)))

    def records(self) -> Counter[tuple[tuple[str, Any], ...]]:
        return Counter(tuple(record.items()) for record in self.pool.at().to_table().to_pylist())


KEYS = st.lists(st.integers(0, 2), min_size=1, max_size=3)
LOAD = st.tuples(st.just("load"), KEYS, st.lists(st.sampled_from((0, 600, 3000)), min_size=1, max_size=3))
WAIT = st.tuples(st.just("wait"), st.sampled_from((300, 600)), st.just(0))
COMPACT = st.tuples(
    st.just("compact"), st.sets(st.integers(0, 4), min_size=2, max_size=3).map(list), st.just([0])
)
DELETE = st.tuples(st.just("delete"), st.integers(0, 2), st.integers(0, 2))
STEPS = st.tuples(
    st.lists(st.one_of(LOAD, LOAD, LOAD, WAIT), min_size=3, max_size=7),
    st.lists(st.one_of(COMPACT, COMPACT, DELETE), max_size=3),
    st.lists(st.one_of(LOAD, WAIT, COMPACT), max_size=3),
).map(lambda parts: [*parts[0], *parts[1], *parts[2]])
POLICIES = st.sampled_from(
    [
        {"expire.age": f"{AGE:.0f}s"},
        {"expire.age": f"{AGE:.0f}s", "expire.by": "t"},
        {"expire.records": "3"},
        {"expire.bytes": "2000"},
        {"expire.age": f"{AGE:.0f}s", "expire.by": "t", "expire.records": "4"},
    ]
)


def grown(kind: str, steps: list[Any]) -> World:
    world = World(kind)
    for step, one, other in steps:
        if step == "load":
            world.load(one, other)
        elif step == "compact":
            world.compact(one)
        elif step == "delete":
            where = f"k >= {min(one, other)} and k < {max(one, other) + 1}"
            world.pool.branch().delete(where=where)
        else:
            world.clock.now += float(one)
    return world


@settings(max_examples=120, deadline=None)
@given(kind=st.sampled_from(KINDS), steps=STEPS, policy=POLICIES)
def test_what_is_left_was_there_before(kind: str, steps: list[Any], policy: dict[str, str]) -> None:
    world = grown(kind, steps)
    if kind == "aggregate" and "expire.by" in policy:
        policy = {**policy, "expire.by": "k"}
    world.lake.catalog.configure("p", policy)
    before = world.records()
    stored = world.pool.at().records
    done = expire(world.pool)
    after = world.records()
    assert not after - before
    if list(policy) == ["expire.records"] and kind == "append":
        assert world.pool.at().records >= min(3, stored)
    if policy == {"expire.age": f"{AGE:.0f}s"}:
        assert all(world.clock.now - dict(r)["at"] >= AGE for r in before - after)
    if "t" in policy.values() and "expire.records" not in policy and kind != "aggregate":
        assert all(world.clock.now - dict(r)["t"] > AGE for r in before - after)
        assert all(world.clock.now - dict(r)["t"] <= AGE for r in after)
    assert (done.version is None) == (not done.objects and not done.deleted)
    assert expire(world.pool).objects == 0, "a second run finds nothing more"
    world.compact(list(range(9)))
    assert world.records() == after


@settings(max_examples=200, deadline=None)
@given(
    kind=st.sampled_from(("upsert", "aggregate")),
    references=st.lists(
        st.tuples(st.integers(0, 9), st.integers(1, 5), st.integers(1, 9), st.integers(0, 4), st.booleans()),
        max_size=14,
    ),
)
def test_what_must_stay_is_the_smallest_set_that_hides_nothing_of_the_rest(
    kind: str, references: list[tuple[int, int, int, int, bool]]
) -> None:
    leaving, staying = [], []
    for number, (low, width, seq, mixed, leaves) in enumerate(references):
        reference = Reference(
            object=f"{number:027d}",
            low=encode_value(low),
            high=encode_value(low + width),
            seq=seq,
            ordinal=0,
            records=1,
            size=1,
            schema="",
            oldest=max(1, seq - mixed) if mixed else None,
        )
        (leaving if leaves else staying).append(reference)
    kept, going = list(staying), list(leaving)

    def hides(one: Reference, other: Reference) -> bool:
        return (
            one.low < other.high
            and other.low < one.high
            and (kind == "aggregate" or other.first_seq <= one.seq)
        )

    while blocked := [r for r in going if any(hides(r, other) for other in kept)]:
        kept += blocked
        going = [r for r in going if r not in blocked]
    stays = must_stay(leaving, staying, kind=kind)
    assert sorted(r.object for r in stays) == sorted(r.object for r in leaving if r not in going)
    assert must_stay(leaving, staying, kind="append") == []
