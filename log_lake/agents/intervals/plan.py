"""An interval of time as a range of keys, and as a path of files; pure.

A run of a schedule stands for an interval [begin, end).  Its load replaces exactly the keys in the interval.
The leading key field may hold timestamps, dates, seconds since 1970, or texts that begin with a date in ISO
8601.
"""

from __future__ import annotations

import datetime as dt

from lake_core.errors import InvalidInput
from lake_core.keys import KeyRange, PoolKey
from lake_core.keys.encoding import AFTER, NAIVE, ZONED, Instant, Value, encode_key
from log_lake.settings.time_format import interval_place


def interval_range(begin: dt.datetime, end: dt.datetime, *, key: PoolKey, key_class: str) -> KeyRange:
    """The keys of [begin, end), two instants with a zone.  `key_class` is the class of the leading field.

    Raises InvalidInput if the field holds no time, or if its values cannot express the instants exactly.
    """
    if not key.fields:
        raise InvalidInput(
            "an interval needs a key that begins with a time; this pool has no key, so append instead"
        )
    low, high = (_encoded(moment, key, key_class) for moment in (begin, end))
    if key.fields[0].descending:
        low, high = high + AFTER, low + AFTER
    if low >= high:
        raise InvalidInput(empty_interval(begin, end))
    return KeyRange(low, high)


def empty_interval(begin: dt.datetime, end: dt.datetime) -> str:
    """The error text for an interval that contains no time."""
    return (
        f"the interval from {begin.isoformat()} to {end.isoformat()} (exclusive) is empty: its end must come after "
        "its beginning; in Airflow, schedule by CronDataIntervalTimetable"
    )


def _encoded(moment: dt.datetime, key: PoolKey, key_class: str) -> bytes:
    if key_class == "date" and moment.time() == dt.time():
        return encode_key([moment.date()], key)  # the day that begins then, where the interval is
    return encode_key([_value(moment.astimezone(dt.UTC), key, key_class)], key)


def _value(moment: dt.datetime, key: PoolKey, key_class: str) -> Value:
    seconds = int((moment - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) / dt.timedelta(seconds=1))
    midnight = moment.time() == dt.time()
    match key_class:
        case "timestamp" | "timestamp with zone":
            return Instant((ZONED if "zone" in key_class else NAIVE, seconds, moment.microsecond * 1000))
        case "number":
            return seconds
        case "date" if midnight:
            return moment.date()
        case "date":
            raise InvalidInput(
                f"key field {key.names[0]!r} holds dates, so an interval must begin and end at midnight (got "
                f"{moment.isoformat()}); schedule whole days"
            )
        case "string":
            return moment.date().isoformat() if midnight else moment.strftime("%Y-%m-%dT%H:%M:%S")
    raise InvalidInput(
        f"intervals need a key that begins with a timestamp, a date, a number of seconds or a text; the key field "
        f"{key.names[0]!r} is a {key_class}: load this pool without intervals"
    )


def path_of(pattern: str, begin: dt.datetime) -> str:
    """The path of the files of the interval that begins at that time: the pattern with `%Y`, `%m`, `%d`, `%H`,
    ... filled in.

    The day and the hour are those in the zone of `begin`: a day in Tokyo begins on the day before in UTC.
    Raises InvalidInput if the pattern names no time, because every interval would load the same files.
    """
    try:
        interval_place(pattern)
    except ValueError as error:
        raise InvalidInput(f"intervals.source={pattern}: {error}") from error
    return begin.strftime(pattern)
