"""A `where` on the leading key field narrows the key range that is read.

Spark hands conditions down where `spark.sql.python.filterPushdown.enabled` is on.  They only narrow: Spark applies
every one of them as well, so a range that is too large costs time and one that is too small would lose records.
"""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Iterator
from typing import Any

from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from lake_core.commits.landing import key_classes
from lake_core.keys import KeyRange
from lake_core.keys.encoding import AFTER
from lake_core.view import View
from spark_apps.datasource import options as opts
from spark_apps.datasource.reader import LakeReader

_MICROSECOND = dt.timedelta(microseconds=1)


class PushingReader(LakeReader):
    """A reader that hears of the filters."""

    def pushFilters(self, filters: list[Filter]) -> Iterator[Filter]:
        """Narrow the key range; every filter is left to Spark as well."""
        view = opts.open_view(self._pinned)
        for wanted in filters:
            narrowed = _range_of(wanted, view)
            if narrowed is not None:
                self._span = self._span.intersect(narrowed)
            yield wanted


def _range_of(wanted: Filter, view: View) -> KeyRange | None:
    """The keys that can fulfil a condition on the leading key field; None where it says nothing."""
    if not isinstance(wanted, EqualTo | In | GreaterThan | GreaterThanOrEqual | LessThan | LessThanOrEqual):
        return None
    leading = view.key.fields[0] if view.key.fields else None
    if leading is None or wanted.attribute != (leading.name,):
        return None
    key_class = key_classes(view.state, view.key).get(leading.name)
    compared = wanted.value if isinstance(wanted, In) else (wanted.value,)
    values = [_key_values(value, key_class) for value in compared]
    if not values or not all(values):
        return None
    bounds = sorted(view.bound(value) for between in values for value in between)
    if isinstance(wanted, EqualTo | In):
        return KeyRange(bounds[0], bounds[-1] + AFTER)
    upwards = isinstance(wanted, GreaterThan | GreaterThanOrEqual) != leading.descending
    return KeyRange(bounds[0], None) if upwards else KeyRange(b"", bounds[-1] + AFTER)


def _key_values(value: Any, key_class: str | None) -> list[Any]:
    """The least and the greatest key value that Spark may take for `value`; none where it is of another type.

    Spark compares what it was given: unsigned integers as decimals, instants cut to microseconds.
    """
    match key_class, value:
        case "number", decimal.Decimal() if value == value.to_integral_value():
            return [int(value)] if -(2**63) <= value < 2**64 else []
        case "number", int() | float() if not isinstance(value, bool):
            return [value]
        case "timestamp" | "timestamp with zone", dt.datetime():
            try:
                return [value - _MICROSECOND, value + _MICROSECOND]
            except OverflowError:
                return []
        case "date", dt.date() if not isinstance(value, dt.datetime):
            return [value]
        case ("string", str()) | ("bytes", bytes()) | ("boolean", bool()) | ("decimal", decimal.Decimal()):
            return [value]
    return []
