"""The peak memory of loads, bulk imports and compactions, for small, large, huge and wide records.

Each has random keys and far more bytes than `load.memory`; a compaction merges eight objects over all keys.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import data
from benchmarks.measure import Measure, run, timed

HERE = "benchmarks.ranges_memory"
LOADS = 8
SHAPES = {"100 B": 4_000_000, "2 KB": 400_000, "200 KB": 4_000, "5,000 columns": 16_000}
"""By shape of the records: how many all loads have together, which are 400 to 800 MB in memory."""


def rows(shape: str, seed: int) -> pa.Table:
    """Makes the records of one of the loads."""
    random, count = np.random.default_rng(seed), SHAPES[shape] // LOADS
    keys = pa.array(random.integers(0, 1 << 60, count))
    if shape == "5,000 columns":
        names = [f"c{number}" for number in range(5_000)]
        return pa.table({"k": keys} | {name: random.random(count) for name in names})
    width = {"100 B": 84, "2 KB": 2_000, "200 KB": 200_000}[shape]
    values = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(width), count, [None, pa.py_buffer(random.bytes(count * width))]
    )
    return pa.table({"k": keys, "v": values.cast(pa.binary())})


def make_files(shape: str, folder: str) -> dict[str, Any]:
    """Makes a file for each load."""
    from pathlib import Path

    Path(folder).mkdir(parents=True)
    for number in range(LOADS):
        pq.write_table(rows(shape, number), f"{folder}/{number}.parquet", row_group_size=2_000)
    return {"seconds": 1.0, "records": SHAPES[shape]}


def load(path: str, folder: str, how: str) -> dict[str, Any]:
    """Loads the files in one of three ways: all as one load, all as one bulk import into four ranges, or each as a
    load of its own."""
    from log_lake.lake import Lake

    pool = Lake.create(path).create_pool("p", key="k", settings={"type.k": "bigint"})
    files = [f"{folder}/{number}.parquet" for number in range(LOADS)]
    if how == "bulk":
        pool.split(at=[(1 << 58) * number for number in range(1, 4)])
    with timed() as answer:
        if how == "each":
            for file in files:
                pool.branch().load([file])
        else:
            pool.branch().load(files, bulk=how == "bulk")
    view = pool.at()
    note = f"{len(view.references)} objects, depth {view.depth}, {sum(r.size for r in view.references) >> 20} MiB"
    return answer | {"records": view.records, "note": note}


def compact(path: str) -> dict[str, Any]:
    """Compacts the eight objects into one run."""
    from log_lake.lake import Lake
    from log_lake.rewriting.compaction import compact

    pool = Lake.open(path).pool("p")
    with timed() as answer:
        compact(pool.branch(), pool.at().references, outputs=4)
    view = pool.at()
    return answer | {"records": view.records, "note": f"{len(view.references)} objects, depth {view.depth}"}


def measures() -> Iterator[Measure]:
    """Yields the lines. The memory is that of the whole process, with Python and its libraries."""
    for shape in SHAPES:
        folder = data.fresh(f"memory-{shape}-files")
        run("make", f"{HERE}:make_files", shape, folder)
        path = ""
        for number, how in enumerate(("one", "bulk", "each")):
            path = data.fresh(f"memory-{shape}-{how}")
            name = {"one": "load", "bulk": "bulk import", "each": f"{LOADS} loads"}[how]
            yield replace(run(f"{shape}: {name}", f"{HERE}:load", path, folder, how), begins=number == 0)
        yield run(f"{shape}: compaction", f"{HERE}:compact", path)
        data.clear()
