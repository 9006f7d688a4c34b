"""Reading with Spark: a compacted pool of lineitem, natively and by the data source, beside plain Parquet.

Each line is a Spark of its own on two cores that runs the query once to warm up, and then once more (`seconds`).
`three`: three columns aggregated; `all`: all columns to a sink that drops them.  `newer`: a hundredth of newer
loads over the pool, a delete by range and one by condition.  Ratios are by records a second.  SPARK_SCALE: of
TPC-H.  Iceberg and Delta, whose jars come from Maven, are not measured.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks import data
from benchmarks.measure import Measure, run, timed

SCALE = float(os.environ.get("SPARK_SCALE", "2"))
"""Of TPC-H: 6 million records each."""

LOADS = 10
"""Newer loads over the pool, together a hundredth of its records."""

WAYS = ("Parquet", "native", "data source")
QUERIES = ("three", "all")


def make(path: str) -> dict[str, Any]:
    """A pool of lineitem as the loads and compactions of a day leave it."""
    from lake_core.agents.compact.run import compact_pool, plan_pool
    from lake_core.lake import Lake

    lake = Lake.create(path)
    branch = lake.create_pool("lineitem", key=data.KEY).branch()
    with timed() as answer:
        for file in data.lineitem(SCALE):
            branch.load([file])
        compact_pool(lake, "lineitem", plan_pool(lake, "lineitem", now=time.time()))
    view = lake.pool("lineitem").at()
    return answer | {"records": view.records, "note": f"{len(view.references)} objects, depth {view.depth}"}


def add_newer(path: str) -> dict[str, Any]:
    """A hundredth of the records once more, in several loads; a delete by range and one by condition."""
    from lake_core.lake import Lake

    pool = Lake.open(path).pool("lineitem")
    view = pool.at()
    newer = pa.concat_tables(t.take(pa.array(range(0, t.num_rows, 100))) for t in view.scan())
    with timed() as answer:
        for first in range(LOADS):
            pool.branch().append(newer.take(pa.array(range(first, newer.num_rows, LOADS))))
        pool.branch().delete(key_range=view.key_range(low="1995-03-01", high="1995-03-05"))
        pool.branch().delete(where="l_quantity = 7 and l_discount = 0.1")
    return answer | {"records": view.records}


def read(way: str, query: str, path: str) -> dict[str, Any]:
    """One query over the pool, read one way."""
    from spark_apps.session import spark_session

    with spark_session("benchmark") as spark:
        frame = _frame(spark, way, path)
        _run(frame, query)
        with timed() as answer:
            note = _run(frame, query)
        records = frame.count()
    return answer | {"records": records, "note": note}


def _frame(spark: Any, way: str, path: str) -> Any:
    if way == "Parquet":
        return spark.read.parquet(*(f"file://{Path(file).resolve()}" for file in data.lineitem(SCALE)))
    if way == "native":
        import pyspark_lake

        return pyspark_lake.read(spark, "lineitem", lake=path)
    return spark.read.format("lake").option("lake", path).load("lineitem")


def _run(frame: Any, query: str) -> str:
    if query == "all":
        frame.write.format("noop").mode("overwrite").save()
        return ""
    totals = frame.groupBy("l_returnflag").agg({"l_quantity": "sum", "l_extendedprice": "sum"}).collect()
    return f"{sum(row[1] for row in totals):.0f}"


def measures() -> Iterator[Measure]:
    """Every way for every query, on the compacted pool, then with newer loads and deletes over it."""
    path = data.fresh("spark")
    run("make", "benchmarks.spark:make", path)
    for query in QUERIES:
        for way in WAYS:
            yield run(f"{way}, {query}", "benchmarks.spark:read", way, query, path)
    run("newer", "benchmarks.spark:add_newer", path)
    for way in ("native", "data source"):
        yield run(f"{way}, three, newer", "benchmarks.spark:read", way, "three", path)
