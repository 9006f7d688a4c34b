"""Compaction, with the pieces of its jobs spread over Spark tasks: the compact agent's application.

    spark-submit spark_apps/compact.py --lake URI --pool POOL

The driver plans by the pool's policy and cuts each job's key range into pieces, one for each output.  A task
merges one piece in bounded memory and writes a finished object.  A job is committed as soon as its pieces are
written, independently of others.  Several jobs of a pool run at once, so that a small one does not wait for a
large one.  If it is killed at any point, the next run plans again: committed jobs stay, and the vacuum removes
the rest.
"""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Sequence
from typing import Any

from log_lake.agents.compact.run import finished, log_job, plan_pool
from log_lake.agents.jobs import recorded_if_kept
from log_lake.agents.work import encoded
from log_lake.compaction.jobs import CompactionJob, CompactionResult
from log_lake.console.parser import Parser
from log_lake.lake import Lake
from log_lake.lake.branch import Branch
from log_lake.rewriting.compaction import run_jobs
from spark_apps import application
from spark_apps.session import spark_session
from spark_apps.workers import workers_of


def compact(spark: Any, branch: Branch, jobs: Sequence[CompactionJob]) -> list[CompactionResult]:
    """Carries out jobs.  Raises the first failure after it has tried all."""
    return run_jobs(branch, jobs, workers_of(spark, branch.context), progress=log_job)


def _arguments(parser: Parser) -> None:
    parser.add_argument("--branch", default="main")
    parser.add_argument("--strategy", default=None, help="use this instead of the pool's compact.strategy")


def _act(args: Namespace, lake: Lake) -> int:
    plan = plan_pool(lake, args.pool, branch=args.branch, strategy=args.strategy, now=lake.context.now())
    results: list[CompactionResult] = []
    with recorded_if_kept(lake, agent="compact", pool_name=args.pool, branch=args.branch) as job:
        if plan.jobs:
            with spark_session("lake compact", remote=args.remote) as spark:
                results = compact(spark, lake.pool(args.pool).branch(args.branch), plan.jobs)
        done = finished(lake.pool(args.pool), results, branch=args.branch, before=plan.standing)
        job.update(encoded(done))
    print(json.dumps(encoded(done)))
    return 0


def main(argv: list[str] | None = None) -> int:
    """Runs the submitted application; prints a JSON line to standard output."""
    return application.main(
        _act,
        argv,
        name="compact",
        description="Compact a pool, on Spark.",
        arguments=_arguments,
        logs="log_lake.agents.compact",
    )


if __name__ == "__main__":
    sys.exit(main())
