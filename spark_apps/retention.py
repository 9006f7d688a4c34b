"""Retention of pools, with listing and deleting spread over Spark tasks: the retention agent's application.

    spark-submit spark_apps/retention.py --lake URI [POOL...]

The driver plans and commits; tasks list and delete objects (`vacuum.orphans`, `vacuum.execute`).  A task that fails
is tried again, and a run that is killed resumes when it is run again: deleting an object twice does no harm.  Spark
starts only if there are many names to list or to delete.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from lake_core import errors
from log_lake.agents.jobs import recorded_if_kept
from log_lake.agents.request import OpenLake
from log_lake.agents.retention.report import RetentionResult
from log_lake.agents.retention.run import DROPPED, plan, retain, retain_dropped
from log_lake.console.parser import Parser
from log_lake.lake import Lake
from log_lake.vacuum.dropped import plan_dropped
from spark_apps.session import OpenSpark, session_when_needed, spark_session
from spark_apps.workers import OnSpark

log = logging.getLogger(__name__)


def retain_pool(
    session: Callable[[], Any], lake: Lake, pool_name: str, *, branch: str = "main"
) -> RetentionResult:
    """Do what there is to do in a pool; `session` opens Spark when it is needed.

    Raises NotFound, Conflict, Corrupt, ObjectMissing, OutcomeUnknown, Unavailable.
    """
    return retain(lake, pool_name, branch=branch, workers=OnSpark(session, lake.context))


def run(
    work: dict[str, Any], *, open_lake: OpenLake = Lake.open, open_spark: OpenSpark = spark_session
) -> dict[str, Any]:
    """The agent's task `run`: one pool as `agents.retention.run.find` gave it."""
    lake = open_lake(work["lake"])
    if work["pool"] == DROPPED:
        return vars(retain_dropped(lake))
    with session_when_needed(f"lake retention {work['pool']}", open_spark=open_spark) as session:
        return vars(retain_pool(session, lake, work["pool"], branch=work["branch"]))


def main(argv: list[str] | None = None) -> int:
    """As a submitted application: a JSON line a pool on standard output."""
    parser = Parser(description="Expire old records and delete what is not needed any more, on Spark.")
    parser.add_argument("--lake", required=True, metavar="URI")
    parser.add_argument("--branch", default="main", help="the branch whose records expire")
    parser.add_argument("--remote", default=None, metavar="sc://HOST:PORT", help="a Spark Connect server")
    parser.add_argument("pools", nargs="*", metavar="POOL", help="default: those that have work")
    args = parser.parse_args(argv)
    logging.basicConfig(format="%(message)s")  # to standard error
    logging.getLogger("log_lake.agents").setLevel(logging.INFO)
    status = 0
    try:
        lake = Lake.open(args.lake)
        for pool in args.pools:
            lake.pool(pool)  # raises NotFound
        names = args.pools or [pool.name for pool in lake.pools()]
        with session_when_needed(
            "lake retention", open_spark=partial(spark_session, remote=args.remote)
        ) as session:
            for name in names:
                try:
                    if args.pools or not plan(lake, name, branch=args.branch).idle:
                        how = {"pool_name": name, "branch": args.branch}
                        with recorded_if_kept(lake, agent="retention", **how) as job:
                            done = vars(retain_pool(session, lake, name, branch=args.branch))
                            job.update(done)
                        print(json.dumps(done))
                except errors.LakeError as error:  # the other pools are not held back
                    sys.stderr.write(f"retention: {name}: {error}\n")
                    status = errors.Incomplete.exit_status
        if not args.pools and any(one.held is None for one in plan_dropped(lake)):
            print(json.dumps(vars(retain_dropped(lake))))
    except errors.LakeError as error:
        sys.stderr.write(f"retention: {error}\n")
        return error.exit_status
    return status


if __name__ == "__main__":
    sys.exit(main())
