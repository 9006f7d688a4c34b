"""The work on Spark that is the same for every format: queries, reads of single records, small frames.

Both Sparks run it, ours and the one of Iceberg and Delta, so nothing of the lake is imported.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from typing import Any

from benchmarks.measure import least

KEY = ("l_shipdate", "l_orderkey", "l_linenumber")
DELETE_RANGE = "l_shipdate >= date'1995-03-01' and l_shipdate < date'1995-03-05'"
DELETE_WHERE = "l_quantity = 7 and l_discount = 0.1"

TIMES = 3
"""How often a query is run in a warm session; the shortest counts."""

WARM_UPS = 10
"""How many small appends precede those that are measured. The first ones take twice as long, until Java has
compiled their code."""

APPENDED = 1000
"""How many records a small append has."""


def input_of(spark: Any, files: str) -> Any:
    """Returns the frame of Parquet files; their paths are given as JSON."""
    return spark.read.parquet(*(f"file://{file}" for file in json.loads(files)))


def measured(frame: Any, query: str) -> dict[str, Any]:
    """Measures one query over a frame, in a warm session. The note is its answer, so that answers can be
    compared."""
    note = run_query(frame, query)
    return {**least(lambda: run_query(frame, query), TIMES), "records": frame.count(), "note": note}


def run_query(frame: Any, query: str) -> str:
    """Runs a query: `three` aggregates three columns; `all` sends all columns to a sink that drops them."""
    if query == "all":
        frame.write.format("noop").mode("overwrite").save()
        return ""
    totals = frame.groupBy("l_returnflag").agg({"l_quantity": "sum", "l_extendedprice": "sum"}).collect()
    return f"{sum(row[1] for row in totals):.0f}"


def looked_up(look: Callable[[list[Any]], int], keys: str) -> dict[str, Any]:
    """The median time of reading single records by their keys, which are JSON. The first three reads only
    warm up."""
    taken = []
    wanted = json.loads(keys)
    for key in [*wanted[:3], *wanted]:
        begun = time.perf_counter()
        found = look(key)
        taken.append(time.perf_counter() - begun)
        assert found == 1, f"{key}: {found} records"
    one = statistics.median(taken[3:])
    return {"seconds": one, "records": 1, "note": f"{one * 1000:.0f} ms"}


def condition(key: list[Any]) -> str:
    """Returns the condition that only one record fulfils."""
    day, order, line = key
    return f"l_shipdate = date'{day}' and l_orderkey = {order} and l_linenumber = {line}"


def appended(append: Callable[[Any], object], spark: Any, files: str, appends: str) -> dict[str, Any]:
    """Appends a small frame `appends` times from memory, after some appends that warm up.

    `records` are appends. The note compares the last ten with the first ten.
    """
    frame = input_of(spark, files).limit(APPENDED).coalesce(1).cache()
    assert frame.count() == APPENDED
    taken = []
    for _ in range(WARM_UPS + int(appends)):
        begun = time.perf_counter()
        append(frame)
        taken.append(time.perf_counter() - begun)
    taken = taken[WARM_UPS:]
    slower = statistics.median(taken[-10:]) / statistics.median(taken[:10])
    return {
        "seconds": sum(taken),
        "records": len(taken),
        "note": f"median {statistics.median(taken) * 1000:.0f} ms, last 10 / first 10: {slower:.2f}",
    }
