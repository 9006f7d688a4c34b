"""Spark holds what it reads against the vacuum: the options lease, leaseFor and onMissing."""

from __future__ import annotations

import datetime as dt
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

import pyspark_lake
from lake_core.errors import InvalidInput, ObjectVacuumed
from log_lake.lake.pool import Pool
from log_lake.rewriting.compaction import compact
from log_lake.vacuum.execute import vacuum
from spark_apps.datasource import LakeDataSource
from spark_apps.native import read as native_read
from tests.spark.conftest import Landing

pytestmark = pytest.mark.spark


@pytest.fixture
def compacted(landing: Landing) -> Pool:
    """Two loads, and their compaction: version 2 has objects that are not needed any more."""
    landing.pool(lease_ttl="5s")
    pool = landing.lake.pool("p")
    for key in (1, 2):
        pool.branch().append(pa.table({"k": [key]}))
    return pool


def compact_all(pool: Pool) -> None:
    compact(pool.branch(), pool.at().references)


def load(spark: Any, landing: Landing, **options: str) -> Any:
    return spark.read.format("lake").option("lake", landing.uri).options(**options).load("p")


def keys(frame: Any) -> list[int]:
    found: list[int] = frame.toArrow()["k"].to_pylist()
    return found


def test_a_read_with_a_lease_reads_on_though_its_objects_were_vacuumed_otherwise(
    spark: Any, landing: Landing, compacted: Pool
) -> None:
    frame = load(spark, landing, lease="true", leaseFor="1h")
    assert keys(frame) == [1, 2]
    held = compacted.leases().live
    assert {(lease.note.kind, lease.note.version, lease.note.ttl) for lease in held} == {("read", 2, 3600.0)}
    compact_all(compacted)
    assert vacuum(compacted, grace=0.0).objects == 0
    assert keys(load(spark, landing, at="2")) == [1, 2]


def test_without_a_lease_an_old_revision_fails_or_says_what_was_left_out(
    spark: Any, landing: Landing, compacted: Pool
) -> None:
    compact_all(compacted)
    assert vacuum(compacted, grace=0.0).objects == 2
    assert keys(load(spark, landing, at="2", onMissing="warn")) == []
    assert keys(load(spark, landing)) == [1, 2]
    with pytest.raises(Exception, match="was vacuumed"):
        load(spark, landing, at="2").collect()


@pytest.mark.parametrize("key", ["k", "k,b"])
@pytest.mark.parametrize("gone", [1, 2])
def test_a_native_read_of_a_revision_that_was_vacuumed_in_part_says_so(
    spark: Any, landing: Landing, caplog: pytest.LogCaptureFixture, key: str, gone: int
) -> None:
    pool = landing.lake.create_pool("p", key=key)
    for number in (1, 2):
        pool.branch().append(pa.table({"k": [number], "b": ["x"]}))
    pool.branch().revert(str(gone))
    assert vacuum(pool, grace=0.0).objects == 1
    with pytest.raises(ObjectVacuumed, match=r"version 2 (was|are) vacuumed"):
        pyspark_lake.read(spark, "p", lake=landing.uri, at=2)
    assert "cannot read" not in caplog.text
    left = pyspark_lake.read(spark, "p", lake=landing.uri, at=2, onMissing="warn")
    assert keys(left) == [3 - gone]


def test_a_native_read_that_a_vacuum_meets_while_spark_lists_its_objects_is_refused(
    spark: Any, landing: Landing, compacted: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark leaves out an object that is gone when it lists it, so the frame would have fewer rows."""
    list_objects = native_read._parquet

    def vacuumed_meanwhile(*given: Any) -> Any:
        listed = list_objects(*given)
        assert vacuum(compacted, grace=0.0).objects == 2
        return listed

    compact_all(compacted)
    monkeypatch.setattr(native_read, "_parquet", vacuumed_meanwhile)
    with pytest.raises(ObjectVacuumed, match="2 objects of version 2 are vacuumed"):
        pyspark_lake.read(spark, "p", lake=landing.uri, at=2)


@pytest.mark.parametrize("key", ["k", "k,b"])
def test_a_native_read_does_not_need_an_object_whose_records_have_all_aged_off(
    spark: Any, landing: Landing, key: str
) -> None:
    pool = landing.lake.create_pool("p", key=key, settings={"age_off": "ts:1h"})
    now = dt.datetime.now(dt.UTC)
    for number, moment in ((1, now - dt.timedelta(days=1)), (2, now)):
        times = pa.array([moment], pa.timestamp("us", "UTC"))
        pool.branch().append(pa.table({"k": [number], "b": ["x"], "ts": times}))
    pool.branch().revert("1")
    assert vacuum(pool, grace=0.0).objects == 1
    assert keys(pyspark_lake.read(spark, "p", lake=landing.uri, at=2)) == [2]
    assert keys(load(spark, landing, at="2")) == [2]


def test_options_of_a_lease_that_make_no_sense_are_refused(landing: Landing, compacted: Pool) -> None:
    for options, fault in (
        ({"lease": "yes"}, "use true or false"),
        ({"leasefor": "1h"}, "add lease=true"),
        ({"lease": "true", "leasefor": "soon"}, "leaseFor=soon"),
        ({"lease": "true", "leasefor": "2d"}, "up to 1 d"),
    ):
        source = LakeDataSource({"lake": landing.uri, "path": "p", **options})
        with pytest.raises(InvalidInput, match=fault):
            source.reader(source.schema())


def test_a_stream_holds_what_it_has_not_delivered_until_it_stops(landing: Landing, compacted: Pool) -> None:
    source = LakeDataSource({"lake": landing.uri, "path": "p", "lease": "true"})
    stream: Any = source.streamReader(source.schema())
    end = stream.latestOffset(stream.initialOffset(), ReadAllAvailable())
    assert [lease.note.version for lease in compacted.leases().live] == [0]
    compact_all(compacted)
    assert vacuum(compacted, grace=0.0).objects == 0
    stream.latestOffset(end, ReadAllAvailable())
    stream._lease.renew()
    assert [lease.note.version for lease in compacted.leases().live] == [end["version"]]
    stream.stop()
    assert compacted.leases().all == ()


def test_a_query_of_a_stream_holds_a_lease_while_it_runs(
    spark: Any, landing: Landing, compacted: Pool, tmp_path: Path
) -> None:
    seen: list[int] = []

    def batch(frame: Any, number: int) -> None:
        seen.extend(lease.note.version for lease in compacted.leases().live)

    stream = spark.readStream.format("lake").option("lake", landing.uri).option("lease", "true").load("p")
    query = (
        stream.writeStream.foreachBatch(batch)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(600)
    assert seen == [0]
    for _ in range(600):  # Spark may end the process before it has deleted the lease, which then dies
        if not compacted.leases().live:
            return
        time.sleep(1)
    raise AssertionError("a lease is renewed though its query has ended")
