"""A clone on Spark: read by Spark's own reader and by tasks, followed by a stream, compacted by tasks."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest

import pyspark_lake
from lake_core.ids import home_of
from log_lake.lake.pool import Pool
from log_lake.rewriting.compaction import compact
from spark_apps.datasource import LakeDataSource
from spark_apps.workers import OnSpark
from tests.spark.conftest import Landing

pytestmark = pytest.mark.spark


def filled(landing: Landing) -> Pool:
    """A clone with objects of its source, one inlined one, and one of its own; the source has more since."""
    pool = landing.lake.create_pool("p", key="k", settings={"load.inline": "0"})
    pool.branch().append(pa.table({"k": range(100), "n": range(100)}))
    pool.branch().append(pa.table({"k": range(50, 150), "n": range(100)}))
    landing.lake.configure_pool("p", {"load.inline": "64KiB"})
    pool = landing.lake.pool("p")
    pool.branch().append(pa.table({"k": [200], "n": [-1]}))
    clone = landing.lake.clone("p", "c")
    pool.branch().append(pa.table({"k": [300], "n": [-2]}))
    clone.branch().append(pa.table({"k": [400], "n": [-3]}))
    return clone


def test_spark_reads_follows_and_compacts_a_clone(spark: Any, landing: Landing) -> None:
    clone = filled(landing)
    rows = sorted((row["k"], row["n"]) for row in clone.at().to_table().to_pylist())
    frame = pyspark_lake.read(spark, "c", lake=landing.uri)
    assert sorted((row["k"], row["n"]) for row in frame.collect()) == rows
    source = LakeDataSource({"lake": landing.uri, "path": "c"})
    stream = source.streamReader(source.schema())
    start = stream.initialOffset()
    end = stream.latestOffset(start, stream.getDefaultReadLimit())
    sent = pickle.loads(pickle.dumps(list(stream.partitions(start, end))))
    assert [row["k"] for one in sent for batch in stream.read(one) for row in batch.to_pylist()][-1] == 400
    workers = OnSpark(lambda: spark, clone.context, always=True)
    compact(clone.branch(), clone.at().references, outputs=2, workers=workers)
    assert sorted((row["k"], row["n"]) for row in clone.at().to_table().to_pylist()) == rows
    assert not any(home_of(reference.object) for reference in clone.at().references)
