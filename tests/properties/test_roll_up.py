"""A pool with roll_up holds what a pool without it holds if its records are rounded before they are loaded.

Over kinds and formats, and over loads of one process and bulk imports of many.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from random import Random

import pyarrow as pa
import pytest

from log_lake.lake import Lake
from log_lake.lake.bulk import Divider, whole
from log_lake.lake.pool import Pool
from log_lake.lake.results import PendingLoad
from log_lake.rewriting.compaction import compact
from log_lake.stores.memory import MemoryStore
from log_lake.workers import Here, exchange
from tests.properties.test_bulk_imports import TableBulk
from tests.support.workers import Shuffling

GRAINS = {"1m": 60, "15m": 900, "1h": 3600, "1d": 86_400}
START = dt.datetime(1969, 12, 31, tzinfo=dt.UTC)


def a_table(chance: Random) -> pa.Table:
    count = chance.randrange(1, 30)
    times = [
        None if chance.random() < 0.1 else START + dt.timedelta(seconds=chance.randrange(300_000))
        for _ in range(count)
    ]
    return pa.table(
        {
            "k": pa.array([chance.randrange(3) for _ in range(count)]),
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "n": pa.array([chance.randrange(100) for _ in range(count)]),
        }
    )


def rounded(table: pa.Table, seconds: int) -> pa.Table:
    times = [
        None
        if time is None
        else dt.datetime.fromtimestamp(int(time.timestamp()) // seconds * seconds, dt.UTC)
        for time in table.column("ts").to_pylist()
    ]
    return table.set_column(1, "ts", pa.array(times, pa.timestamp("us", "UTC")))


def imported(pool: Pool, tables: list[pa.Table]) -> None:
    """Imports the tables by several workers."""
    branch = pool.branch()
    pending = branch.begin_load(bulk=True)
    assert isinstance(pending, PendingLoad)
    pending = replace(pending, memory=1000)
    divider = Divider(branch, pending, workers=3, ranges=None)
    workers = Shuffling(Here.of(pool.context).worker)
    built = exchange(workers, TableBulk(pool.config, pending), [tables], divide=divider, bounds=divider.known)
    written = whole(built)
    divider.split()
    branch.commit(pending, objects=[w.action for w in written], schemas=[w.schema for w in written])


@pytest.mark.parametrize("seed", range(30))
def test_a_roll_up_is_as_if_the_records_had_been_rounded_before(seed: int) -> None:
    chance = Random(seed)
    kind, grain = chance.choice(["append", "upsert", "aggregate"]), chance.choice(list(GRAINS))
    key = chance.choice(["ts", "ts,k", "k,ts", "k"])
    format = chance.choice(["parquet", "zng", "zst"]) if kind == "aggregate" else "parquet"
    pools = []
    for own in ({"roll_up": f"ts:{grain}"}, {}):
        aggregates = {"n": "sum"} if kind == "aggregate" else None
        settings = {"format": format, "load.memory": "1kB", **own}
        lake = Lake.create_on(MemoryStore())
        pools.append(lake.create_pool("p", key=key, kind=kind, aggregates=aggregates, settings=settings))
    for _ in range(3):
        tables = [a_table(chance) for _ in range(2)]
        is_bulk, is_compacted = chance.random() < 0.5, chance.random() < 0.3
        for pool, given in zip(
            pools, (tables, [rounded(table, GRAINS[grain]) for table in tables]), strict=True
        ):
            if is_bulk:
                imported(pool, given)
            else:
                for table in given:
                    pool.branch().append(table)
            if is_compacted and pool.at().references:
                compact(pool.branch(), pool.at().references)
    found, expected = (pool.at().to_table().to_pylist() for pool in pools)
    assert list(map(repr, found)) == list(map(repr, expected))
