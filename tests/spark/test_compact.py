"""Compaction on Spark: pieces of jobs spread over its tasks, each job committed on its own."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from lake_core.errors import Corrupt
from log_lake.agents.compact.run import plan_pool
from log_lake.compaction.jobs import CompactionJob
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.rewriting.compaction import run_jobs
from spark_apps.session import spark_session
from spark_apps.workers import workers_of
from tests.spark.conftest import Landing
from tests.support.agents import finder, run

find = finder("compact")

pytestmark = pytest.mark.spark


def deep(lake: Lake, name: str = "p", loads: int = 6, **declared: Any) -> Pool:
    """A pool of so many loads of 1,000 records, all of which overlap."""
    pool = lake.create_pool(name, key="k", **declared)
    for n in range(loads):
        pool.branch().append(pa.table({"k": list(range(1000)), "n": [n] * 1000}))
    return pool


def jobs_of(lake: Lake, name: str, strategy: str = "full") -> list[CompactionJob]:
    return list(plan_pool(lake, name, strategy=strategy, now=0.0).jobs)


@pytest.mark.parametrize("kind", ["append", "upsert"])
def test_a_pool_is_rewritten_by_tasks_and_reads_the_same(spark: Any, landing: Landing, kind: str) -> None:
    pool = deep(landing.lake, kind=kind)
    before = pool.at().to_table()
    done = run_jobs(pool.branch(), jobs_of(landing.lake, "p"), workers_of(spark, landing.lake.context))
    assert [d.version for d in done] == [7]
    assert pool.at().depth == 1
    assert pool.at().to_table() == before
    assert Lake.open(landing.uri).pool("p").at().to_table() == before


def test_each_job_is_a_transaction_and_one_that_fails_leaves_the_others_standing(
    spark: Any, landing: Landing
) -> None:
    pool = deep(landing.lake)
    for n in range(4):
        pool.branch().append(pa.table({"k": [10_000], "n": [n]}))
    held = pool.at().references
    low, high = [r for r in held if r.records > 1], [r for r in held if r.records == 1]
    landing.lake.store.put(pool.at().object_name(low[0]), b"garbage")
    with pytest.raises(Corrupt, match=low[0].object):
        run_jobs(
            pool.branch(),
            [CompactionJob(tuple(low), 1, "damaged"), CompactionJob(tuple(high), 1, "sound")],
            workers_of(spark, landing.lake.context),
        )
    assert next(t.message for _, t in pool.log()) == "compaction: sound"
    assert len(pool.at().references) == len(low) + 1


def test_a_job_whose_input_was_taken_meanwhile_is_dropped(spark: Any, landing: Landing) -> None:
    pool = deep(landing.lake)
    jobs = jobs_of(landing.lake, "p")
    overtaken = [jobs[0], CompactionJob(jobs[0].inputs[:2], 1, "a part of it")]
    before = pool.at().to_table()
    done = run_jobs(pool.branch(), overtaken, workers_of(spark, landing.lake.context))
    assert sorted(d.version is None for d in done) == [False, True]
    assert pool.at().to_table() == before


def test_the_agent_compacts_what_it_found_once(spark: Any, landing: Landing) -> None:
    deep(landing.lake, "deep", loads=12)
    deep(landing.lake, "shallow", loads=1)
    assert find({"lake": landing.uri, "dry_run": True}) == []
    (work,) = find({"lake": landing.uri})
    assert (work["pool"], len(work["jobs"][0]["inputs"])) == ("deep", 12)
    done = run("compact", work, open_spark=spark_session)
    assert (done["jobs"], done["inputs"], done["depth_before"], done["depth_after"]) == (1, 12, 12, 1)
    again = run("compact", work, open_spark=spark_session)  # the task is run again after it has died
    assert (again["jobs"], again["depth_after"]) == (0, 1)
    assert find({"lake": landing.uri}) == []
