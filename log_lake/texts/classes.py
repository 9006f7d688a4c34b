"""Converts a value that a user gave to a class; conditions, keys and the library use the same rules.

A number becomes the decimal that prints like it, and a decimal the number that prints like it.  If only one of
timestamp and class has a zone, the other counts as UTC.  A date becomes its midnight.  Texts are read by
`value.read`, unless the class is number or boolean.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import decimal
import math
from typing import Any

import pyarrow as pa

from lake_core.keys.encoding import Instant, Value, class_of, from_scalar
from lake_core.values.numbers import as_class, shown_decimal
from log_lake.texts.value import NotReadable, in_zone, read

_MOMENTS = ("timestamp", "timestamp with zone")
"""The two classes of timestamps.  A value of one may be read as the other, and a date as either."""

_READ = ("decimal", "date", *_MOMENTS, "time", "duration")
"""The classes, besides bytes, that a text may be read as."""

_BEGIN = (*"0123456789+-.",)
"""By class: the characters with which a text of it may begin."""

_DAY = 86_400
_EPOCH = dt.date(1970, 1, 1).toordinal()


def of_class(value: Value, kind: str) -> Value:
    """Returns the value (not null) as one of this class.  Raises NotReadable, which says what the value is
    instead."""
    if class_of(value) == kind:
        return value
    if isinstance(value, str) and kind not in ("number", "boolean"):
        return read(value, kind)
    match kind, value:
        case "number", decimal.Decimal():
            converted = as_class("=", value, kind)
            if isinstance(converted, tuple):
                return converted[1]
            raise NotReadable("a decimal that no double is shown as")
        case "decimal", float() if not math.isfinite(value):
            raise NotReadable("not a number that a decimal can be")
        case "decimal", int() | float() if not isinstance(value, bool):
            return read(format(shown_decimal(value), "f"), kind)
        case "timestamp" | "timestamp with zone", Instant() if class_of(value).startswith("timestamp"):
            return in_zone(value, zoned=kind != "timestamp")
        case "timestamp" | "timestamp with zone", dt.date():
            midnight = Instant((0, (value.toordinal() - _EPOCH) * _DAY, 0))
            return in_zone(midnight, zoned=kind != "timestamp")
    raise NotReadable(f"a {class_of(value)}")


def readings(value: Value) -> list[Value]:
    """Returns the value (not null) in each other class that can hold it but does not compare with its own
    class."""
    own_class = class_of(value)
    values = []
    for kind in _kinds(value):
        if kind != own_class:
            with contextlib.suppress(NotReadable):
                values.append(of_class(value, kind))
    return values


def _kinds(value: Value) -> tuple[str, ...]:
    """Returns the classes that may have a reading of the value.  Fast for a text, because a condition may have
    thousands of them."""
    if isinstance(value, str):
        numeric = _READ if value[:1] in _BEGIN else ()
        return (*numeric, "bytes") if len(value) % 4 == 0 or value[:2] in ("x'", "X'") else numeric
    return _MOMENTS if isinstance(value, Instant | dt.date) else ()


def of_python(value: Any) -> Value:
    """Converts a Python value to the form of keys and conditions: a time becomes an instant, another value
    stays."""
    if isinstance(value, dt.datetime):
        kind = pa.timestamp("us", "UTC" if value.tzinfo else None)
        return from_scalar(pa.scalar(value.astimezone(dt.UTC) if value.tzinfo else value, kind))
    if isinstance(value, dt.time):
        return from_scalar(pa.scalar(value, pa.time64("us")))
    if isinstance(value, dt.timedelta):
        return from_scalar(pa.scalar(value, pa.duration("us")))
    return value
