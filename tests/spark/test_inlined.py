"""Loads that lie in the journal, on Spark: reads both ways, streams, changes, compaction by its tasks."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest

import pyspark_lake
from lake_core.store.meter import meter_of
from log_lake.lake.pool import Pool
from log_lake.rewriting.compaction import compact
from spark_apps.datasource import LakeDataSource
from spark_apps.workers import OnSpark
from tests.spark.conftest import Landing

pytestmark = pytest.mark.spark


def filled(landing: Landing) -> Pool:
    """A load in a file, and three in the journal, one of which was merged from a branch."""
    pool = landing.lake.create_pool("p", key="k", settings={"load.inline": "0"})
    pool.branch().append(pa.table({"k": range(100), "n": range(100)}))
    landing.lake.configure_pool("p", {"load.inline": "64KiB"})
    pool = landing.lake.pool("p")
    pool.branch().append(pa.table({"k": [1, 200], "n": [-1, -2]}))
    pool.create_branch("dev")
    pool.branch("dev").append(pa.table({"k": [300], "n": [-3]}))
    pool.branch().merge("dev")
    pool.branch().append(pa.table({"k": [400], "n": [-4]}))
    assert [bool(r.data) for r in pool.at().references].count(True) == 3
    return pool


def in_tasks(landing: Landing, **options: str) -> list[dict[str, Any]]:
    """The rows that tasks read, each partition as Spark sends it to them."""
    source = LakeDataSource({"lake": landing.uri, "path": "p"} | options)
    reader = source.reader(source.schema())
    sent = pickle.loads(pickle.dumps(list(reader.partitions())))
    return [row for one in sent for batch in reader.read(one) for row in batch.to_pylist()]


def test_tasks_read_records_and_changes(landing: Landing) -> None:
    pool = filled(landing)
    assert in_tasks(landing) == pool.at().to_table().to_pylist()
    changed = in_tasks(landing, changes="true", since="1")
    assert [(row["_version"], row["k"]) for row in changed] == [(2, 1), (2, 200), (5, 300), (6, 400)]


def test_a_stream_delivers_each_load_once(landing: Landing) -> None:
    filled(landing)
    source = LakeDataSource({"lake": landing.uri, "path": "p"})
    stream = source.streamReader(source.schema())
    start = stream.initialOffset()
    end = stream.latestOffset(start, stream.getDefaultReadLimit())
    sent = pickle.loads(pickle.dumps(list(stream.partitions(start, end))))
    rows = [row["k"] for one in sent for batch in stream.read(one) for row in batch.to_pylist()]
    assert rows == [*range(100), 1, 200, 300, 400]


def test_spark_reads_files_itself_and_the_journal_by_the_data_source(spark: Any, landing: Landing) -> None:
    pool = filled(landing)
    frame = pyspark_lake.read(spark, "p", lake=landing.uri)
    found = sorted((row["k"], row["n"]) for row in frame.collect())
    assert found == sorted((row["k"], row["n"]) for row in pool.at().to_table().to_pylist())
    assert frame.where("n < 0").count() == 4


def test_tasks_of_a_compaction_get_the_records_with_the_references(spark: Any, landing: Landing) -> None:
    pool = filled(landing)
    before = pool.at().to_table().to_pylist()
    workers = OnSpark(lambda: spark, pool.context, always=True)
    asked = meter_of(pool.store).counts()
    compact(pool.branch(), pool.at().references, outputs=2, workers=workers)
    spent = meter_of(pool.store).counts() - asked
    assert spent.sent > sum(reference.size for reference in pool.at().references), "tasks send their counts"
    assert pool.at().to_table().to_pylist() == before
    assert not any(reference.data for reference in pool.at().references)
