"""The web view's answers: a thousand pools at a glance, and the geometry of pools of many references.

`records` are pools in the first lines, and references in the others.  The lake is on local files.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from benchmarks import data
from benchmarks.measure import Measure, run, timed

POOLS, LOADS = 1_000, 3
SIZES = (2_000, 100_000)


def build(path: str) -> dict[str, Any]:
    """Makes the pools, by three loads each."""
    from log_lake.lake import Lake

    lake = Lake.create(path)
    for number in range(POOLS):
        branch = lake.create_pool(f"pool-{number:04d}", key="k").branch()
        for load in range(LOADS):
            branch.append(pa.table({"k": [load, load + 10]}))
    return {"seconds": 0.0, "records": POOLS}


def glance(path: str, visit: str) -> dict[str, Any]:
    """Measures the table of all pools as JSON, in one of three visits: the first, one after no pool has changed,
    and one after every tenth pool has changed."""
    import msgspec

    from log_lake.lake import Lake
    from log_lake.view.overview import Overview

    clock = [0.0]
    lake, overview = Lake.open(path), Overview(lambda: clock[0])
    if visit != "first":
        overview.table(lake)
        clock[0] += 60
    if visit == "moved":
        writer = Lake.open(path)
        for number in range(0, POOLS, 10):
            writer.pool(f"pool-{number:04d}").branch().append(pa.table({"k": [5]}))
    with timed() as answer:
        table = msgspec.json.encode(overview.table(lake))
    return answer | {"records": POOLS, "note": f"{len(table):,} bytes"}


def geometry(path: str, references: str) -> dict[str, Any]:
    """Measures the geometry of a pool of this many references as JSON, in a process that has opened nothing
    yet."""
    import msgspec

    from log_lake.lake import Lake
    from log_lake.view.layout import Layouts

    layouts = Layouts()
    with timed() as answer:
        lake = Lake.open(path)
        layout = layouts.layout(lake, "p")
        size = len(msgspec.json.encode(layout))
    begun = time.perf_counter()
    msgspec.json.encode(layouts.layout(lake, "p"))
    again = time.perf_counter() - begun
    kind = type(layout.geometry).__name__.lower()
    return answer | {
        "records": int(references),
        "note": f"{kind}, {size:,} bytes; again {again * 1000:.1f} ms",
    }


def measures() -> Iterator[Measure]:
    """Yields the lines of the table of all pools, then those of the geometry of one."""
    here = "benchmarks.view"
    path = data.fresh("pools")
    run("build", f"{here}:build", path)
    for visit in ("first", "again", "moved"):
        yield run(f"{POOLS:,} pools, {visit}", f"{here}:glance", path, visit, times=3)
    for size in SIZES:
        path = data.fresh(f"references-{size}")
        run("build", "benchmarks.opening:build", path, str(size))
        yield run(f"geometry, {size:,} references", f"{here}:geometry", path, str(size), times=3)
