"""Erasures, objects searched, rewritten and deleted by Spark tasks: the erasure agent's application.

    spark-submit spark_apps/erasure.py --lake URI [POOL...]                          goes on with pending ones
    spark-submit spark_apps/erasure.py --lake URI --where "email = 'a@b.org'" POOL   begins one, too

The driver decides and commits.  A task searches some objects, or reads them for their checksums, or writes one
object again.  At most `erasure.search.CHUNK` objects are searched by one Spark job, and at most
`erasure.run.REWRITES` are written before they are committed.  A task that fails is tried again; an application that
is killed resumes when it is run again.  Spark starts only if there is more than the driver does in less time than
Spark takes to start.
"""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from functools import partial

from lake_core.errors import LakeError
from log_lake.agents.driver import agent_of, find, report
from log_lake.agents.jobs import recorded_if_kept
from log_lake.agents.work import Result, encoded
from log_lake.console.logged import say_error
from log_lake.console.parser import Parser
from log_lake.lake import Lake
from spark_apps import application
from spark_apps.session import one_session, spark_session
from spark_apps.workers import on_spark


def _arguments(parser: Parser) -> None:
    parser.add_argument("--where", metavar="CONDITION", help="erase records that fulfil this")
    parser.add_argument("--key", metavar="K", help="erase records of this key")
    parser.add_argument("--from", metavar="K", help="erase records from this key on (inclusive)")
    parser.add_argument("--to", metavar="K", help="erase records up to this key (exclusive)")
    parser.add_argument("--grace", metavar="DURATION", help="as of lake erase")
    parser.add_argument("--keep-history", action="store_true", help="as of lake erase")
    parser.add_argument("--dry-run", action="store_true", help="say what holds such records; change nothing")


def _act(args: Namespace, lake: Lake) -> int:
    params = vars(args)
    remote = params.pop("remote")
    handed = find("erasure", params)
    results: list[Result] = []
    with one_session(partial(spark_session, remote=remote)) as spark:
        for work in handed.work:
            try:
                with recorded_if_kept(lake, agent="erasure", pool_name=work.pool):
                    results.append(agent_of("erasure").run(lake, work, on_spark(spark)))
                print(json.dumps(encoded(results[-1])))
            except LakeError as error:  # the other pools are not held back; `report` names this one
                say_error(f"erasure: {work.pool}", error)
    report("erasure", handed, results)
    return 0


def main(argv: list[str] | None = None) -> int:
    """As a submitted application: a JSON line a pool on standard output."""
    return application.main(
        _act,
        argv,
        name="erasure",
        description="Erase records from every object, and go on with pending erasures, on Spark.",
        arguments=_arguments,
        pools="default: those with pending erasures",
        logs="log_lake.agents",
    )


if __name__ == "__main__":
    sys.exit(main())
