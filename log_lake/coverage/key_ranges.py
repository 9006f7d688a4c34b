"""Converts an interval of time to a range of keys; pure.

A run of a schedule is for an interval, from its begin to before its end.  Its load replaces exactly the keys in
the interval.  The leading key field may have timestamps, dates, seconds since 1970, or texts that begin with a
date in ISO 8601.
"""

from __future__ import annotations

import datetime as dt

from lake_core.errors import InvalidInput, LakeError
from lake_core.keys import KeyRange, PoolKey
from lake_core.keys.encoding import AFTER, NAIVE, ZONED, Instant, Value, decode_key, encode_key

TIMES = ("timestamp", "timestamp with zone", "date")
"""Classes of key values that are times themselves."""

CLASSES = (*TIMES, "number", "string")
"""Classes of key values that may stand for a time: times, and also numbers and texts."""


def interval_range(begin: dt.datetime, end: dt.datetime, *, key: PoolKey, key_class: str) -> KeyRange:
    """Returns the keys from `begin` to before `end`, two instants with a zone.  `key_class` is the class of the
    leading field.

    Raises InvalidInput if the field has no time, or if its values cannot express the instants exactly.
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
    """Returns the error text for an interval that contains no time."""
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


def possible_ranges(
    begin: dt.datetime, end: dt.datetime, *, key: PoolKey, key_class: str | None
) -> list[KeyRange]:
    """Returns the keys from `begin` to before `end`.  If the class is not known, because the pool never had a
    record, it returns the keys of each class.

    Raises InvalidInput as `interval_range` does.
    """
    if key_class is not None:
        return [interval_range(begin, end, key=key, key_class=key_class)]
    ranges = []
    for one in CLASSES:
        try:
            ranges.append(interval_range(begin, end, key=key, key_class=one))
        except InvalidInput:  # days, and an interval of hours
            continue
    return ranges


def time_of(bound: bytes, *, key: PoolKey, zone: dt.tzinfo) -> dt.datetime | None:
    """Returns the time that an encoded bound of an interval stands for; None if it stands for none."""
    try:
        value = decode_key(bound.removesuffix(AFTER) if key.fields[0].descending else bound, key)[0]
        if isinstance(value, Instant):
            _, seconds, nanoseconds = value
            return _at(seconds, zone, microseconds=nanoseconds // 1000)
        if isinstance(value, str):
            text = dt.datetime.fromisoformat(value)
            return text if text.tzinfo else text.replace(tzinfo=dt.UTC)
        if isinstance(value, dt.date):
            return dt.datetime.combine(value, dt.time(), tzinfo=zone)
        return _at(value, zone) if isinstance(value, int | float) and not isinstance(value, bool) else None
    except (LakeError, ValueError, OverflowError, IndexError):
        return None


def _at(seconds: float, zone: dt.tzinfo, *, microseconds: int = 0) -> dt.datetime:
    since_1970 = dt.timedelta(seconds=seconds, microseconds=microseconds)
    return (dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + since_1970).astimezone(zone)
