"""Scan of a pool in key order, against DataFusion reading the same files without order.

The objects overlap in most of their keys.  A pool of a quarter of the size, in as many objects, shows whether
memory grows with the pool.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import data
from benchmarks.measure import Measure, run, timed


def load(scale: str, path: str) -> dict[str, Any]:
    """Makes the pool, without Spark."""
    from log_lake.lake import Lake

    memory = {"load.memory": f"{round(float(scale) * 128)}MiB"}
    pool = Lake.create(path).create_pool("lineitem", key=data.KEY, settings=memory)
    with timed() as answer:
        result = pool.branch().load(data.lineitem(float(scale)))
    return answer | {"records": result.records}


def lake_scan(path: str) -> dict[str, Any]:
    """Scans all columns in key order."""
    from log_lake.lake import Lake

    view = Lake.open(path).pool("lineitem").at()
    records = 0
    with timed() as answer:
        for table in view.scan():
            records += table.num_rows
    return answer | {"records": records, "note": f"{len(view.references)} objects, depth {view.depth}"}


def datafusion_read(path: str) -> dict[str, Any]:
    """Reads all columns without order, by DataFusion."""
    import datafusion

    context = datafusion.SessionContext(datafusion.SessionConfig().with_target_partitions(2))
    files = [str(p) for p in Path(path).glob("*/data/*.parquet")]
    records = 0
    with timed() as answer:
        frame = context.read_parquet(str(Path(files[0]).parent))
        for batch in frame.execute_stream():
            records += batch.to_pyarrow().num_rows
    return answer | {"records": records, "note": f"{len(files)} files"}


def measures() -> Iterator[Measure]:
    """Yields the lines for a pool of 12 million records, and for one of 3 million."""
    paths = {scale: data.fresh(f"scan-{scale}") for scale in ("2", "0.5")}
    for scale, path in paths.items():
        run("load", "benchmarks.scan:load", scale, path)
    yield run("lake scan, 12 million", "benchmarks.scan:lake_scan", paths["2"])
    yield run("DataFusion, no order", "benchmarks.scan:datafusion_read", paths["2"])
    yield run("lake scan, 3 million", "benchmarks.scan:lake_scan", paths["0.5"])
