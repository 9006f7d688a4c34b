"""Bulk imports on Spark, beside Spark's own read, range sort and write of plain Parquet, Iceberg and Delta.

Every line is a session of its own on two cores, and the same lineitem records, in the order of another key.  A
write of a few records comes first, to warm up.  `points`: the pool has split points before.  `empty`: the import
sets them.  Iceberg writes a table with an order, Delta a frame that is partitioned by range and sorted; both on
Spark 4.1 (`benchmarks.spark_peers`).

RANGES_SCALE: of TPC-H, 6 million records each.  RANGES: how many ranges.  SPARK_DRIVER_MEMORY: of every session.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks import data
from benchmarks import spark_work as work
from benchmarks.measure import Measure, run, timed
from benchmarks.spark import PACKAGES, PEERS
from tests.support.spark import spark41

SCALE = float(os.environ.get("RANGES_SCALE", "2"))
RANGES = os.environ.get("RANGES", "16")
OWN = "benchmarks.ranges_spark"
POOL = "lineitem"


def measures() -> Iterator[Measure]:
    """Yields the line of plain Parquet first, to which the ratios of the others are."""
    os.environ.setdefault("SPARK_DRIVER_MEMORY", "4g")
    files = json.dumps([str(Path(file).resolve()) for file in data.lineitem(SCALE)])
    plain = run(
        f"Parquet, {RANGES} ranges, sorted", f"{OWN}:plain", data.fresh("ranges-plain"), files, RANGES
    )
    yield replace(plain, begins=True)
    for way in ("points", "empty"):
        path = data.fresh(f"ranges-{way}")
        yield run(f"bulk import, {way}", f"{OWN}:imported", way, path, files, RANGES)
        data.clear()
    python = str(spark41.spark41())
    for peer, package in PACKAGES.items():
        folder = data.fresh(f"ranges-{peer}")
        yield run(f"{peer}, sorted", f"{PEERS}:write", peer, package, folder, files, python=python)
        data.clear()


def plain(folder: str, files: str, ranges: str) -> dict[str, Any]:
    """Writes all records by Spark alone, as sorted Parquet files, one for each range."""
    from spark_apps.session import spark_session

    with spark_session("benchmark") as spark:
        frame = work.input_of(spark, files)
        for name, records in (("warm", frame.limit(work.APPENDED)), (POOL, frame)):
            with timed() as answer:
                ordered = records.repartitionByRange(int(ranges), *work.KEY).sortWithinPartitions(*work.KEY)
                ordered.write.option("compression", "zstd").parquet(f"{folder}/{name}")
        count = frame.count()
    written = list(Path(folder, POOL).glob("*.parquet"))
    return answer | {"records": count, "note": f"{len(written)} files, {_bytes(written)} bytes"}


def imported(way: str, path: str, files: str, ranges: str) -> dict[str, Any]:
    """Imports all records into a new pool."""
    import pyspark_lake
    from log_lake.lake import Lake
    from spark_apps.session import spark_session

    lake = Lake.create(path)
    with spark_session("benchmark") as spark:
        frame = work.input_of(spark, files)
        for name, records in (("warm", frame.limit(work.APPENDED)), (POOL, frame)):
            pool = lake.create_pool(name, key=",".join(work.KEY), settings={"type.l_shipdate": "date"})
            if way == "points":
                pool.split(at=_points(frame, int(ranges)))
            asked = None if way == "points" else int(ranges)
            with timed() as answer:
                pyspark_lake.write(records, name, lake=path, bulk=True, ranges=asked)
    pool = lake.pool(POOL)
    view = pool.at()
    assert view.depth == 1
    return answer | {
        "records": view.records,
        "note": f"{len(pool.ranges())} ranges, {len(view.references)} objects, depth {view.depth}, "
        f"{sum(r.size for r in view.references)} bytes",
    }


def _points(frame: Any, ranges: int) -> list[str]:
    """Returns the first days of ranges that have about equal numbers of records."""
    days = frame.groupBy(work.KEY[0]).count().orderBy(work.KEY[0]).collect()
    share, seen, points = sum(row[1] for row in days) / ranges, 0, list[str]()
    for row in days:
        if seen >= share * (len(points) + 1):
            points.append(str(row[0]))
        seen += row[1]
    return points[: ranges - 1]


def _bytes(files: list[Path]) -> int:
    return sum(file.stat().st_size for file in files)
