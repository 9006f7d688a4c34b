"""Runs a streaming query from one pool to another, one transaction for each batch, in a process that can be
killed.

    python -m tests.support.spark.streamed LAKE FROM TO CHECKPOINT POINT BATCH

At that batch the whole of Spark is killed: `before` the lake's commit, or `after` it and before Spark has
recorded that the batch is done. Run by test_stream_writer.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import psutil
from pyspark.sql.types import StructType

from spark_apps.datasource import LakeDataSource
from spark_apps.datasource.writer import LakeStreamWriter
from spark_apps.session import spark_session


def kill_spark() -> None:
    """Kills the Java process above this worker, so that its state is lost."""
    for process in psutil.Process().parents():
        if process.name() == "java":
            process.kill()
            process.wait(30)
            return
    raise AssertionError("no Java above this process")


class DyingWriter(LakeStreamWriter):
    """The real writer, except that it kills Spark at a point."""

    def commit(self, messages: list[Any], batchId: int) -> None:
        point, batch = os.environ["DIE"].split()
        dies = batchId == int(batch)
        if dies and point == "before":
            kill_spark()
        super().commit(messages, batchId)
        if dies:
            kill_spark()


class DyingSource(LakeDataSource):
    """The data source with that writer."""

    @classmethod
    def name(cls) -> str:
        return "dying"

    def streamWriter(self, schema: StructType, overwrite: bool) -> DyingWriter:
        return DyingWriter(dict(self.options), schema, overwrite=overwrite)


def main(lake: str, source: str, target: str, checkpoint: str, point: str, batch: str) -> None:
    os.environ["DIE"] = f"{point} {batch}"
    with spark_session("streamed") as spark:
        spark.dataSource.register(DyingSource)
        start(spark, lake, source, target, checkpoint, format="dying").awaitTermination()


def start(
    spark: Any, lake: str, source: str, target: str, checkpoint: str, *, format: str = "lake", each: int = 1
) -> Any:
    """Starts the query, with so many transactions for each batch; it ends when everything that is there now was
    copied."""
    stream = (
        spark.readStream.format("lake")
        .option("lake", lake)
        .option("maxTransactionsPerBatch", each)
        .load(source)
    )
    writer = stream.writeStream.format(format).option("lake", lake).option("checkpointLocation", checkpoint)
    return writer.trigger(availableNow=True).start(target)


if __name__ == "__main__":
    main(*sys.argv[1:])
