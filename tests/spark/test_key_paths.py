"""Pools whose key is inside of records, written, read, changed and loaded by Spark."""

from __future__ import annotations

from typing import Any

import pytest

import pyspark_lake
from tests.spark.conftest import Landing

pytestmark = pytest.mark.spark


def test_a_key_inside_of_records_is_written_read_and_deleted_by_frames(spark: Any, landing: Landing) -> None:
    landing.pool(key="user.id")
    frame = spark.range(0, 6).selectExpr("named_struct('id', id, 'n', 'x') as user", "id * 10 as v")
    frame.write.format("lake").option("lake", landing.uri).mode("append").save("p")
    pyspark_lake.write(frame.where("v = 0"), "p", lake=landing.uri)
    pyspark_lake.delete(spark, "p", frame.where("v in (10, 20)").select("user"), lake=landing.uri)
    pyspark_lake.merge(spark, "p", frame.where("v = 30").selectExpr("user", "7 as v"), lake=landing.uri)
    read = pyspark_lake.read(spark, "p", lake=landing.uri)
    assert [(row["user.id"], row.user.id, row.v) for row in read.orderBy("`user.id`", "v").collect()] == [
        (0, 0, 0), (0, 0, 0), (3, 3, 7), (4, 4, 40), (5, 5, 50)
    ]  # fmt: skip
    plain = spark.read.format("lake").option("lake", landing.uri).load("p")
    assert sorted(plain.collect()) == sorted(read.collect())
    assert read.where("`user.id` = 4").count() == read.where("user.id = 4").count() == 1
