"""Iceberg and Delta on Spark 4.1: the work that `spark` measures of a pool, on tables sorted by the same key.

Run by the Python of `tests.support.spark.spark41`, which has neither the lake nor Arrow.  Iceberg: format version
3, merge-on-read, a table that is written in the order of its key.  Delta: deletion vectors, written from a frame
that is partitioned by range and sorted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks import spark_work as work
from benchmarks.measure import timed


class Iceberg:
    """Iceberg's runtime with a catalog of folders.

    `package` is what Spark fetches from Maven.  `ordered` tables are written in the order of the key.
    """

    def __init__(self, package: str) -> None:
        self._package = package

    def settings(self, folder: str) -> dict[str, str]:
        return {
            "spark.jars.packages": self._package,
            "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
            "spark.sql.catalog.peer": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.peer.type": "hadoop",
            "spark.sql.catalog.peer.warehouse": folder,
        }

    def name(self, table: str) -> str:
        return f"peer.{table}"

    def create(self, spark: Any, table: str, frame: Any, *, ordered: bool) -> None:
        modes = ", ".join(f"'write.{work}.mode'='merge-on-read'" for work in ("delete", "update", "merge"))
        spark.sql(
            f"CREATE TABLE {self.name(table)} ({_columns(frame)}) USING iceberg "
            f"TBLPROPERTIES ('format-version'='3', {modes})"
        )
        if ordered:
            spark.sql(f"ALTER TABLE {self.name(table)} WRITE ORDERED BY {', '.join(work.KEY)}")

    def write(self, spark: Any, table: str, frame: Any, *, ordered: bool) -> None:
        frame.writeTo(self.name(table)).append()


class Delta:
    """Delta tables, which are named by their paths; otherwise like `Iceberg`."""

    def __init__(self, package: str) -> None:
        self._package = package

    def settings(self, folder: str) -> dict[str, str]:
        self._folder = folder
        return {
            "spark.jars.packages": self._package,
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        }

    def name(self, table: str) -> str:
        return f"delta.`{self._folder}/{table}`"

    def create(self, spark: Any, table: str, frame: Any, *, ordered: bool) -> None:
        spark.sql(
            f"CREATE TABLE {self.name(table)} ({_columns(frame)}) USING delta "
            "TBLPROPERTIES ('delta.enableDeletionVectors'='true')"
        )

    def write(self, spark: Any, table: str, frame: Any, *, ordered: bool) -> None:
        if ordered:
            frame = frame.repartitionByRange(*work.KEY).sortWithinPartitions(*work.KEY)
        frame.write.format("delta").mode("append").save(f"{self._folder}/{table}")


def _columns(frame: Any) -> str:
    return ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in frame.schema)


PEERS: dict[str, type[Iceberg | Delta]] = {"Iceberg": Iceberg, "Delta": Delta}
TABLE = "db.lineitem"


@contextmanager
def _session(settings: dict[str, str], folder: str) -> Iterator[Any]:
    """Opens a session like the lake's own (`spark_apps.session`), with the settings of a format."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2,4]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    builder = builder.config("spark.sql.warehouse.dir", f"{folder}-warehouse")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    try:
        yield spark
    finally:
        spark.stop()


def plain(query: str, files: str, folder: str) -> dict[str, Any]:
    """Runs one query over plain Parquet on this Spark, so that the two Sparks can be compared."""
    with _session({}, folder) as spark:
        return work.measured(work.input_of(spark, files), query)


def write(peer: str, package: str, folder: str, files: str) -> dict[str, Any]:
    """Writes all records into a new sorted table, after a small write that warms up."""
    format_ = PEERS[peer](package)
    with _session(format_.settings(folder), folder) as spark:
        frame = work.input_of(spark, files)
        for table, records in (("db.warm", frame.limit(work.APPENDED)), (TABLE, frame)):
            format_.create(spark, table, records, ordered=True)
            with timed() as answer:
                format_.write(spark, table, records, ordered=True)
        records = spark.table(format_.name(TABLE)).count()
    return answer | {"records": records, "note": f"{_objects(folder)} files"}


def add_newer(peer: str, package: str, folder: str, newer: str) -> dict[str, Any]:
    """Commits each file of newer records as a transaction, then a delete by range and one by condition."""
    format_ = PEERS[peer](package)
    with _session(format_.settings(folder), folder) as spark, timed() as answer:
        for file in json.loads(newer):
            format_.write(spark, TABLE, work.input_of(spark, json.dumps([file])), ordered=True)
        for condition in (work.DELETE_RANGE, work.DELETE_WHERE):
            spark.sql(f"DELETE FROM {format_.name(TABLE)} WHERE {condition}")
    return answer | {"records": len(json.loads(newer)) + 2}


def read(peer: str, package: str, folder: str, query: str) -> dict[str, Any]:
    """Runs one query over the table."""
    format_ = PEERS[peer](package)
    with _session(format_.settings(folder), folder) as spark:
        return work.measured(spark.table(format_.name(TABLE)), query)


def append(peer: str, package: str, folder: str, files: str, appends: str) -> dict[str, Any]:
    """Makes small appends to a new table without an order, which is the quickest way for these formats."""
    format_ = PEERS[peer](package)
    table = "db.appended"
    with _session(format_.settings(folder), folder) as spark:
        format_.create(spark, table, work.input_of(spark, files), ordered=False)
        return work.appended(
            lambda frame: format_.write(spark, table, frame, ordered=False), spark, files, appends
        )


def get(peer: str, package: str, folder: str, keys: str) -> dict[str, Any]:
    """Reads single records by key."""
    format_ = PEERS[peer](package)
    with _session(format_.settings(folder), folder) as spark:
        table = spark.table(format_.name(TABLE))
        return work.looked_up(lambda key: len(table.where(work.condition(key)).collect()), keys)


def _objects(folder: str) -> int:
    """Returns how many data files the large table has."""
    return sum("warm" not in str(path) for path in Path(folder).rglob("*.parquet"))
