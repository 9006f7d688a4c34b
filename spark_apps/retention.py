"""Retention of pools, with listing and deleting spread over Spark tasks: the retention agent's application.

    spark-submit spark_apps/retention.py --lake URI [POOL...]

The driver plans and commits; tasks list and delete objects (`vacuum.orphans`, `vacuum.execute`).  A task that fails
is tried again, and a run that is killed resumes when it is run again: deleting an object twice does no harm.  Spark
starts only if there are many names to list or to delete.
"""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from functools import partial

from lake_core.errors import Incomplete, LakeError
from log_lake.agents.jobs import recorded_if_kept
from log_lake.agents.retention.run import plan, retain, retain_dropped
from log_lake.agents.work import encoded
from log_lake.console.logged import say_error
from log_lake.console.parser import Parser
from log_lake.lake import Lake
from log_lake.vacuum.dropped import plan_dropped
from spark_apps import application
from spark_apps.session import session_when_needed, spark_session
from spark_apps.workers import OnSpark


def _arguments(parser: Parser) -> None:
    parser.add_argument("--branch", default="main", help="the branch whose records expire")


def _act(args: Namespace, lake: Lake) -> int:
    status = 0
    for pool in args.pools:
        lake.pool(pool)  # raises NotFound
    names = args.pools or [pool.name for pool in lake.pools()]
    with session_when_needed(
        "lake retention", open_spark=partial(spark_session, remote=args.remote)
    ) as session:
        workers = OnSpark(session, lake.context)
        for name in names:
            try:
                if args.pools or not plan(lake, name, branch=args.branch).idle:
                    how = {"pool_name": name, "branch": args.branch}
                    with recorded_if_kept(lake, agent="retention", **how) as job:
                        done = encoded(retain(lake, name, branch=args.branch, workers=workers))
                        job.update(done)
                    print(json.dumps(done))
            except LakeError as error:  # the other pools are not held back
                say_error(f"retention: {name}", error)
                status = Incomplete.exit_status
    if not args.pools and any(one.held is None for one in plan_dropped(lake)):
        print(json.dumps(encoded(retain_dropped(lake))))
    return status


def main(argv: list[str] | None = None) -> int:
    """Runs the submitted application; prints a JSON line for each pool to standard output."""
    return application.main(
        _act,
        argv,
        name="retention",
        description="Expire old records and delete what is not needed any more, on Spark.",
        arguments=_arguments,
        pools="default: those that have work",
        logs="log_lake.agents",
    )


if __name__ == "__main__":
    sys.exit(main())
