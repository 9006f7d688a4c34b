"""Deleted records removed from the objects, searched and rewritten in Spark tasks: the tombstones agent's work.

    spark-submit spark_apps/tombstones.py --lake URI --pool POOL

The driver plans; a task searches one reference for deleted records, reading only the fields that decide; those that
hold some are rewritten as compaction jobs, each committed on its own.  Killed at any point and run again, it plans
anew.
"""

from __future__ import annotations

import json
import logging
import sys
from typing import Any

from lake_core import errors
from log_lake.agents.jobs import recorded_if_kept
from log_lake.agents.request import OpenLake
from log_lake.agents.tombstones import run as tombstones
from log_lake.agents.tombstones.report import ApplyResult
from log_lake.console.parser import Parser
from log_lake.lake import Lake
from log_lake.lake.branch import Branch
from spark_apps.session import OpenSpark, spark_session
from spark_apps.workers import workers_of


def apply_tombstones(spark: Any, branch: Branch, *, now: float, at_once: bool = False) -> ApplyResult:
    """Do what is due.  Raises ObjectMissing, Corrupt, OutcomeUnknown, Unavailable."""
    return tombstones.apply(branch, now=now, at_once=at_once, workers=workers_of(spark, branch.context))


def run(
    work: dict[str, Any], *, open_lake: OpenLake = Lake.open, open_spark: OpenSpark = spark_session
) -> dict[str, Any]:
    """The agent's task `run`: one pool as `agents.tombstones.run.find` gave it."""
    branch = open_lake(work["lake"]).pool(work["pool"]).branch(work["branch"])
    plan = tombstones.plan(branch, now=branch.context.now())
    if not (plan.removable or plan.suspects):  # Spark is not worth starting
        return vars(tombstones.apply(branch, now=branch.context.now()))
    size = sum(reference.size for reference in branch.revision(now=branch.context.now()).references)
    with open_spark(f"lake tombstones {work['pool']}", size=size) as spark:
        return vars(apply_tombstones(spark, branch, now=branch.context.now()))


def main(argv: list[str] | None = None) -> int:
    """As a submitted application: a JSON line on standard output."""
    parser = Parser(description="Apply what was deleted in a pool, on Spark.")
    parser.add_argument("--lake", required=True, metavar="URI")
    parser.add_argument("--pool", required=True)
    parser.add_argument("--branch", default="main")
    parser.add_argument(
        "--at-once",
        action="store_true",
        help="apply all deletes now, ignoring the pool's tombstones.apply age",
    )
    parser.add_argument("--remote", default=None, metavar="sc://HOST:PORT", help="a Spark Connect server")
    args = parser.parse_args(argv)
    logging.basicConfig(format="%(message)s")  # to standard error
    logging.getLogger("spark_apps").setLevel(logging.INFO)
    try:
        lake = Lake.open(args.lake)
        branch = lake.pool(args.pool).branch(args.branch)
        with (
            recorded_if_kept(lake, agent="tombstones", pool_name=args.pool, branch=args.branch) as job,
            spark_session("lake tombstones", remote=args.remote) as spark,
        ):
            result = apply_tombstones(spark, branch, now=branch.context.now(), at_once=args.at_once)
            job.update(vars(result))
        print(json.dumps(vars(result)))
    except errors.LakeError as error:
        sys.stderr.write(f"tombstones: {error}\n")
        return error.exit_status
    return 0


if __name__ == "__main__":
    sys.exit(main())
