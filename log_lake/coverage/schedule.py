"""The intervals of a schedule: hours, days, weeks or months of a time zone; pure.

A day begins at midnight of its zone, so one in which clocks change has 23 or 25 hours.  A week begins on Monday.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

from lake_core.errors import InvalidInput

TimeSpan = tuple[dt.datetime, dt.datetime]
"""From the first (inclusive) to the second (exclusive), both in the zone of the schedule."""

MAX_INTERVALS = 100_000
"""Intervals of one answer: eleven years of hours; more would be a mistake in a date."""

_HOUR = dt.timedelta(hours=1)


def intervals(since: dt.datetime, until: dt.datetime, *, every: str, zone: dt.tzinfo) -> Iterator[TimeSpan]:
    """The intervals from that in which `since` lies, as far as they end by `until`.

    Raises InvalidInput if they are more than `MAX_INTERVALS`.
    """
    try:
        yield from _intervals(since, until, every=every, zone=zone)
    except OverflowError as error:
        raise InvalidInput(
            f"{since.isoformat()} to {until.isoformat()}: the years of a time are 1 to 9999"
        ) from error


def _intervals(since: dt.datetime, until: dt.datetime, *, every: str, zone: dt.tzinfo) -> Iterator[TimeSpan]:
    begin = _floor(since.astimezone(zone), every)
    for _ in range(MAX_INTERVALS):
        end = _next(begin, every)
        if end > until:
            return
        yield begin, end
        begin = end
    if _next(begin, every) <= until:
        raise InvalidInput(
            f"more than {MAX_INTERVALS:,} intervals lie between {since.isoformat()} and {until.isoformat()}: ask "
            "for fewer (--since, --until), or set a later intervals.since"
        )


def _floor(moment: dt.datetime, every: str) -> dt.datetime:
    """The begin of the interval in which a moment lies, in its zone."""
    if every == "hour":
        past = dt.timedelta(minutes=moment.minute, seconds=moment.second, microseconds=moment.microsecond)
        return (moment.astimezone(dt.UTC) - past).astimezone(moment.tzinfo)
    day = moment.date()
    if every == "week":
        day -= dt.timedelta(days=day.weekday())
    return _midnight(day.replace(day=1) if every == "month" else day, moment.tzinfo)


def _next(begin: dt.datetime, every: str) -> dt.datetime:
    """The end of the interval that begins then."""
    day = begin.date()
    match every:
        case "hour":
            return (begin.astimezone(dt.UTC) + _HOUR).astimezone(begin.tzinfo)
        case "month":
            day = (day + dt.timedelta(days=31)).replace(day=1)
        case _:
            day += dt.timedelta(days=7 if every == "week" else 1)
    return _midnight(day, begin.tzinfo)


def _midnight(day: dt.date, zone: dt.tzinfo | None) -> dt.datetime:
    return dt.datetime.combine(day, dt.time(), tzinfo=zone)
