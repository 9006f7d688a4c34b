"""Compaction, the pieces of its jobs spread over Spark tasks: the compact agent's application.

    spark-submit spark_apps/compact.py --lake URI --pool POOL

The driver plans by the pool's policy and cuts each job's key range into pieces, one an output; a task merges one
piece in bounded memory and writes a finished object.  A job is committed as soon as its pieces are written, on its
own; several jobs of a pool are under way at once, so that a small one does not wait for a large one.  Killed at any
point and run again, it plans anew: what was committed stays, what was not is the vacuum's.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Sequence
from typing import Any

from lake_core import errors
from log_lake.agents.compact.publication import published
from log_lake.agents.compact.report import job_line, pool_line, start_line, summary
from log_lake.agents.compact.run import jobs_now, plan_pool
from log_lake.agents.jobs import recorded_if_kept
from log_lake.agents.request import OpenLake
from log_lake.compaction.gain import standing_of
from log_lake.compaction.jobs import CompactionJob, CompactionResult
from log_lake.console.parser import Parser
from log_lake.lake import Lake
from log_lake.lake.branch import Branch
from log_lake.rewriting.compaction import run_jobs
from spark_apps.session import OpenSpark, spark_session
from spark_apps.workers import workers_of

log = logging.getLogger(__name__)


def compact(spark: Any, branch: Branch, jobs: Sequence[CompactionJob]) -> list[CompactionResult]:
    """Carry out jobs; raises the first failure after all have been tried."""
    return run_jobs(
        branch,
        jobs,
        workers_of(spark, branch.context),
        progress=lambda job, result: log.info("%s", job_line(job, result)),
    )


def run(
    work: dict[str, Any], *, open_lake: OpenLake = Lake.open, open_spark: OpenSpark = spark_session
) -> dict[str, Any]:
    """The agent's task `run`: the jobs of one pool as `agents.compact.run.find` gave them."""
    lake = open_lake(work["lake"])
    pool = lake.pool(work["pool"])
    jobs, lost, before = jobs_now(lake, work)
    log.info("%s", start_line(work["pool"], jobs, lost=lost))
    results: list[CompactionResult] = []
    if jobs:  # otherwise Spark need not start
        size = sum(job.size for job in jobs)
        with open_spark(f"lake compact {work['pool']}", size=size) as spark:
            results = compact(spark, pool.branch(work["branch"]), jobs)
    after = standing_of(pool.at_branch(work["branch"]).references)
    done = summary(work["pool"], results, before=before, after=after)
    done |= published(pool, branch=work["branch"])
    log.info("%s", pool_line(done))
    return done


def main(argv: list[str] | None = None) -> int:
    """As a submitted application: a JSON line on standard output."""
    parser = Parser(description="Compact a pool, on Spark.")
    parser.add_argument("--lake", required=True, metavar="URI")
    parser.add_argument("--pool", required=True)
    parser.add_argument("--branch", default="main")
    parser.add_argument("--strategy", default=None, help="use this instead of the pool's compact.strategy")
    parser.add_argument("--remote", default=None, metavar="sc://HOST:PORT", help="a Spark Connect server")
    args = parser.parse_args(argv)
    logging.basicConfig(format="%(message)s")  # to standard error
    logging.getLogger("spark_apps").setLevel(logging.INFO)
    try:
        lake = Lake.open(args.lake)
        plan = plan_pool(lake, args.pool, branch=args.branch, strategy=args.strategy, now=lake.context.now())
        results: list[CompactionResult] = []
        with recorded_if_kept(lake, agent="compact", pool_name=args.pool, branch=args.branch) as job:
            if plan.jobs:
                with spark_session("lake compact", remote=args.remote) as spark:
                    results = compact(spark, lake.pool(args.pool).branch(args.branch), plan.jobs)
            pool = lake.pool(args.pool)
            after = standing_of(pool.at_branch(args.branch).references)
            done = summary(args.pool, results, before=plan.standing, after=after)
            done |= published(pool, branch=args.branch)
            job.update(done)
        print(json.dumps(done))
    except errors.LakeError as error:
        sys.stderr.write(f"compact: {error}\n")
        return error.exit_status
    return 0


if __name__ == "__main__":
    sys.exit(main())
