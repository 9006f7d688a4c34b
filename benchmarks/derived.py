"""A derived hourly sum: one more load of 1,000 records, a delete of an hour, and all of it computed anew.

`LAKE_BENCH_SHARE=0.1` takes a tenth of the records, for a look at a busy machine.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks import data
from benchmarks.measure import Measure, run, timed

RECORDS = int(12_000_000 * float(os.environ.get("LAKE_BENCH_SHARE", "1")))
LOADS, HOURS = 24, 24 * 30
HERE = "benchmarks.derived"
SQL = "SELECT date_trunc('hour', ts) AS hour, count(*) AS n, sum(v) AS s FROM p GROUP BY hour"


def build(path: str) -> dict[str, Any]:
    """The source: a month of records, in loads of a part of the month each."""
    from log_lake.lake import Lake

    lake = Lake.create(path)
    pool = lake.create_pool("p", key="ts", settings={"load.inline": "0"})
    part = RECORDS // LOADS
    with timed() as answer:
        for number in range(LOADS):
            pool.branch().append(_records(number * part, part))
    return answer | {"records": RECORDS}


def _records(first: int, count: int, *, step: float = 1.0) -> Any:
    import numpy as np
    import pyarrow as pa

    places = first + np.arange(count) * step
    micros = (places * (HOURS * 3_600_000_000 / RECORDS)).astype("int64") + 1_767_225_600_000_000
    return pa.table(
        {
            "ts": pa.array(micros, pa.timestamp("us")),
            "v": pa.array((places * 7919).astype("int64") % 1000),
            "text": pa.array([f"record {n % 10_000}" for n in range(count)]),
        }
    )


def compute(path: str) -> dict[str, Any]:
    """The whole answer, as when the pool is made."""
    from log_lake.derived.create import derive
    from log_lake.lake import Lake

    lake = Lake.open(path)
    with timed() as answer:
        done = derive(lake, "hourly", source="p", query=SQL).step
    return answer | {"records": RECORDS, "note": f"{done.records:,} groups"}


def append(path: str) -> dict[str, Any]:
    """A load of 1,000 records of three hours."""
    return _kept(
        path, lambda pool: pool.branch().append(_records(RECORDS // 2, 1_000, step=RECORDS / HOURS / 400))
    )


def scattered(path: str) -> dict[str, Any]:
    """A load of 1,000 records of all hours."""
    return _kept(path, lambda pool: pool.branch().append(_records(0, 1_000, step=RECORDS / 1_000)))


def delete(path: str) -> dict[str, Any]:
    """The delete of an hour."""

    def hour(pool: Any) -> None:
        pool.branch().delete(where="ts >= '2026-01-10T05:00' AND ts < '2026-01-10T06:00'")

    return _kept(path, hour)


def _kept(path: str, change: Callable[[Any], object]) -> dict[str, Any]:
    """One step after a change, in a process that has the pools open."""
    from lake_core.phrases import counted, human_size
    from lake_core.store.meter import meter_of
    from log_lake.derived.step import keep
    from log_lake.lake import Lake

    lake = Lake.open(path)
    pool = lake.pool("hourly")
    keep(lake, pool)
    change(lake.pool("p"))
    before = meter_of(lake.store).counts()
    with timed() as answer:
        done = keep(lake, pool)
    read = meter_of(lake.store).counts() - before
    note = (
        f"{counted(done.groups or 0, 'group')}, {counted(read.reads, 'read')} of {human_size(read.received)}"
    )
    return answer | {"records": RECORDS, "note": note}


def measures() -> Iterator[Measure]:
    """`records` are those of the source."""
    path = data.fresh("derived")
    yield run("load the source", f"{HERE}:build", path)
    yield run("all groups", f"{HERE}:compute", path)
    yield run("a load of 1,000 records, 3 hours", f"{HERE}:append", path)
    yield run("a load of 1,000 records, all hours", f"{HERE}:scattered", path)
    yield run("a delete of an hour", f"{HERE}:delete", path)
