"""Index rules: a lookup by a field that is not the key, and what a rule costs loads and compaction.

Twelve million records in 64 objects, sorted by time; the field `id` has a random text for each record, so
statistics rule nothing out.  `LAKE_BENCH_SHARE=0.25` takes a quarter of the records, for a look at a busy machine.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks import data
from benchmarks.measure import Measure, least, run, timed

OBJECTS = 64
EACH = int(12_000_000 * float(os.environ.get("LAKE_BENCH_SHARE", "1"))) // OBJECTS
HERE = "benchmarks.rules"
RULE = {"index.id": "bloom(id)"}


def table(number: int, step: int = 1) -> pa.Table:
    """The records of one load; with a step above 1 their keys lie between those of other loads."""
    rows = np.arange(EACH, dtype=np.int64)
    chance = np.random.default_rng(number)
    ids = chance.integers(0, 2**63, EACH, dtype=np.int64)
    return pa.table(
        {
            "ts": rows * step + (number if step > 1 else number * EACH),
            "id": pa.array([f"{one:016x}" for one in ids.tolist()]),
            "amount": chance.integers(1, 100_000, EACH) / 100,
            "dest": pa.array(np.array(["ATL", "JFK", "LAX", "ORD", "SFO"])[ids % 5]),
            "delay": (ids % 240).astype(np.int32),
            "distance": (ids % 2_589).astype(np.int32),
            "air_time": chance.integers(20, 700, EACH, dtype=np.int32),
            "scheduled": chance.integers(0, 10**9, EACH).astype("datetime64[s]"),
            "departed": chance.integers(0, 10**9, EACH).astype("datetime64[s]"),
            "fare": chance.integers(1, 10**7, EACH) / 100,
            "weight": chance.random(EACH),
            "tail": pa.array([f"N{one % 9_973}" for one in ids.tolist()]),
            "note": pa.array([f"gate {one % 97}, seat {one % 211}" for one in ids.tolist()]),
        }
    )


def known_id(number: int) -> str:
    """The id of a record of a load."""
    return str(table(number)["id"][EACH // 2])


def build(path: str, rule: str) -> dict[str, Any]:
    """Loads all objects; only the loads are timed."""
    from log_lake.lake import Lake

    pool = Lake.create(path).create_pool("p", key="ts", settings=RULE if rule else {})
    seconds = processor = 0.0
    for number in range(OBJECTS):
        records = table(number)
        with timed() as answer:
            pool.branch().append(records)
        seconds, processor = seconds + answer["seconds"], processor + answer["processor"]
    size, index = _bytes(path)
    note = f"{size / 1e6:,.0f} MB of objects, {index / 1e6:,.1f} MB of indexes ({100 * index / size:.1f} %)"
    return {"seconds": seconds, "processor": processor, "records": OBJECTS * EACH, "note": note}


def merge(path: str, rule: str) -> dict[str, Any]:
    """Compacts eight objects whose keys lie among each other."""
    from log_lake.lake import Lake
    from log_lake.rewriting.compaction import compact

    pool = Lake.create(path).create_pool("p", key="ts", settings=RULE if rule else {})
    for number in range(8):
        pool.branch().append(table(number, step=8))
    references = pool.at().references
    with timed() as answer:
        compact(pool.branch(), tuple(references))
    return answer | {"records": 8 * EACH}


def _bytes(path: str) -> tuple[int, int]:
    """The bytes of data objects and of index objects."""
    sizes = {True: 0, False: 0}
    for one in Path(path).rglob("*"):
        if one.is_file() and "/data/" in str(one):
            sizes["/data/index/" in str(one)] += one.stat().st_size
    return sizes[False], sizes[True]


def look_up(path: str, id: str) -> dict[str, Any]:
    """The record of an id, by a view that is open."""
    from log_lake.lake import Lake

    view = Lake.open(path).pool("p").at()
    where = f"id = '{id}'"
    plan = view.plan(where=where)
    answer = least(lambda: view.to_table(where=where), 3)
    note = f"{answer['seconds'] * 1000:.1f} ms, {len(plan.references)} of {OBJECTS} objects read"
    return answer | {"records": OBJECTS * EACH, "note": note}


def plan(path: str, id: str) -> dict[str, Any]:
    """Only the planning: asking the indexes."""
    from log_lake.lake import Lake

    view = Lake.open(path).pool("p").at()
    answer = least(lambda: view.plan(where=f"id = '{id}'"), 3)
    return answer | {"records": OBJECTS * EACH, "note": f"{answer['seconds'] * 1000:.1f} ms"}


def duckdb_look_up(path: str, id: str) -> dict[str, Any]:
    """DuckDB over the same Parquet files, which it lists itself."""
    import duckdb

    files = f"{path}/*/data/*.parquet"
    with duckdb.connect() as connection:
        answer = least(lambda: connection.execute(f"SELECT * FROM '{files}' WHERE id = '{id}'").fetchall(), 3)
    return answer | {"records": OBJECTS * EACH, "note": f"{answer['seconds'] * 1000:.1f} ms"}


def measures() -> Iterator[Measure]:
    """Loads, a compaction and lookups, with a rule and without."""
    plain, ruled = data.fresh("plain"), data.fresh("ruled")
    yield run("load", f"{HERE}:build", plain, "")
    yield run("load, with a rule", f"{HERE}:build", ruled, "1")
    yield run("compaction", f"{HERE}:merge", data.fresh("merged"), "")
    yield run("compaction, with a rule", f"{HERE}:merge", data.fresh("merged-ruled"), "1")
    for name, id in (("there", known_id(33)), ("not there", "4000000000000000")):
        yield run(f"lookup, {name}", f"{HERE}:look_up", plain, id)
        yield run(f"lookup, {name}, with a rule", f"{HERE}:look_up", ruled, id)
        yield run(f"planning, {name}, with a rule", f"{HERE}:plan", ruled, id)
        yield run(f"lookup, {name}, DuckDB on the same files", f"{HERE}:duckdb_look_up", plain, id)
