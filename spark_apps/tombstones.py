"""Removes deleted records from the objects, by searching and rewriting in Spark tasks: the tombstones agent's
application.

    spark-submit spark_apps/tombstones.py --lake URI --pool POOL

The driver plans.  A task searches one reference for deleted records and reads only the fields that decide.
References with deleted records are rewritten as compaction jobs, each committed on its own.  If it is killed at
any point, the next run plans again.
"""

from __future__ import annotations

import json
import sys
from argparse import Namespace

from log_lake.agents.jobs import recorded_if_kept
from log_lake.agents.tombstones.run import apply
from log_lake.agents.work import encoded
from log_lake.console.parser import Parser
from log_lake.lake import Lake
from spark_apps import application
from spark_apps.session import spark_session
from spark_apps.workers import workers_of

AT_ONCE = "apply all deletes now, ignoring the pool's tombstones.apply age"


def _arguments(parser: Parser) -> None:
    parser.add_argument("--branch", default="main")
    parser.add_argument("--at-once", action="store_true", help=AT_ONCE)


def _act(args: Namespace, lake: Lake) -> int:
    branch = lake.pool(args.pool).branch(args.branch)
    with (
        recorded_if_kept(lake, agent="tombstones", pool_name=args.pool, branch=args.branch) as job,
        spark_session("lake tombstones", remote=args.remote) as spark,
    ):
        workers = workers_of(spark, lake.context)
        result = apply(branch, now=lake.context.now(), at_once=args.at_once, workers=workers)
        job.update(encoded(result))
    print(json.dumps(encoded(result)))
    return 0


def main(argv: list[str] | None = None) -> int:
    """Runs the submitted application; prints a JSON line to standard output."""
    description = "Apply what was deleted in a pool, on Spark."
    return application.main(_act, argv, name="tombstones", description=description, arguments=_arguments)


if __name__ == "__main__":
    sys.exit(main())
