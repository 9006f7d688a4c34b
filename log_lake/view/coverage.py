"""The calendar of a pool: each cell is an interval. A row is a month of days, a day of hours, or a year."""

from __future__ import annotations

import datetime as dt
from itertools import groupby

import msgspec

from lake_core.naming import MAIN
from log_lake.coverage.backfills import backfills_of
from log_lake.coverage.coverage import LATE, Coverage, IntervalCoverage, coverage_of, has_schedule
from log_lake.lake import Lake

MAX_CELLS = 1_100
"""The most intervals that are shown, the newest ones: three years of days, or six weeks of hours."""
MAX_BACKFILLS = 20
"""The most commands that are shown, the first ones."""
DAG = "lake_intervals"

_ROWS = {"hour": "%Y-%m-%d", "day": "%Y-%m", "week": "%G", "month": "%Y"}
"""For each length of intervals: the format in which a row is named, from the begin of an interval in it."""


class CalendarCell(msgspec.Struct, frozen=True):
    """An interval in the calendar: its column from 0, its begin and end as text, its state.

    If it is held: the version that brought it, and when that was loaded, in seconds since 1970.
    """

    column: int
    begin: str
    end: str
    state: str
    version: int | None
    loaded: float | None


class CalendarRow(msgspec.Struct, frozen=True):
    """The intervals of a month, a day or a year."""

    name: str
    cells: list[CalendarCell]


class ShownBackfill(msgspec.Struct, frozen=True):
    """A backfill of gaps that follow one another: its dates, as Airflow takes them, and the command."""

    first: str
    last: str
    command: str


class ShownCoverage(msgspec.Struct, frozen=True):
    """The calendar, oldest row first; `total`, `gaps` and `late` count intervals that are not shown, too.

    `complete`: the time before which all intervals are held; "" if the first is not held.  `cut_before`:
    intervals before it are left out, because there are too many; "" if none is.  `told`: whether the keys stand
    for times; otherwise there are no rows.  `late_set`: whether an interval can be late.
    """

    told: bool
    every: str = ""
    zone: str = ""
    rows: list[CalendarRow] = []
    total: int = 0
    gaps: int = 0
    late: int = 0
    complete: str = ""
    cut_before: str = ""
    late_set: bool = False
    dag: str = DAG
    backfills: list[ShownBackfill] = []
    backfills_in_all: int = 0


def coverage_page(lake: Lake, pool_name: str, *, branch: str = MAIN) -> ShownCoverage:
    """Returns the calendar of a branch up to now.  Raises what `coverage_of` raises."""
    view = lake.pool(pool_name).at(branch)
    return shown_of(coverage_of(view)) if has_schedule(view) else ShownCoverage(told=False)


def shown_of(coverage: Coverage) -> ShownCoverage:
    """Returns the calendar of a coverage; pure."""
    every, newest = coverage.policy.every, coverage.intervals[-MAX_CELLS:]
    rows = groupby(newest, key=lambda one: one.begin.strftime(_ROWS[every]))
    backfills = backfills_of(coverage)
    return ShownCoverage(
        True,
        every,
        str(coverage.policy.zone),
        [CalendarRow(name, [_cell(one, every) for one in ones]) for name, ones in rows],
        len(coverage.intervals),
        len(coverage.gaps),
        sum(one.state == LATE for one in coverage.gaps),
        "" if coverage.complete is None else _text(coverage.complete, every),
        "" if coverage.cut_before is None else _text(coverage.cut_before, every),
        coverage.policy.late is not None,
        DAG,
        [
            ShownBackfill(one.first.isoformat(), one.last.isoformat(), " ".join(one.command(DAG)))
            for one in backfills[:MAX_BACKFILLS]
        ],
        len(backfills),
    )


def _cell(one: IntervalCoverage, every: str) -> CalendarCell:
    loaded = None if one.loaded is None else one.loaded.timestamp()
    return CalendarCell(
        _column(one.begin, every),
        _text(one.begin, every),
        _text(one.end, every),
        one.state,
        one.version,
        loaded,
    )


def _column(begin: dt.datetime, every: str) -> int:
    """Returns the column of an interval in its row.  When clocks are put back, an hour occurs twice: both have one
    column."""
    match every:
        case "hour":
            return begin.hour
        case "day":
            return begin.day - 1
        case "week":
            return begin.isocalendar().week - 1
    return begin.month - 1


def _text(moment: dt.datetime, every: str) -> str:
    return moment.strftime("%Y-%m-%d %H:%M %Z" if every == "hour" else "%Y-%m-%d")
