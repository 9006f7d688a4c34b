"""Large pools in this process: Sleeper's compaction test, sixteen ranges, small loads, a million references.

`LAKE_BENCH_SHARE=0.01` takes a hundredth of the records, loads and references, for a look at a busy machine.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import data, opening
from benchmarks.measure import Measure, run, timed

SHARE = float(os.environ.get("LAKE_BENCH_SHARE", "1"))
FILES, ROWS = 11, int(4_000_000 * SHARE)
"""The number of files, and of rows in each. Sleeper's own test compacts 11 sorted files of 40 million rows; this
is a tenth of that."""
RANGES, RANGE_LOADS, RANGE_ROWS = 16, 8, int(2_000_000 * SHARE)
LOADS, LOAD_ROWS = int(30_000 * SHARE), 10
BETWEEN = max(1, LOADS // 6)
"""How many small loads come between two runs of the compact agent: fewer than fill what a pool may hold in its
journal."""
REFERENCES, PARTS = int(1_000_000 * SHARE), 1_000
HERE = "benchmarks.ranges"


def rows(seed: int, count: int) -> pa.Table:
    """Makes narrow rows as in Sleeper's test, in order: a key of 10 letters, a sort key, a timestamp, a
    value."""
    made = np.random.default_rng(seed)
    letters = made.integers(97, 123, (count, 10), dtype=np.uint8)
    text = pa.StringArray.from_buffers(
        count,
        pa.py_buffer(np.arange(0, 10 * count + 1, 10, dtype=np.int32)),
        pa.py_buffer(np.ascontiguousarray(letters)),
    )
    columns = {
        "key": text,
        "sort": made.integers(0, 1 << 40, count),
        "timestamp": made.integers(0, 1 << 40, count),
        "value": [f"value {number}" for number in made.integers(0, 1 << 30, count)],
    }
    return pa.table(columns).sort_by([("key", "ascending"), ("sort", "ascending")])


def make_sleeper(path: str) -> dict[str, Any]:
    """Makes a pool of eleven objects, each of which covers all keys."""
    from log_lake.lake import Lake

    settings = {"load.memory": "4GiB", "compact.max_bytes": "64GiB", "compact.target_size": "64GiB"}
    pool = Lake.create(path).create_pool("p", key="key,sort", settings=settings)
    for number in range(FILES):
        pool.branch().append(rows(number, ROWS))
    assert len(pool.at().references) == FILES
    return {"seconds": 1.0, "records": FILES * ROWS}


def compact_sleeper(path: str) -> dict[str, Any]:
    """Compacts the eleven objects into one."""
    from log_lake.lake import Lake
    from log_lake.rewriting.compaction import compact

    pool = Lake.open(path).pool("p")
    with timed() as answer:
        compact(pool.branch(), pool.at().references, outputs=1)
    return answer | {"records": pool.at().records, "note": f"{len(pool.at().references)} object"}


def copy_sleeper(path: str) -> dict[str, Any]:
    """Measures the floor: Arrow reads the same objects and writes their rows as one file, without a merge."""
    from log_lake.lake import Lake

    view = Lake.open(path).pool("p").at()
    files = [f"{path}/{view.object_name(r)}" for r in view.references]
    count = 0
    with timed() as answer:
        writer: pq.ParquetWriter | None = None
        for file in files:
            for batch in pq.ParquetFile(file).iter_batches(65_536):
                writer = writer or pq.ParquetWriter(f"{path}/copy.parquet", batch.schema, compression="zstd")
                writer.write_batch(batch, row_group_size=10_240)
                count += batch.num_rows
        if writer:
            writer.close()
    return answer | {"records": count}


def make_ranges(path: str) -> dict[str, Any]:
    """Makes a pool of sixteen ranges by eight imports over all keys, each of which is cut at the split
    points."""
    from log_lake.lake import Lake

    settings = {"load.memory": "1GiB", "type.key": "string", "type.sort": "bigint"}
    pool = Lake.create(path).create_pool("p", key="key,sort", settings=settings)
    places = [26 * 26 * number // RANGES for number in range(1, RANGES)]
    pool.split(at=[[chr(97 + place // 26) + chr(97 + place % 26)] for place in places])
    for number in range(RANGE_LOADS):
        source = f"{path}-load.parquet"
        pq.write_table(rows(number, RANGE_ROWS), source)
        pool.branch().load([source], bulk=True)
        os.remove(source)
    return {"seconds": 1.0, "records": pool.at().records}


def compact(*options: str) -> None:
    """Runs `lake compact` over the pool."""
    command = [
        str(Path(sys.executable).with_name("lake")),
        *options[:2],
        "compact",
        "p",
        "--strategy",
        "full",
    ]
    subprocess.run([*command, *options[2:]], check=True, stdout=subprocess.DEVNULL)


def compact_ranges(path: str, workers: str) -> dict[str, Any]:
    """Compacts all ranges by this many workers, as `lake compact -j` does; the start of the command counts
    too."""
    from log_lake.lake import Lake

    before = Lake.open(path).pool("p").at()
    with timed() as answer:
        compact("--lake", path, "-j", workers)
    after = Lake.open(path).pool("p").at()
    return answer | {"records": before.records, "note": f"depth {before.depth} to {after.depth}"}


def small_loads(path: str, agent: str) -> dict[str, Any]:
    """Makes loads of ten records by one writer, which are inlined while the pool has room; with the compact agent
    or without it."""
    from log_lake.agents.compact.run import compact_pool, plan_pool
    from log_lake.lake import Lake

    lake = Lake.create(path)
    pool = lake.create_pool("p", key="k", settings={"load.inline": "64KiB"})
    branch, made = pool.branch(), np.random.default_rng(1)
    tables = [
        pa.table({"k": made.integers(0, 1 << 40, LOAD_ROWS), "v": made.random(LOAD_ROWS)}) for _ in range(100)
    ]
    with timed() as answer:
        for number in range(1, LOADS + 1):
            branch.append(tables[number % 100])
            if agent and number % BETWEEN == 0:
                compact_pool(lake, "p", plan_pool(lake, "p", now=time.time()))
    references = pool.at().references
    files = len(list(Path(path).rglob("*.parquet")))
    inlined = sum(bool(r.data) for r in references)
    return answer | {"records": LOADS * LOAD_ROWS, "note": f"{inlined:,} in the journal, {files:,} files"}


def scan(path: str) -> dict[str, Any]:
    """Scans all records, in a process that has just opened the pool."""
    from log_lake.lake import Lake

    view = Lake.open(path).pool("p").at()
    objects = len(view.references)
    with timed() as answer:
        count = sum(table.num_rows for table in view.scan())
    return answer | {"records": count, "note": f"{objects:,} objects"}


def compact_all(path: str) -> dict[str, Any]:
    """Compacts everything into one run. A job takes at most 64 files, so this needs several plans."""
    from log_lake.lake import Lake

    pool = Lake.open(path).pool("p")
    with timed() as answer:
        while pool.at().depth > 1:
            compact("--lake", path)
    return answer | {"records": LOADS * LOAD_ROWS}


def make_references(path: str) -> dict[str, Any]:
    """Makes a pool of a million references in a thousand ranges, without their objects."""
    from log_lake.agents.checkpoint.run import write_checkpoint
    from log_lake.lake import Lake

    opening.build(path, str(REFERENCES))
    lake = Lake.open(path)
    each = max(1, REFERENCES // PARTS) * 1_000
    lake.pool("p").split(at=[each * number for number in range(1, PARTS)])
    write_checkpoint(lake, "p", now=time.time())
    return {"seconds": 1.0, "records": REFERENCES}


def plan_range(path: str) -> dict[str, Any]:
    """Opens the pool and plans one of its ranges, in a process that has imported everything but read
    nothing."""
    from log_lake.lake import Lake

    with timed() as answer:
        view = Lake.open(path).pool("p").at()
        low, high = view.points[len(view.points) // 2 : len(view.points) // 2 + 2]
        plan = view.plan(ranges=[type(view.key_range())(low, high)])
    return answer | {"records": len(plan.references), "note": f"{len(view.points) + 1:,} ranges"}


def plan_all(path: str) -> dict[str, Any]:
    """Opens the pool and plans a scan of all of it."""
    from log_lake.lake import Lake

    with timed() as answer:
        plan = Lake.open(path).pool("p").at().plan()
    return answer | {"records": len(plan.references)}


def plan_parts(path: str) -> dict[str, Any]:
    """Plans a scan of the whole pool and cuts the plan into a part for each range, as `lake scan -j` does."""
    from log_lake.lake import Lake

    view = Lake.open(path).pool("p").at()
    plan = view.plan()
    with timed() as answer:
        parts = view.parts(plan, jobs=4)
    return answer | {"records": len(plan.references), "note": f"{len(parts):,} parts"}


def plan_jobs(path: str) -> dict[str, Any]:
    """Plans the compaction jobs of all ranges, from references that were decoded before."""
    from log_lake.agents.compact.plan import plan_branch
    from log_lake.agents.compact.policy import policy_of
    from log_lake.lake import Lake

    view = Lake.open(path).pool("p").at()
    references, policy = view.references, policy_of(view.settings)
    with timed() as answer:
        plan = plan_branch(
            view.held, references, policy, key=view.key, kind="append", now=view.now, points=view.points
        )
    return answer | {"records": len(references), "note": f"{len(plan.jobs):,} jobs"}


def measures() -> Iterator[Measure]:
    """Yields groups of lines; the ratios of a group are to its first line."""
    from dataclasses import replace

    path = data.fresh("sleeper")
    run("make", f"{HERE}:make_sleeper", path)
    yield replace(run(f"read and write {FILES} files", f"{HERE}:copy_sleeper", path), begins=True)
    yield run(f"compact {FILES} files into one", f"{HERE}:compact_sleeper", path)
    for workers in ("1", "2"):
        path = data.fresh(f"ranges-{workers}")
        run("make", f"{HERE}:make_ranges", path)
        one = run(f"{RANGES} ranges, {workers} at a time", f"{HERE}:compact_ranges", path, workers)
        yield replace(one, begins=workers == "1")
    for agent in ("", "agent"):
        path = data.fresh(f"small-loads-{agent}")
        name = f"{LOADS:,} loads of {LOAD_ROWS}" + (", compacted meanwhile" if agent else "")
        yield replace(run(name, f"{HERE}:small_loads", path, agent), begins=not agent)
        before = run("scan right after", f"{HERE}:scan", path)
        run("compact", f"{HERE}:compact_all", path)
        yield replace(run("scan of one run", f"{HERE}:scan", path), begins=True)
        yield before
    path = data.fresh("references")
    run("make", f"{HERE}:make_references", path)
    yield replace(run("plan of one range, cold", f"{HERE}:plan_range", path, times=5), begins=True)
    yield run("plan of all, cold", f"{HERE}:plan_all", path)
    yield run("its parts", f"{HERE}:plan_parts", path)
    yield run("jobs of compaction", f"{HERE}:plan_jobs", path)
