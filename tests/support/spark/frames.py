"""Writes, merges, deletes and reads frames with `pyspark_lake` over Spark Connect; prints the results as JSON.

    python -m tests.support.spark.frames LAKE

The lake has the pools `append` and `upsert` with the key `k`.  Run by test_masters.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from typing import Any

import pyspark_lake
from log_lake.lake import Lake
from log_lake.rewriting.compaction import compact
from spark_apps.session import spark_session


def main(lake: str) -> None:
    answers = {}
    with spark_session("frames") as spark:
        for pool in ("append", "upsert"):
            answers[pool] = go(spark, lake, pool)
    print(json.dumps(answers))


def go(spark: Any, lake: str, pool: str) -> dict[str, Any]:
    """Works on a pool, so that four keys are left: of five one was deleted by its key, one by a flag, one was
    replaced, and one is new."""
    first = spark.range(0, 5, 1, 2).selectExpr("id as k", "'old' as v")
    written, again = (pyspark_lake.write(first, pool, lake=lake, token="t") for _ in range(2))
    summary = pyspark_lake.summary(spark, pool, lake=lake)
    changed = spark.sql(
        "select * from values (2L, 'new', false), (4L, '', true), (50L, 'new', false) as t(k, v, gone)"
    )
    pyspark_lake.merge(spark, pool, changed, deleted="gone", lake=lake)
    pyspark_lake.delete(spark, pool, spark.sql("select 1L as k"), lake=lake)
    changes = pyspark_lake.changes(spark, pool, lake=lake).select("_change").collect()
    bounds = summary.fields.get("k")
    got = [list(row) for row in pyspark_lake.get(spark, pool, 2, lake=lake)]
    stored = Lake.open(lake).pool(pool)
    compact(stored.branch(), stored.at().references)  # no branch refers to the first objects any more
    old = [pyspark_lake.explain(spark, pool, lake=lake, at=1, lease=lease) for lease in (False, True)]
    newest = pyspark_lake.explain(spark, pool, lake=lake)
    return {
        "ways": ["parquet" in said for said in (*old, newest)],
        "written": [written.version, written.records, written.repeated],
        "again": [again.version, again.records, again.repeated],
        "summary": [summary.records, bounds and bounds.low, bounds and bounds.high],
        "got": got,
        "changes": Counter(row[0] for row in changes),
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
