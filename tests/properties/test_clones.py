"""A clone holds what its source held at the revision, whatever is done to any pool afterwards."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lake_core.ids import IdSource
from log_lake.agents.checkpoint.run import purge_pool, write_checkpoint
from log_lake.agents.compact.run import compact_pool, plan_pool
from log_lake.agents.retention.run import retain
from log_lake.agents.tombstones.run import apply
from log_lake.erasure.run import erase
from log_lake.lake import Lake
from log_lake.repair.fsck import Fsck
from log_lake.stores.memory import MemoryStore
from log_lake.vacuum.dropped import delete_dropped, plan_dropped
from tests.support.clocks import Clock

PLACES = st.integers(0, 5)
STEPS = st.one_of(
    st.tuples(st.just("load"), PLACES, st.lists(st.integers(0, 9), min_size=1, max_size=4)),
    st.tuples(st.just("delete"), PLACES, st.integers(0, 9)),
    st.tuples(st.just("clone"), PLACES, st.none()),
    st.tuples(st.just("compact"), PLACES, st.none()),
    st.tuples(st.just("upkeep"), PLACES, st.none()),
    st.tuples(st.just("upkeep"), PLACES, st.none()),
    st.tuples(st.just("erase"), PLACES, st.integers(0, 9)),
    st.tuples(st.just("tag"), PLACES, st.none()),
    st.tuples(st.just("drop"), PLACES, st.none()),
)
"""`upkeep` is all that agents do: it merges, applies deletes, lets go, deletes and purges at once."""


@dataclass
class World:
    """A lake whose pools begin with `p`; `rows` is what each pool holds, as pairs of a key and a number."""

    kind: str
    inline: str
    clock: Clock = field(default_factory=Clock)
    rows: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    tagged: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    number: int = 0

    def __post_init__(self) -> None:
        self.store = MemoryStore("memory://clones", clock=self.clock)
        self.lake = self.opened()
        options = {"vacuum.grace": "0s", "history.keep": "0s", "load.inline": self.inline}
        self.lake.create_pool("p", key="k", kind=self.kind, settings=options)
        self.rows["p"] = []
        self.change("load", "p", [1, 2, 3])

    def opened(self) -> Lake:
        ids = IdSource(clock=self.clock)
        if self.store.get("lake.json") is None:
            return Lake.create_on(self.store, ids=ids, author="test")
        return Lake.open_on(self.store, ids=ids, author="other")

    def change(self, what: str, name: str, how: Any) -> None:
        """One step on a pool, and on what the model says that it holds."""
        self.clock.now += 1
        lake, pool, rows = self.lake, self.lake.pool(name), self.rows[name]
        match what:
            case "load":
                new = [(key, self.number + at) for at, key in enumerate(how)]
                self.number += len(how)
                if self.kind == "upsert":
                    new = list(dict(new).items())
                    rows[:] = [row for row in rows if row[0] not in dict(new)]
                pool.branch().append(pa.Table.from_pylist([{"k": k, "n": n} for k, n in new]))
                rows += new
            case "delete":
                pool.branch().delete(where=f"k = {how}")
                rows[:] = [row for row in rows if row[0] != how]
            case "clone" if len(self.rows) < 5:
                new_name = f"c{self.number}-{len(self.rows)}-{int(self.clock.now) % 1000}"
                lake.clone(name, new_name)
                self.rows[new_name] = list(rows)
            case "compact":
                compact_pool(lake, name, plan_pool(lake, name, strategy="full", now=self.clock.now))
            case "upkeep":
                compact_pool(lake, name, plan_pool(lake, name, strategy="full", now=self.clock.now))
                apply(pool.branch(), now=self.clock.now, at_once=True)
                retain(lake, name)
                delete_dropped(lake, plan_dropped(lake, grace=0.0))
                write_checkpoint(lake, name, now=self.clock.now)
                purge_pool(lake, name, keep=0.0, now=self.clock.now)
            case "erase":
                receipt = erase(pool, where=f"k = {how}", grace=0.0)
                rows[:] = [row for row in rows if row[0] != how]
                clones = [one for one in lake.pools() if one.clone and pool.config.id in one.homes]
                tagged = name in self.tagged
                assert receipt.status == "done" or clones or tagged or lake.dropped_pools(), receipt.held
            case "tag" if name not in self.tagged:
                pool.tag("kept")
                self.tagged[name] = list(rows)
            case "drop" if len(self.rows) > 1:
                lake.drop_pool(name)
                del self.rows[name]
                self.tagged.pop(name, None)
            case _:
                pass

    def check(self) -> None:
        """All pools, and their tags, hold what the model says, to this process and to another one."""
        for lake in (self.lake, self.opened()):
            for name, rows in self.rows.items():
                found = lake.pool(name).at().to_table().to_pylist()
                assert sorted((row["k"], row["n"]) for row in found) == sorted(rows), name
            for name, rows in self.tagged.items():
                found = lake.pool(name).at("kept").to_table().to_pylist()
                assert sorted((row["k"], row["n"]) for row in found) == sorted(rows), name


@pytest.mark.parametrize("kind", ["append", "upsert"])
@pytest.mark.parametrize("inline", ["0", "100kB"], ids=["objects", "inlined"])
@settings(max_examples=6)
@given(steps=st.lists(STEPS, min_size=10, max_size=16))
def test_a_clone_holds_what_its_source_held(kind: str, inline: str, steps: list[Any]) -> None:
    world = World(kind, inline)
    for what, place, how in steps:
        names = sorted(world.rows)
        world.change(what, names[place % len(names)], how)
        world.check()
    faults = [one for one in Fsck(world.lake.context, older_than=0.0).run() if one.severity == "damage"]
    assert faults == []
    for name in sorted(world.rows):  # what clones need of the others ends with them
        world.lake.drop_pool(name)
    for _ in range(len(world.rows) + 4):
        world.clock.now += 1
        delete_dropped(world.lake, plan_dropped(world.lake, grace=0.0))
    assert world.lake.dropped_pools() == []
    assert [info.name for info in world.store.list("") if "/data/" in info.name] == []
