"""One data frame, used many times: each query gets its own rows, whatever the others ask.

Spark may hand a query's filters to the reader (`spark.sql.python.filterPushdown.enabled`, on in these tests),
and it keeps one reader for all queries over a `load`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as f

from tests.spark.conftest import Landing
from tests.support.spark.queries import disagreements, records

pytestmark = pytest.mark.spark

QUERIES = 60


@pytest.fixture(autouse=True)
def few_partitions(spark: Any) -> Iterator[None]:
    """Spark's default of 200 partitions a shuffle is for other amounts of data."""
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    yield
    spark.conf.unset("spark.sql.shuffle.partitions")


@pytest.fixture
def frame(spark: Any, landing: Landing) -> Any:
    """The numbers 0 to 999 in ten objects, read by three tasks."""
    landing.pool()
    branch = landing.lake.pool("p").branch()
    for low in range(0, 1000, 100):
        keys = range(low, low + 100)
        branch.append(pa.table({"k": keys, "n": [k % 7 for k in keys], "x": [k / 2 for k in keys]}))
    return spark.read.format("lake").option("lake", landing.uri).option("tasks", "3").load("p")


def test_a_filter_of_one_query_narrows_no_other(frame: Any) -> None:
    assert frame.where("k < 100").count() == 100
    assert frame.count() == 1000
    assert frame.where("k >= 990").count() == 10
    assert frame.where("k < 5").toArrow()["k"].to_pylist() == list(range(5))
    assert frame.where("n = 3").count() == 143
    assert frame.count() == 1000


def test_each_part_of_a_union_has_its_own_filter(frame: Any) -> None:
    united = frame.where("k < 100").union(frame.where("k >= 900")).union(frame)
    assert united.count() == 1200
    assert frame.where("k = 1").union(frame.where("k = 2")).toArrow()["k"].to_pylist() == [1, 2]
    assert frame.where("k < 10").intersect(frame.where("k > 4")).count() == 5
    assert frame.exceptAll(frame.where("k > 9")).count() == 10


def test_each_side_of_a_self_join_has_its_own_filter(frame: Any) -> None:
    low, high = frame.where("k < 100").alias("a"), frame.where("k >= 50").alias("b")
    assert low.join(high, f.col("a.k") == f.col("b.k")).count() == 50
    assert low.join(high, f.col("a.k") + 900 == f.col("b.k")).count() == 100
    assert frame.alias("a").join(frame.where("k = 7").alias("b"), f.col("a.n") == f.col("b.n")).count() == 143
    assert frame.join(frame.where("k < 100").select("k"), "k", "left_anti").count() == 900


def test_subqueries_of_a_view_have_their_own_filters(spark: Any, frame: Any) -> None:
    frame.createOrReplaceTempView("v")

    def count(condition: str) -> int:
        return int(spark.sql(f"select count(*) as c from v where {condition}").first().c)

    assert count("k in (select k + 500 from v where k < 10)") == 10
    assert count("k > (select max(k) from v where k < 100)") == 900
    assert count("exists (select 1 from v w where w.k = v.n and w.k > 3)") == 428
    assert count("true") == 1000
    spark.sql("create or replace temporary view w as select * from v where k < 100")
    assert spark.sql("select (select count(*) from w) as a, (select count(*) from v) as b").first() == (
        100,
        1000,
    )


def test_a_frame_that_is_kept_in_memory_holds_what_it_was_filtered_for(frame: Any) -> None:
    kept = frame.where("k < 100").cache()
    try:
        assert kept.count() == 100
        assert frame.count() == 1000
        assert kept.where("k >= 50").count() == 50
        assert frame.where("k < 100").count() == 100
    finally:
        kept.unpersist()
    whole = frame.cache()
    try:
        assert whole.where("k > 899").count() == 100
        assert whole.count() == 1000
    finally:
        whole.unpersist()


def test_a_part_of_a_read_that_the_load_itself_narrowed_stays_narrow(
    spark: Any, landing: Landing, frame: Any
) -> None:
    part = (
        spark.read.format("lake")
        .option("lake", landing.uri)
        .option("where", "k >= 100 and n = 3")
        .option("to", "200")
    ).load("p")
    assert part.count() == 15
    assert part.where("k < 150").count() == 7
    assert part.union(frame.where("k < 100")).count() == 115


def test_spark_answers_random_queries_as_duckdb_does(spark: Any, landing: Landing) -> None:
    """All of one data frame, so that each query could spoil those that follow."""
    table = records(400, seed=11)
    landing.pool()
    for first in range(0, 400, 80):
        landing.lake.pool("p").branch().append(table.slice(first, 80))
    frame = spark.read.format("lake").option("lake", landing.uri).option("tasks", "3").load("p")
    assert disagreements(spark, frame, table, seed=7, count=QUERIES) == []
