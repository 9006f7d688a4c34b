"""Reads a pool, writes it to another and streams it to a third, on the Spark that `spark_session` returns.

    python -m tests.support.spark.roundtrip LAKE POOL COPY STREAMED CHECKPOINT ANSWER

The records are written to the Arrow file ANSWER. If the variable LAKE_SPARK_REMOTE is set, it names a Connect
server; under spark-submit this module is the submitted application. Run by test_masters.
"""

from __future__ import annotations

import sys

import pyarrow as pa

from spark_apps.session import spark_session
from tests.support.spark.answers import read
from tests.support.spark.streamed import start


def main(lake: str, pool: str, copy: str, streamed: str, checkpoint: str, answer: str) -> None:
    with spark_session("read") as outer:
        with spark_session("another") as inner:
            df = inner.read.format("lake").option("lake", lake).option("tasks", "3").load(pool)
            for _ in range(2):
                df.write.format("lake").option("lake", lake).option("token", "t").mode("append").save(copy)
            start(inner, lake, pool, streamed, checkpoint).awaitTermination()
            table = read(df)
        if "connect" in type(outer).__module__:
            assert outer.range(4).count() == 4, (
                "a session that ends leaves the server and other sessions alone"
            )
    with pa.ipc.new_file(answer, table.schema) as file:
        file.write_table(table)


if __name__ == "__main__":
    main(*sys.argv[1:])
