"""Clusters: lookups by the field that divides records, and by key beside it; what a rule costs loads.

Records are sorted by time; `user` has 20,000 values, which recur at all times.  Each load has 250,000 records of
some sixty bytes.  `LAKE_BENCH_SHARE=0.25` takes a quarter of the loads.  Requests and bytes are those of the store.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.measure import Measure, least, run, timed

LOADS = max(1, int(8 * float(os.environ.get("LAKE_BENCH_SHARE", "1"))))
EACH = 250_000
USERS = 20_000
HERE = "benchmarks.clusters"
RULES = {"no clusters": "", "8 objects": "user:8", "32 objects": "user:32"}


def table(number: int) -> pa.Table:
    """The records of one load."""
    chance = np.random.default_rng(number)
    users = chance.integers(0, USERS, EACH)
    return pa.table(
        {
            "ts": np.arange(EACH, dtype=np.int64) + number * EACH,
            "user": pa.array([f"user-{one * 7_919 % 1_000_003:07}" for one in users.tolist()]),
            "page": pa.array([f"/shelf/{one % 997}/{one % 31}" for one in users.tolist()]),
            "amount": chance.integers(1, 10**7, EACH) / 100,
            "took": chance.integers(1, 90_000, EACH, dtype=np.int32),
        }
    )


def build(path: str, rule: str) -> dict[str, Any]:
    """Loads all records; only the loads are timed."""
    from log_lake.lake import Lake

    settings = {"cluster.by": RULES[rule], "cluster.least": "64KiB"}
    pool = Lake.create(path).create_pool("p", key="ts", settings=settings)
    seconds = processor = 0.0
    for number in range(LOADS):
        records = table(number)
        with timed() as answer:
            pool.branch().append(records)
        seconds, processor = seconds + answer["seconds"], processor + answer["processor"]
    size = pool.at().snapshot.totals().size
    note = f"{len(pool.at().references)} objects, {size / 1e6:,.1f} MB"
    return {"seconds": seconds, "processor": processor, "records": LOADS * EACH, "note": note}


def merge(path: str, rule: str) -> dict[str, Any]:
    """Compacts four objects whose keys lie among each other, and which are not divided yet."""
    from log_lake.lake import Lake
    from log_lake.rewriting.compaction import compact

    lake = Lake.create(path)
    pool = lake.create_pool("p", key="ts")
    for number in range(4):
        records = table(number)
        pool.branch().append(records.set_column(0, "ts", pa.array(np.arange(EACH) * 4 + number)))
    if RULES[rule]:
        lake.configure_pool("p", {"cluster.by": RULES[rule], "cluster.least": "64KiB"})
    pool = lake.pool("p")
    with timed() as answer:
        done = compact(pool.branch(), tuple(pool.at().references))
    return answer | {"records": 4 * EACH, "note": f"{done.objects} objects, {done.size_out / 1e6:,.1f} MB"}


def look_up(path: str, by: str) -> dict[str, Any]:
    """The records of a user, or of a key, by a view that is open."""
    from lake_core.store.meter import meter_of
    from log_lake.lake import Lake

    view = Lake.open(path).pool("p").at()
    user = table(0)["user"][0].as_py()
    where = f"user = '{user}'" if by == "user" else f"ts = {EACH // 2}"
    plan, meter = view.plan(where=where), meter_of(view.store)
    before = meter.counts()
    view.to_table(where=where)
    spent = meter.counts() - before
    answer = least(lambda: view.to_table(where=where), 3)
    asked = f"{spent.requests} requests, {spent.received / 1e6:.2f} MB"
    return answer | {"records": LOADS * EACH, "note": f"{len(plan.references)} objects, {asked}"}


def measures() -> Iterator[Measure]:
    """Yields the measures of each rule."""
    with TemporaryDirectory() as folder:
        for number, rule in enumerate(RULES):
            path = f"{folder}/{number}"
            yield run(f"load, {rule}", f"{HERE}:build", path, rule)
            for by in ("user", "key"):
                yield run(f"lookup by {by}, {rule}", f"{HERE}:look_up", path, by)
            yield run(f"compaction, {rule}", f"{HERE}:merge", f"{path}-merged", rule)
