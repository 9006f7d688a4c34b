"""Kinds of stored things of a clone whose objects have content sums; `stored_kinds` has all others."""

from __future__ import annotations

import pyarrow as pa

from lake_core.store import Store
from log_lake.agents.compact.run import compact_pool, plan_pool
from log_lake.lake import Lake
from tests.support.mutations import flipped
from tests.support.stored_kinds import CheckpointRows, Kind, actions_of, entry, one, pool, pools
from tests.support.stored_things import OTHERS, World

SUMS = {"content.sums": "on"}


def build_clone(store: Store) -> World:
    """A lake whose pool `a` is a clone; it refers to objects of its source, and has a compaction of its own."""
    lake = Lake.create_on(store)
    for name in OTHERS:
        lake.create_pool(name, key="k").branch().append(pa.table({"k": [1, 2, 3]}))
    source = lake.create_pool("source", key="k", settings=SUMS)
    for n in range(3):
        source.branch().append(pa.table({"k": [n, n + 1], "v": [f"x{n}", None]}))
    a = lake.clone("source", "a")
    a.branch().append(pa.table({"k": [4, 5], "v": ["y", None]}))
    a.branch().delete(where="k = 1")
    compact_pool(lake, "a", plan_pool(lake, "a", strategy="full", now=lake.context.now()))
    a.create_branch("dev")
    a.branch("dev").append(pa.table({"k": [50], "v": ["z"]}))
    a.tag("kept", at="main")
    return World(store, a.config.id)


def folded(world: World) -> World:
    """The lake with the first checkpoint of the clone alone: readers fold its entries."""
    _first, *others = sorted(world.names_like(CHECKPOINT))
    return world.changed(dict.fromkeys(others, None))


ENTRIES = "{a}/journal/0*.txn"
CHECKPOINT = "{a}/journal/marks/*.checkpoint"

SUMMED = actions_of("add_object", "put_summed", "conserve")

CLONE_KINDS = {
    "clones, entries": Kind(ENTRIES, entry, pool, of=folded),
    "clones, entries, damaged": Kind(ENTRIES, one(flipped), pool, exact=True, of=folded),
    "clones, sums": Kind(ENTRIES, SUMMED, pool, of=folded),
    "clones, checkpoints": Kind(CHECKPOINT, CheckpointRows(), pool),
    "clones, list of pools": Kind("pools/0*.txn", entry, pools, alone=False),
}
