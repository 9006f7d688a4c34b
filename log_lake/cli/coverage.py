"""`lake coverage`: which intervals a pool holds, lacks, or has late; and the backfills of those that it lacks."""

from __future__ import annotations

import datetime as dt
import shlex
from argparse import Namespace
from collections.abc import Iterator
from typing import Any

from lake_core.errors import InvalidInput
from lake_core.phrases import counted, printable
from log_lake.cli.opening import open_lake
from log_lake.console.output import print_json, print_rows, print_table, say
from log_lake.console.sink import print_text
from log_lake.coverage.backfills import backfills_of
from log_lake.coverage.coverage import (
    LATE,
    SAY_SINCE,
    Coverage,
    IntervalCoverage,
    check_schedule,
    coverage_of,
    has_schedule,
)
from log_lake.coverage.schedule import utc
from log_lake.coverage.settings import moment
from log_lake.coverage.table import key_rows

_JSON = ("begin", "end", "state", "version", "loaded", "due")


def coverage(args: Namespace) -> None:
    """Print the coverage of a branch: spans of intervals for people, each interval as JSON."""
    view = open_lake(args).pool(args.pool).at(args.branch)
    since, until = _moment(args.since, "--since"), _moment(args.until, "--until")
    if not has_schedule(view):
        if args.gaps or args.backfill or since or until:
            check_schedule(view)
        rows = [row | {"loaded": _text(row["loaded"])} for row in key_rows(view)]
        print_rows(
            rows, as_json=args.json, empty=f"{args.pool}: no ranges of keys; intervals.every=key keeps them"
        )
        return
    branch = coverage_of(view, since=since, until=until)
    if args.backfill:
        _print_backfills(branch, dag_id=args.dag_id)
        return
    shown = branch.gaps if args.gaps else branch.intervals
    if args.json:
        for one in shown:
            print_json({name: _text(vars(one)[name]) for name in _JSON})
        return
    print_table(list(_rows(Coverage(branch.policy, tuple(shown)))), empty="", whole=("from", "to"))
    print_text(printable(f"{args.pool}: {_summary(branch)}") + "\n")


def _rows(branch: Coverage) -> Iterator[dict[str, Any]]:
    """Yields one row for each run of intervals that follow one another without a gap and have the same
    state."""
    for state, ones in branch.spans:
        first = 0
        for at, one in enumerate(ones, 1):
            if at == len(ones) or utc(ones[at].begin) != utc(one.end):
                row = {"from": _text(ones[first].begin), "to": _text(one.end), "state": state}
                yield row | {"intervals": at - first, "loaded": _text(_loaded(ones[first:at]))}
                first = at


def _loaded(ones: tuple[IntervalCoverage, ...] | Any) -> dt.datetime | None:
    return max((one.loaded for one in ones if one.loaded), default=None)


def _summary(branch: Coverage) -> str:
    if not branch.intervals:
        return f"no interval is held; {SAY_SINCE}"
    number, lacking = len(branch.intervals), len(branch.gaps)
    late = sum(one.state == LATE for one in branch.intervals)
    words = f"{number - lacking:,} of {counted(number, f'{branch.policy.every}')} held"
    words += f", {late:,} late" if late else ""
    if branch.cut_before is not None:
        words += f"; those before {_text(branch.cut_before)} are left out: {SAY_SINCE}"
    return words + (
        f"; complete until {_text(branch.complete)}" if branch.complete else "; the first is not held"
    )


def _print_backfills(branch: Coverage, *, dag_id: str) -> None:
    commands = [one.command(dag_id) for one in backfills_of(branch)]
    for words in commands:
        print_text(shlex.join(words) + "\n")
    if len(commands) > 1:
        say("Airflow runs one backfill of a DAG at a time: start each when the one before has ended")
    if not commands:
        say("no gaps: nothing to backfill")


def _text(value: Any) -> Any:
    if not isinstance(value, dt.datetime):
        return "" if value is None else value
    return value.isoformat(timespec="seconds").replace("+00:00", "Z")


def _moment(text: str | None, option: str) -> dt.datetime | None:
    try:
        return None if text is None else moment(text)
    except ValueError as error:
        raise InvalidInput(f"{option} {text!r}: {error}") from error
