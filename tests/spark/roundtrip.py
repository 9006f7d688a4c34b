"""Reads a pool over Spark Connect and leaves what came as an Arrow file.

    python -m tests.spark.connected_read LAKE POOL ANSWER

The server is named by the variable LAKE_SPARK_REMOTE.  Run by test_masters.
"""

from __future__ import annotations

import sys

import pyarrow as pa

from spark_apps.session import spark_session
from tests.spark.answers import read


def main(lake: str, pool: str, answer: str) -> None:
    with spark_session("read") as outer:
        assert "connect" in type(outer).__module__
        with spark_session("another") as inner:
            table = read(inner.read.format("lake").option("lake", lake).option("tasks", "3").load(pool))
        assert outer.range(4).count() == 4, "a session that ends leaves the server and other sessions alone"
    with pa.ipc.new_file(answer, table.schema) as file:
        file.write_table(table)


if __name__ == "__main__":
    main(*sys.argv[1:])
