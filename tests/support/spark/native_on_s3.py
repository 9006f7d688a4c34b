"""Reads every pool of a lake on S3 natively, through Hadoop's connector, and writes one back.

    python -m tests.support.spark.native_on_s3 LAKE MASTER ANSWERS

AWS_ENDPOINT_URL and the other variables of AWS say where S3 is, to Python and to the JVM.  The folder ANSWERS
gets, for each pool, its rows as an Arrow file, and what `explain` says.  Spark fetches the connector from Maven
once and keeps it; UNFETCHED is the exit status if it cannot.  Run by test_connector.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pyarrow as pa

import pyspark_lake
from log_lake.lake import Lake
from tests.support.spark.answers import read

CONNECTOR = "org.apache.hadoop:hadoop-aws:3.5.0"
"""The Maven name of Hadoop's connector, in the version of the Hadoop that PySpark brings."""

UNFETCHED = 77


def main(lake: str, master: str, answers: str) -> int:
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    builder = (
        SparkSession.builder.master(master)
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.jars.packages", CONNECTOR)
        .config("spark.hadoop.fs.s3a.endpoint", os.environ["AWS_ENDPOINT_URL"])
        .config("spark.hadoop.fs.s3a.endpoint.region", os.environ["AWS_DEFAULT_REGION"])
        .config("spark.hadoop.fs.s3a.path.style.access", "true")
    )
    try:
        spark = builder.getOrCreate()
    except PySparkException as error:  # the JVM ended before there was a session
        print(error, file=sys.stderr)
        return UNFETCHED
    folder = Path(answers)
    for name in [pool.name for pool in Lake.open(lake).pools()]:
        frame = pyspark_lake.read(spark, name, lake=lake)
        table = read(frame)
        with pa.ipc.new_file(folder / f"{name}.arrow", table.schema) as file:
            file.write_table(table)
        (folder / f"{name}.txt").write_text(pyspark_lake.explain(spark, name, lake=lake))
        if name == "p":
            pyspark_lake.write(frame, "copy", lake=lake)
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
