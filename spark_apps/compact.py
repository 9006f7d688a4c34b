"""Compaction, the pieces of its jobs spread over Spark tasks: the compaction agent's application.

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
from functools import partial
from typing import Any

from lake_core import errors
from lake_core.agents.compact.rewrite import PendingCompaction, rewrite
from lake_core.agents.compact.run import JobResult, job_line, plan_pool, run_jobs, still_there, summary
from lake_core.cli.parser import Parser
from lake_core.history import Reference
from lake_core.lake import Lake
from lake_core.lake.branch import Branch
from lake_core.naming import IdSource
from lake_core.objects.write import WrittenObject
from lake_core.store import open_store
from spark_apps.session import spark_session
from spark_apps.spread import parallelism, spread

log = logging.getLogger(__name__)

JOBS_AT_ONCE = 4


def compact(
    spark: Any, branch: Branch, jobs: Sequence[tuple[Sequence[Reference], int, str]]
) -> list[JobResult]:
    """Carry out jobs (inputs, outputs wanted, why); raises the first failure after all have been tried."""

    def on_spark(work: PendingCompaction) -> list[WrittenObject]:
        return spread(spark, partial(_rewrite, branch.store.uri, work), len(work.pieces))

    return run_jobs(
        branch,
        jobs,
        on_spark,
        parallelism=parallelism(spark),
        at_once=JOBS_AT_ONCE,
        progress=lambda done: log.info("%s", job_line(done)),
    )


def _rewrite(store: str, work: PendingCompaction, piece: int) -> list[WrittenObject]:
    """In a worker."""
    written = rewrite(work, piece, open_store(store), new_id=IdSource().new)
    return [] if written is None else [written]


def run(work: dict[str, Any]) -> dict[str, Any]:
    """The agent's mapped task: the jobs of one pool as `agents.compact.run.find` gave them."""
    lake = Lake.open(work["lake"])
    pool = lake.pool(work["pool"])
    jobs = still_there(pool.at(work["branch"]).references, work["jobs"])
    done: list[JobResult] = []
    if jobs:  # else a run before this one has done them: Spark is not worth starting
        with spark_session(f"lake compact {work['pool']}") as spark:
            done = compact(spark, pool.branch(work["branch"]), jobs)
    depth = pool.at(work["branch"]).depth
    return summary(work["pool"], done, depth_before=work["depth"], depth_after=depth)


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
        work = plan_pool(lake, args.pool, branch=args.branch, strategy=args.strategy, now=lake.context.now())
        jobs = [(job.inputs, job.outputs, job.why) for job in work.plan.jobs]
        done: list[JobResult] = []
        if jobs:
            with spark_session("lake compact", remote=args.remote) as spark:
                done = compact(spark, lake.pool(args.pool).branch(args.branch), jobs)
        depth = lake.pool(args.pool).at(args.branch).depth
        print(json.dumps(summary(args.pool, done, depth_before=work.plan.depth, depth_after=depth)))
    except errors.LakeError as error:
        sys.stderr.write(f"compact: {error}\n")
        return error.exit_status
    return 0


if __name__ == "__main__":
    sys.exit(main())
