"""`python -m local up | status | down | airflow`: the services left running on this machine (make up, make
down).

Standard output has their addresses and how to log in, standard error the progress.  The exit status is 0 if it
succeeded (`status`: if all are up) and 1 otherwise; `airflow ...` has that of the command.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from pathlib import Path
from typing import NoReturn

from local import airflow_service, credentials, services, spark_service
from local.errors import LocalError
from local.record import Started


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m local", description="Airflow and Spark on this machine.")
    parser.add_argument(
        "--run-dir", type=Path, default=services.RUN_DIR, help="where state and logs are kept"
    )
    commands = parser.add_subparsers(dest="command", required=True)
    up = commands.add_parser("up", help="start both, wait until they are healthy, and leave them running")
    up.add_argument("--only", choices=services.NAMES, help="start only this one")
    up.add_argument(
        "--lake",
        default=os.environ.get("LAKE"),
        help="the lake (default: $LAKE, or RUN_DIR/lake if it is not set)",
    )
    commands.add_parser("status", help="what is up")
    commands.add_parser("down", help="stop all that is up")
    airflow = commands.add_parser(
        "airflow", help="run an airflow command in the Airflow that is up", usage="%(prog)s COMMAND..."
    )
    airflow.add_argument("words", nargs=argparse.REMAINDER, metavar="COMMAND", help="as in: dags list")
    args = parser.parse_args()
    try:
        if args.command == "up":
            return bring_up(args.run_dir, only=args.only, lake=args.lake)
        if args.command == "status":
            return show_status(args.run_dir)
        if args.command == "airflow":
            run_airflow(args.run_dir.resolve(), args.words)
        return bring_down(args.run_dir)
    except LocalError as problem:
        print(f"{args.command}: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"{args.command}: interrupted", file=sys.stderr)
        return 130


def bring_up(run_dir: Path, *, only: str | None, lake: str | None) -> int:
    up = services.Services(
        run_dir=run_dir,
        lake=lake,
        airflow=only in {None, airflow_service.NAME},
        spark=only in {None, spark_service.NAME},
        detached=True,
    )
    if not up.start():
        print("It is up already.")
    show(run_dir.resolve())
    print("Stop:     make down")
    return 0


def show_status(run_dir: Path) -> int:
    up = show(run_dir.resolve())
    return 0 if up == len(services.NAMES) else 1


def bring_down(run_dir: Path) -> int:
    stopped = services.stop_all(run_dir)
    print(f"Stopped: {', '.join(stopped)}." if stopped else "Nothing was running.")
    return 0


def run_airflow(run_dir: Path, words: list[str]) -> NoReturn:
    """Becomes the `airflow` command, in the environment of the running Airflow: its database, DAGs and lake."""
    started = services.running(run_dir, airflow_service.NAME)
    if started is None:
        raise LocalError(f"no Airflow is up in {run_dir}: start one (`make up`)")
    arguments = words[1:] if words[:1] == ["--"] else words
    command = [sys.executable, "-m", "airflow", *arguments]
    quiet = {
        "PYTHONWARNINGS": "ignore:Could not import graphviz"
    }  # of every command on DAGs, before its answer
    os.execve(sys.executable, command, services.environ_of(started) | quiet)


def show(run_dir: Path) -> int:
    """Prints which services are up, their addresses and logins; returns how many are healthy."""
    healthy = 0
    for name in services.NAMES:
        started = services.running(run_dir, name)
        if started is None:
            print(f"{name.capitalize() + ':':9} not running")
            continue
        is_well = services.is_healthy(started)
        healthy += is_well
        for line in describe(started, credentials.load_or_make(run_dir / "credentials")):
            print(line)
        if not is_well:
            print(f"          not healthy; see {started.log}")
    return healthy


def describe(started: Started, secrets: credentials.Credentials) -> list[str]:
    if started.service == airflow_service.NAME:
        return [
            f"Airflow:  {airflow_service.url(started.ports['api'])}",
            f"          user {secrets.user}, password {secrets.password}",
            f"          lake {started.lake}",
            *([] if is_made(started.lake) else no_lake(started.lake, services.RUN_DIR / services.DEMO_LAKE)),
            f"          log {started.log}",
            "          the agents are paused until you switch them on, in the list of DAGs",
        ]
    return [
        f"Spark:    {spark_service.remote(started.ports['connect'], token=secrets.spark_token)}",
        f"          jobs {spark_service.url(started.ports['ui'])}",
        f"          log {started.log}",
    ]


def no_lake(lake: str, demo: Path) -> list[str]:
    """The lines that say what to do if there is no lake: make one, or start again with that of the demo, if any."""
    lines = [f"          there is no lake yet; make one: .venv/bin/lake init --lake {shlex.quote(lake)}"]
    if demo.exists():
        again = f"make down && LAKE={shlex.quote(str(demo))} make up"
        lines.append(f"          or show the lake of make demo: {again}")
    return lines


def is_made(lake: str) -> bool:
    """Whether the lake exists; a lake on another machine counts as existing."""
    from lake_core.errors import NotFound
    from log_lake.lake import Lake

    try:
        return "://" in lake or bool(Lake.open(lake))
    except NotFound:
        return False


if __name__ == "__main__":
    sys.exit(main())
