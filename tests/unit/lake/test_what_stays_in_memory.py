"""A lake that was used and let go leaves nothing in memory: the web view and workers open lakes for days."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable

import pyarrow as pa
import pytest

from lake_core import naming
from lake_core.checkpoints import CheckpointFile
from lake_core.errors import CheckpointDamaged
from lake_core.history import History
from lake_core.journal import Journal
from log_lake.agents.checkpoint.run import write_checkpoint
from log_lake.agents.compact.run import compact_pool, plan_pool
from log_lake.erasure.run import erase
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.objects.read import DataObject
from log_lake.repair.fsck import Fsck
from log_lake.stores.memory import MemoryStore
from log_lake.system_tables import query
from log_lake.view.overview import Overview
from tests.support.damage import turn_a_bit

URI = "memory://stays"

USES: dict[str, Callable[[Lake], object]] = {
    "a scan": lambda lake: lake.pool("p").at().to_table(),
    "a scan that is given up": lambda lake: next(lake.pool("p").at().scan()),
    "a get": lambda lake: lake.pool("p").at().get(3),
    "a condition": lambda lake: lake.pool("p").at().to_table(where="v = 'x1'"),
    "an older version": lambda lake: lake.pool("p").at_version(2).to_table(),
    "SQL": lambda lake: query(lake, "SELECT count(*) FROM p").read_all(),
    "the log": lambda lake: list(lake.pool("p").log()),
    "an append": lambda lake: lake.pool("p").branch().append(pa.table({"k": [9]})),
    "a delete": lambda lake: lake.pool("p").branch().delete(where="v = 'x2'"),
    "a compaction": lambda lake: compact_pool(lake, "p", plan_pool(lake, "p", strategy="full", now=0.0)),
    "a checkpoint": lambda lake: write_checkpoint(lake, "p", now=lake.context.now()),
    "an erasure": lambda lake: erase(lake.pool("p"), where="k = 3", grace=0.0),
    "fsck": lambda lake: list(Fsck(lake.context, data=True).run()),
    "the web view": lambda lake: Overview(lake.context.now).table(lake),
}


def build() -> MemoryStore:
    """A pool with a checkpoint, objects that overlap, and a tombstone with a condition."""
    store = MemoryStore(URI)
    lake = Lake.create_on(store)
    pool = lake.create_pool("p", key="k")
    for n in range(4):
        pool.branch().append(pa.table({"k": [n, n + 1], "v": [f"x{n}", None]}))
    pool.branch().delete(where="k = 2 and v = 'x2'")
    write_checkpoint(lake, "p", now=lake.context.now())
    return store


def in_memory() -> Counter[str]:
    """What is open or kept of lakes."""
    gc.collect()
    kinds = (Lake, Pool, History, Journal, CheckpointFile, DataObject)
    return Counter(type(one).__name__ for one in gc.get_objects() if isinstance(one, kinds))


@pytest.mark.parametrize("use", USES)
def test_a_lake_that_is_let_go_leaves_nothing_in_memory(use: str) -> None:
    store = build()
    USES[use](Lake.open_on(store))  # what is imported, or kept once
    before = in_memory()
    for _ in range(3):
        USES[use](Lake.open_on(store))
    assert in_memory() == before


def test_a_state_that_was_folded_again_leaves_nothing_in_memory() -> None:
    store = build()
    (name,) = [info.name for info in store.list("") if info.name.endswith(".checkpoint")]
    turn_a_bit(store, name)
    before = in_memory()
    for _ in range(3):
        assert Lake.open_on(store).pool("p").at().to_table().num_rows == 7
    assert in_memory() == before


def test_a_state_is_not_folded_again_from_another_entry_than_that_of_its_checkpoint() -> None:
    store = MemoryStore(URI)
    lake = Lake.create_on(store)
    pool = lake.create_pool("p", key="k")
    for n in range(3):
        pool.branch().append(pa.table({"k": [n], "v": ["sound"]}))
    write_checkpoint(lake, "p", now=lake.context.now())
    (name,) = [info.name for info in store.list("") if info.name.endswith(".checkpoint")]
    turn_a_bit(store, name)
    checkpoint = store.get(name) or b""
    store.delete(name)
    store.delete(naming.entry(pool.history.journal.name, 3))
    Lake.open_on(store).pool("p").branch().append(pa.table({"k": [2], "v": ["in its place"]}))
    store.put(name, checkpoint)
    with pytest.raises(CheckpointDamaged):
        Lake.open_on(store).pool("p").at().to_table()
