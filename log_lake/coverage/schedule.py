"""Computes the intervals of a schedule: hours, days, weeks or months of a time zone; pure.

A day begins at midnight of its zone, so a day on which clocks change has 23 or 25 hours.  A week begins on
Monday.  An hour begins at minute 0 of its zone: where clocks change by half an hour, one has 90 minutes.

Python compares and adds two times of one zone by what the clock shows, and that time comes twice when clocks
are put back.  So all times are compared and added in UTC; the zone only decides where an interval begins.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

from lake_core.errors import InvalidInput

TimeSpan = tuple[dt.datetime, dt.datetime]
"""Two times in the zone of the schedule: from the first (inclusive) to the second (exclusive)."""

MAX_INTERVALS = 100_000
"""The most intervals of one answer: eleven years of hours.  More would be a mistake in a date."""

_HOUR = dt.timedelta(hours=1)

_SHORTEST = {"hour": _HOUR, "day": 24 * _HOUR, "week": 7 * 24 * _HOUR, "month": 28 * 24 * _HOUR}


def utc(moment: dt.datetime) -> dt.datetime:
    """Returns the same moment in UTC, where it may be compared and added."""
    return moment.astimezone(dt.UTC)


def latest_begin(begin: dt.datetime, until: dt.datetime, *, every: str) -> dt.datetime:
    """Returns `begin`; if more than `MAX_INTERVALS` might lie between it and `until`, a later time."""
    longest = (MAX_INTERVALS - 1) * _SHORTEST[every]
    return begin if utc(until) - utc(begin) <= longest else (utc(until) - longest).astimezone(begin.tzinfo)


def intervals(since: dt.datetime, until: dt.datetime, *, every: str, zone: dt.tzinfo) -> Iterator[TimeSpan]:
    """Yields the intervals from the one that contains `since`, as long as they end by `until`.

    Raises InvalidInput if there are more than `MAX_INTERVALS`.
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
        if utc(end) > utc(until):
            return
        yield begin, end
        begin = end
    if utc(_next(begin, every)) <= utc(until):
        raise InvalidInput(
            f"more than {MAX_INTERVALS:,} intervals lie between {since.isoformat()} and {until.isoformat()}: ask "
            "for fewer (--since, --until), or set a later intervals.since"
        )


def _floor(moment: dt.datetime, every: str) -> dt.datetime:
    """Returns the begin of the interval in which a moment lies, in its zone."""
    if every == "hour":
        while past := dt.timedelta(
            minutes=moment.minute, seconds=moment.second, microseconds=moment.microsecond
        ):  # twice if clocks change by half an hour in between
            moment = (utc(moment) - past).astimezone(moment.tzinfo)
        return moment
    day = moment.date()
    if every == "week":
        day -= dt.timedelta(days=day.weekday())
    return _midnight(day.replace(day=1) if every == "month" else day, moment.tzinfo)


def _next(begin: dt.datetime, every: str) -> dt.datetime:
    """Returns the end of the interval that begins at this time."""
    day = begin.date()
    match every:
        case "hour":
            hours = (_floor((utc(begin) + count * _HOUR).astimezone(begin.tzinfo), every) for count in (1, 2))
            return next(end for end in hours if utc(end) > utc(begin))
        case "month":
            day = (day + dt.timedelta(days=31)).replace(day=1)
        case _:
            day += dt.timedelta(days=7 if every == "week" else 1)
    return _midnight(day, begin.tzinfo)


def _midnight(day: dt.date, zone: dt.tzinfo | None) -> dt.datetime:
    return dt.datetime.combine(day, dt.time(), tzinfo=zone)
