"""Compaction of 8 overlapping sorted runs of lineitem, 12 million records, and scans before and after.

The pool is loaded from 8 files, one object each, all of which overlap everywhere.  Floors: the same files copied
without order.  Memory is shown for a tenth of the data too: it must not follow the size.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks import data
from benchmarks.measure import Measure, run, timed

RUNS = 8
PARTS = 64


def load(scale: str, path: str, pieces: str) -> dict[str, Any]:
    """Makes the pool by `pieces` loads. Load number i has every `pieces`-th record from the i-th on, so all loads
    overlap."""
    import pyarrow.parquet as pq

    from log_lake.lake import Lake

    pool = Lake.create(path).create_pool("lineitem", key=data.KEY, settings={"load.memory": "2GiB"})
    branch = pool.branch()
    records = 0
    with timed() as answer:
        if int(pieces) == RUNS:
            for file in data.lineitem(float(scale)):
                records += branch.load([file]).records
        else:
            table = pq.read_table(data.lineitem(float(scale))[0])
            rows = table.num_rows // int(pieces)
            for number in range(int(pieces)):
                records += branch.append(table.slice(number * rows, rows)).records
    return answer | {"records": records}


def lake_on_spark(source: str) -> dict[str, Any]:
    """Compacts by the Spark application, in a session that is already warm."""
    from benchmarks.ingest import _warm
    from log_lake.agents.compact.run import compact_pool, plan_pool
    from log_lake.lake import Lake
    from spark_apps.session import spark_session
    from spark_apps.workers import workers_of

    path = _copy(source)
    lake = Lake.open(path)
    with spark_session("benchmark") as spark:
        _warm(spark)
        with timed() as answer:
            plan = plan_pool(lake, "lineitem", strategy="full", now=0.0)
            done = compact_pool(lake, "lineitem", plan, workers=workers_of(spark, lake.context))
    sizes = [r.size for r in lake.pool("lineitem").at().references]
    note = f"{len(sizes)} objects of {min(sizes) / 1e6:.0f} to {max(sizes) / 1e6:.0f} MB, depth "
    return answer | {
        "records": sum(d.records for d in done),
        "note": note + str(lake.pool("lineitem").at().depth),
    }


def lake_here(source: str) -> dict[str, Any]:
    """Runs `lake compact` in one process, one piece after another."""
    from log_lake.agents.compact.run import compact_pool, plan_pool
    from log_lake.lake import Lake

    path = _copy(source)
    lake = Lake.open(path)
    with timed() as answer:
        done = compact_pool(lake, "lineitem", plan_pool(lake, "lineitem", strategy="full", now=0.0))
    return answer | {"records": sum(d.records for d in done), "note": f"{done[0].objects} objects"}


def lake_verified(source: str) -> dict[str, Any]:
    """Does the same as `lake_here`, and compares each new object with its inputs by content sums
    (verify.rewrites=content)."""
    from log_lake.agents.compact.run import compact_pool, plan_pool
    from log_lake.lake import Lake

    path = _copy(source)
    lake = Lake.open(path)
    lake.configure_pool("lineitem", {"verify.rewrites": "content"})
    with timed() as answer:
        done = compact_pool(lake, "lineitem", plan_pool(lake, "lineitem", strategy="full", now=0.0))
    return answer | {"records": sum(d.records for d in done), "note": f"{done[0].objects} objects"}


def spark_sort(source: str) -> dict[str, Any]:
    """Sorts by Spark alone: range partitions, sorted within."""
    from benchmarks.ingest import _warm
    from spark_apps.session import spark_session

    target = data.fresh("spark-range")
    with spark_session("benchmark") as spark:
        _warm(spark)
        spark.conf.set("spark.sql.parquet.compression.codec", "zstd")
        key = data.KEY.split(",")
        with timed() as answer:
            frame = spark.read.parquet(*_files(source))
            frame.repartitionByRange(4, *key).sortWithinPartitions(*key).write.parquet(target)
        records = spark.read.parquet(target).count()
    return answer | {"records": records, "note": f"{len(list(Path(target).glob('*.parquet')))} files"}


def pyarrow_copy(source: str) -> dict[str, Any]:
    """The floor for writing: pyarrow, which writes the lake's objects, reads and writes the files without order,
    in 2 processes."""
    target = data.fresh("pyarrow-copy")
    Path(target).mkdir(parents=True)
    with ProcessPoolExecutor(2) as processes:
        list(processes.map(_nothing, range(2)))
        with timed() as answer:
            records = sum(processes.map(_copy_one, _files(source), [target] * RUNS))
    return answer | {"records": records, "note": "no order"}


def datafusion_copy(source: str) -> dict[str, Any]:
    """The floor for merging: DataFusion, which merges for the lake, copies the files."""
    import datafusion

    context = datafusion.SessionContext(datafusion.SessionConfig().with_target_partitions(2))
    target = data.fresh("datafusion-copy")
    with timed() as answer:
        frame = context.read_parquet(str(Path(_files(source)[0]).parent))
        frame.write_parquet(target, compression="zstd", compression_level=1)
    return answer | {"records": context.read_parquet(target).count(), "note": "no order"}


def duckdb_copy(source: str) -> dict[str, Any]:
    """The cheapest copy: DuckDB copies the files."""
    from benchmarks.ingest import duckdb_copy as copy

    return copy(*_files(source)) | {"note": "no order"}


def lake_scan(path: str, compacted: str = "") -> dict[str, Any]:
    """Scans all columns in key order."""
    from log_lake.lake import Lake
    from log_lake.rewriting.compaction import compact

    pool = Lake.open(path).pool("lineitem")
    if compacted:
        compact(pool.branch(), pool.at().references, outputs=int(compacted))
    view = pool.at()
    records = sum(table.num_rows for table in view.scan())  # warm, as whoever scans again
    with timed() as answer:
        records = sum(table.num_rows for table in view.scan())
    return answer | {"records": records, "note": f"{len(view.references)} objects, depth {view.depth}"}


def files_read(path: str) -> dict[str, Any]:
    """Reads the pool's newest files one after another by pyarrow, without the lake."""
    import pyarrow.parquet as pq

    from log_lake.lake import Lake

    view = Lake.open(path).pool("lineitem").at()
    names = [f"{path}/{view.object_name(r)}" for r in view.references]
    columns = view.schema.names
    records = 0
    with timed() as answer:
        for name in names:
            for batch in pq.ParquetFile(name).iter_batches(65_536, columns=columns):
                records += batch.num_rows
    return answer | {"records": records, "note": f"{len(names)} files"}


def _files(path: str) -> list[str]:
    return sorted(str(p) for p in Path(path).glob("*/data/*.parquet"))


def _copy(source: str) -> str:
    target = data.fresh("compaction-work")
    shutil.copytree(source, target)
    return target


def _nothing(_: int) -> None:
    import pyarrow.parquet  # noqa: F401 - so that the timing is without it


def _copy_one(file: str, target: str) -> int:
    import pyarrow.parquet as pq

    from log_lake.objects.containers.limits import OBJECT_LIMITS
    from log_lake.objects.containers.parquet_sink import parquet_writer

    source = pq.ParquetFile(file)
    writer = None
    with open(f"{target}/{Path(file).name}", "wb") as out:
        for batch in source.iter_batches(OBJECT_LIMITS.gathered * OBJECT_LIMITS.row_group):
            import pyarrow as pa

            from lake_core.keys import PoolKey

            table = pa.Table.from_batches([batch])
            if writer is None:
                writer = parquet_writer(out, table, key=PoolKey.parse(data.KEY))
            writer.write_table(table, row_group_size=OBJECT_LIMITS.row_group)
        assert writer is not None
        writer.close()
    return int(source.metadata.num_rows)


def measures() -> Iterator[Measure]:
    """Yields the lines of compactions first, then those of scans."""
    big, small, parts = (data.fresh(f"compaction-{name}") for name in ("12m", "1m", "64"))
    run("load", "benchmarks.compaction:load", "2", big, str(RUNS))
    run("load", "benchmarks.compaction:load", "0.2", small, str(RUNS))
    run("load", "benchmarks.compaction:load", "2", parts, str(PARTS))
    module = "benchmarks.compaction:"
    yield run("floor: DataFusion copy", module + "datafusion_copy", big)
    yield run("floor: duckdb copy", module + "duckdb_copy", big)
    yield run("floor: pyarrow copy, 2 processes", module + "pyarrow_copy", big)
    yield run("lake compact on Spark", module + "lake_on_spark", big)
    yield run("lake compact, one process", module + "lake_here", big)
    yield run("the same, a tenth of the data", module + "lake_here", small)
    yield run("the same, content compared", module + "lake_verified", small)
    yield run("Spark, range partitions, sorted", module + "spark_sort", big)
    yield run("scan of 8 overlapping objects", module + "lake_scan", big)
    yield run("scan after compaction", module + "lake_scan", big, "4")
    yield run("the same files by pyarrow", module + "files_read", big)
    yield run(f"scan of {PARTS} small overlapping objects", module + "lake_scan", parts)
    yield run("the same compacted", module + "lake_scan", parts, "1")
