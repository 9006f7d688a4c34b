"""What follows, rebuilds and publishes a pool finds the records of inlined objects too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lake_core import naming
from lake_core.errors import InvalidInput
from lake_core.ids import IdSource
from lake_core.journal.purge import write_newest
from log_lake.agents.compact.publication import publish
from log_lake.agents.compact.run import compact_pool, plan_pool
from log_lake.lake import Lake
from log_lake.lake.feed import read_object
from log_lake.objects.located import Located
from log_lake.publish.run import publish_iceberg
from log_lake.repair.fsck import Fsck
from log_lake.repair.rebuild import Wanted, plan_rebuild, rebuild
from log_lake.stores.memory import MemoryStore
from tests.support.clocks import Clock

SETTINGS = {"load.inline": "64KiB"}


def keys_of(pool: Any) -> list[int]:
    return sorted(pool.at().to_table()["k"].to_pylist())


def test_a_feed_reads_the_objects_of_each_transaction() -> None:
    lake = Lake.create_on(MemoryStore())
    pool = lake.create_pool("p", key="k", settings=SETTINGS)
    for number in range(3):
        pool.branch().append(pa.table({"k": [number, number + 10]}))
    pool.create_branch("dev")
    pool.branch("dev").append(pa.table({"k": [100]}))
    pool.branch().merge("dev")
    found = []
    for _, action in pool.feed().between(0, pool.feed().newest()):
        tables = read_object(
            pool.store,
            pool_id=pool.config.id,
            located=Located.of(action),
            key=pool.config.key,
            columns=["k"],
        )
        found += [row["k"] for table in tables for row in table.to_pylist()]
    assert found == [0, 10, 1, 11, 2, 12, 100]


@pytest.mark.parametrize("kind", ["append", "upsert"])
def test_a_rebuild_takes_what_is_left_of_the_journal(kind: str) -> None:
    """One entry is damaged, and its load is compacted; another is damaged, and lies in a checkpoint."""
    store, clock = MemoryStore(), Clock()
    lake = Lake.create_on(store, ids=IdSource(clock=clock))
    pool = lake.create_pool("p", key="k", kind=kind, settings=SETTINGS)

    def load(*keys: int) -> None:
        clock.now += 1
        pool.branch().append(pa.table({"k": list(keys), "n": [clock.now] * len(keys)}))

    load(1, 2)
    load(2, 3)
    compact_pool(lake, "p", plan_pool(lake, "p", strategy="full", now=clock.now))
    load(3, 4)
    write_newest(pool.history.journal, new_id=lake.context.ids.new, now=clock.now)
    load(5)
    before = pool.at().to_table().to_pylist()
    journal = naming.pool_journal(pool.config.id)
    for version in (1, 4):
        store.put(naming.entry(journal, version), b"damaged")
    lake = Lake.open_on(store, ids=IdSource(clock=clock))
    plan = plan_rebuild(lake, "p", Wanted(name="new"))
    rebuild(lake, plan)
    new = lake.pool("new")
    assert new.at().to_table().to_pylist() == before
    assert not any(reference.data for reference in new.at().references)
    assert list(Fsck(lake.context, pools=["new"], data=True).run()) == []


def test_a_publication_writes_inlined_objects_as_files_first(tmp_path: Path) -> None:
    pytest.importorskip("pyiceberg")
    lake = Lake.create(str(tmp_path / "lake"))
    pool = lake.create_pool("p", key="k", settings=SETTINGS)
    for number in range(3):
        pool.branch().append(pa.table({"k": [number, number + 10]}))
    with pytest.raises(InvalidInput, match="3 objects in the journal"):
        publish_iceberg(pool)
    done = publish(pool, branch="main")
    assert (done.outcome, done.records) == ("published", 6)
    assert keys_of(pool) == [0, 1, 2, 10, 11, 12]
    assert publish(pool, branch="main").outcome == "unchanged"
    pool.branch().append(pa.table({"k": [20]}))
    assert publish(pool, branch="main").records == 7
