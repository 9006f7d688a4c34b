"""Spark reads and writes a pool whose fields were renamed by the names that readers see."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import pyspark_lake
from lake_core.errors import InvalidInput
from log_lake.lake.pool import Pool
from spark_apps.datasource import LakeDataSource
from tests.spark.conftest import Landing

pytestmark = pytest.mark.spark


@pytest.fixture
def pool(landing: Landing) -> Pool:
    """A pool in which two loads overlap, and whose fields `a` and `c` were renamed and dropped."""
    made = landing.lake.create_pool("p", key="k")
    made.branch().append(pa.table({"k": [1, 2, 3], "a": [10, 20, 30], "c": ["x", "y", "z"]}))
    made.branch().append(pa.table({"k": [2, 9], "a": [21, 90], "c": ["v", "w"]}))
    made.rename_field(old="a", new="b")
    made.drop_field("c")
    made.branch().delete(where="b = 30")
    return made


EXPECTED = [(1, 10), (2, 20), (2, 21), (9, 90)]


def test_the_data_source_and_native_reads_have_the_new_names(
    spark: Any, landing: Landing, pool: Pool
) -> None:
    options = {"lake": landing.uri, "path": "p"}
    by_source = spark.read.format("lake").options(**options).load()
    assert by_source.columns == ["k", "b"]
    assert sorted(map(tuple, by_source.collect())) == EXPECTED
    assert sorted(map(tuple, by_source.where("b > 20").collect())) == [(2, 21), (9, 90)]
    where = spark.read.format("lake").options(**options, where="b > 20", columns="b").load()
    assert sorted(map(tuple, where.collect())) == [(21,), (90,)]
    native = pyspark_lake.read(spark, "p", lake=landing.uri)
    assert native.columns == ["k", "b"]
    assert sorted(map(tuple, native.collect())) == EXPECTED
    past = pyspark_lake.read(spark, "p", lake=landing.uri, at="2")
    assert past.columns == ["k", "a", "c"]
    assert past.where("a = 21").count() == 1


def test_a_frame_is_written_under_the_stored_names(spark: Any, landing: Landing, pool: Pool) -> None:
    frame = spark.createDataFrame([(20, 200)], "k long, b long")
    pyspark_lake.write(frame, "p", lake=landing.uri)
    assert pool.at().to_table(where="b = 200").to_pylist() == [{"k": 20, "b": 200}]
    assert pool.at().get(1).to_pylist() == [{"k": 1, "b": 10}]


def test_an_added_field_is_read_and_written_before_a_load_brings_it(
    spark: Any, landing: Landing, pool: Pool
) -> None:
    pool.add_field("x", "double")
    for frame in (
        spark.read.format("lake").options(lake=landing.uri, path="p").load(),
        pyspark_lake.read(spark, "p", lake=landing.uri),
    ):
        assert frame.columns == ["k", "b", "x"]
        assert sorted(map(tuple, frame.where("x is null").collect())) == [(*row, None) for row in EXPECTED]
    pyspark_lake.write(spark.createDataFrame([(20, 2.5)], "k long, x double"), "p", lake=landing.uri)
    assert pool.at().to_table(where="x > 2").to_pylist() == [{"k": 20, "b": None, "x": 2.5}]
    native = pyspark_lake.read(spark, "p", lake=landing.uri)
    assert [tuple(row) for row in native.where("x = 2.5").collect()] == [(20, None, 2.5)]


def rows_of(reader: Any, partitions: Any) -> list[dict[str, Any]]:
    return [row for one in partitions for batch in reader.read(one) for row in batch.to_pylist()]


def changes(landing: Landing, **since: str) -> list[dict[str, Any]]:
    given = {"lake": landing.uri, "path": "p", "changes": "true", "since": "0", "until": "main"} | since
    source = LakeDataSource(given)
    reader = source.reader(source.schema())
    return rows_of(reader, reader.partitions())


def test_changes_and_streams_have_the_newest_names(landing: Landing, pool: Pool) -> None:
    found = changes(landing)
    assert [(row["_change"], row.get("k"), row.get("b"), row["_where"]) for row in found] == [
        *(("insert", k, b, None) for k, b in ((1, 10), (2, 20), (3, 30), (2, 21), (9, 90))),
        ("delete", None, None, "b = 30"),
    ]
    stream = LakeDataSource({"lake": landing.uri, "path": "p"})
    reader = stream.streamReader(stream.schema())
    start = reader.initialOffset()
    partitions = reader.partitions(start, reader.latestOffset(start, reader.getDefaultReadLimit()))
    assert [tuple(row.values()) for row in rows_of(reader, partitions)][:2] == [(1, 10), (2, 20)]


def test_a_delete_by_a_field_that_is_dropped_by_now_cannot_be_said(landing: Landing, pool: Pool) -> None:
    pool.branch().delete(where="b = 20")
    version = pool.history.load().version
    pool.drop_field("b")
    with pytest.raises(InvalidInput, match="deletes by a condition on a field that was dropped since"):
        changes(landing)
    assert changes(landing, since=str(version)) == []
