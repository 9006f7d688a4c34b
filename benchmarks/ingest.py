"""Ingest of lineitem through Spark, sorted by three fields, against Spark's own read, sort and write.

Both run on local[2] with a session that is up and warm.  Floor: DuckDB copies the same files without order.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import data
from benchmarks.measure import Measure, run, timed


def spark_ingest(*files: str) -> dict[str, Any]:
    """Runs the ingest application."""
    from log_lake.lake import Lake
    from log_lake.loading.sources import find_files
    from spark_apps.load import load_files
    from spark_apps.session import spark_session

    lake = Lake.create(data.fresh("ingest"))
    lake.create_pool("lineitem", key=data.KEY)
    with spark_session("benchmark") as spark:
        _warm(spark)
        with timed() as answer:
            result = load_files(spark, lake, pool_name="lineitem", files=find_files(list(files)))
    return answer | {"records": result.records, "note": f"{result.objects} objects"}


def spark_sort(*files: str) -> dict[str, Any]:
    """Reads, sorts within partitions and writes by Spark alone."""
    from spark_apps.session import spark_session

    target = data.fresh("spark-sort")
    with spark_session("benchmark") as spark:
        _warm(spark)
        spark.conf.set("spark.sql.parquet.compression.codec", "zstd")
        with timed() as answer:
            frame = spark.read.parquet(*files)
            frame.sortWithinPartitions(*data.KEY.split(",")).write.parquet(target)
        records = spark.read.parquet(target).count()
    return answer | {"records": records, "note": f"{len(list(Path(target).glob('*.parquet')))} files"}


def duckdb_copy(*files: str) -> dict[str, Any]:
    """The floor: DuckDB reads and writes the same files without order."""
    import duckdb

    target = data.fresh("copy.parquet")
    connection = duckdb.connect(config={"threads": 2})
    with timed() as answer:
        connection.read_parquet(list(files)).write_parquet(target, compression="zstd")
    records = connection.read_parquet(target).count("*").fetchall()[0][0]
    connection.close()
    return answer | {"records": records, "note": "1 file"}


def _warm(spark: Any) -> None:
    os.environ.setdefault("PYSPARK_PYTHON", "python3")
    spark.range(0, 2, 1, 2).mapInArrow(lambda batches: batches, "id long").collect()


def measures() -> Iterator[Measure]:
    """Yields the lines, each for 12 million records."""
    files = data.lineitem()
    yield run("lake, ingest on Spark", "benchmarks.ingest:spark_ingest", *files)
    yield run("Spark, sort within partitions", "benchmarks.ingest:spark_sort", *files)
    yield run("floor: duckdb copy, no order", "benchmarks.ingest:duckdb_copy", *files)
