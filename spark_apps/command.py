"""Runs the agents from the command line, without Airflow: `find`, the work, and `report`, in one process.

    lake-agent compact --lake URI [POOL...]          in this process, without Spark
    lake-agent ingest --lake URI --spark             on Spark: LAKE_SPARK_REMOTE, LAKE_SPARK_MASTER, or local
    spark-submit spark_apps/command.py ingest --lake URI --spark        the same as a submitted application

It does what the agent's DAG does, with the same parameters, and may be stopped and repeated at any point.
Start it by cron or a systemd timer.  It logs to standard error what Airflow would show, and prints the totals
as JSON to standard output.  Work is recorded in `$jobs`.

The exit status is that of the error, as for `lake`.  If several pieces of work failed, and a retry may help one
of them, it is the status of that error.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import logging
import os
import sys
from typing import Any

from lake_core.errors import Incomplete, InvalidInput, LakeError
from log_lake.agents import driver
from log_lake.agents.agent import here
from log_lake.agents.put_off_jobs import record_put_off
from log_lake.agents.roster import AGENTS, PARAMETERS, ParameterKind
from log_lake.console.logged import log_to_stderr, say_error
from log_lake.console.parser import Parser, check_text
from log_lake.lake import Lake
from spark_apps.packs import carry_out
from spark_apps.session import spark_session

log = logging.getLogger(__name__)

Totals = dict[str, int]


def run_agent(
    agent: str, request: dict[str, Any], *, lake: Lake, on_spark: bool = False, **also: Any
) -> Totals:
    """Runs the agent and returns the totals; `also` are further arguments of `driver.find`.

    Raises what `find` raises.  If work failed, raises the first failure that may pass, otherwise Incomplete.
    """
    name = lake.store.uri

    def opened(_: str) -> Lake:
        return lake

    handed = driver.find(agent, {**request, "lake": name}, open_lake=opened, **also)
    if not request.get("dry_run"):
        record_put_off(lake, handed.put_off, agent=agent)
    if on_spark and handed.work:
        outcome = carry_out(agent, handed.work, open_lake=opened, open_spark=spark_session)
    else:
        outcome = driver.carry_out(agent, handed.work, open_lake=opened, open_workers=here)
    for failure in outcome.failures:
        log.error("%s", failure)
    try:
        return driver.report(agent, handed, outcome.results)
    except Incomplete as error:
        passing = [one for one in outcome.failures if isinstance(one, LakeError) and one.may_pass]
        if passing:
            raise passing[0] from error
        raise


def parser() -> Parser:
    """Returns the parser of the command line: a command for each agent, with an option for each of its
    parameters."""
    whole = Parser(prog="lake-agent", description="Run an agent once, without Airflow.")
    commands = whole.add_subparsers(dest="agent", required=True, metavar="AGENT")
    for name, agent in AGENTS.items():
        sub = commands.add_parser(name, help=agent.says)
        sub.add_argument("pools", nargs="*", metavar="POOL", help="default: all that have work")
        sub.add_argument("--lake", metavar="URI", help="the lake: a path, s3:// or gs:// (or set LAKE)")
        sub.add_argument("--spark", action="store_true", help="work on Spark; default: in this process")
        sub.add_argument("--dry-run", action="store_true", help="log what would be done; change nothing")
        sub.add_argument(
            "--any-time", action="store_true", help="work in paused pools and outside of upkeep.window too"
        )
        if agent.by_interval:
            for end in ("begin", "end"):
                sub.add_argument(
                    f"--{end}", metavar="TIME", help=f"{end} of the interval, as 2026-01-31T00:00Z"
                )
        for parameter in agent.parameters:
            option, row = f"--{parameter.replace('_', '-')}", PARAMETERS[parameter]
            if row.kind is ParameterKind.FLAG:
                how: dict[str, Any] = {"action": argparse.BooleanOptionalAction, "default": None}
            elif row.kind is ParameterKind.TEXTS:
                how = {"nargs": "+", "metavar": "NAME"}
            else:
                how = {
                    "type": int if row.kind is ParameterKind.COUNT else str,
                    "metavar": "N" if row.kind is ParameterKind.COUNT else "TEXT",
                }
            sub.add_argument(option, dest=f"asked_{parameter}", help=row.says, **how)
    return whole


def main(argv: list[str] | None = None) -> int:
    """Runs an agent as the command line says, and returns the exit status."""
    args = parser().parse_args(argv)
    log_to_stderr("log_lake.agents", "spark_apps")
    try:
        check_text(args)
        uri = args.lake or os.environ.get("LAKE")
        if not uri:
            raise InvalidInput("no lake: give --lake, or set LAKE")
        asked = {
            name.removeprefix("asked_"): value
            for name, value in vars(args).items()
            if name.startswith("asked_")
        }
        request = {"pools": args.pools, "dry_run": args.dry_run, **asked}
        lake = Lake.open(uri)
        also = {"any_time": args.any_time, **_interval(args, lake)}
        print(json.dumps(run_agent(args.agent, request, lake=lake, on_spark=args.spark, **also)))
    except LakeError as error:
        say_error("lake-agent", error)
        return error.exit_status
    return 0


def _interval(args: argparse.Namespace, lake: Lake) -> dict[str, Any]:
    """Returns what the intervals agent gets beside its parameters: the interval of `--begin` and `--end`, and an
    id of the run.  Empty for other agents.  Raises InvalidInput."""
    if args.agent != "intervals":
        return {}
    times: dict[str, dt.datetime | None] = {"begin": None, "end": None}
    if (args.begin is None) != (args.end is None):
        raise InvalidInput("give both --begin and --end, or neither")
    for name in times:
        text = getattr(args, name)
        try:
            time = None if text is None else dt.datetime.fromisoformat(text)
        except ValueError as error:
            raise InvalidInput(
                f"--{name} {text!r}: must be a time of ISO 8601, as 2026-01-31T00:00Z"
            ) from error
        times[name] = time if time is None or time.tzinfo else time.replace(tzinfo=dt.UTC)
    return {**times, "run": f"lake-agent:{lake.context.ids.new()}"}


if __name__ == "__main__":
    sys.exit(main())
