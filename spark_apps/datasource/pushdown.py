"""A `where` on fields of the pool narrows what is read: keys, objects, records.

Spark hands conditions down where `spark.sql.python.filterPushdown.enabled` is on.  They only narrow: Spark applies
every one of them as well, so a condition that is too wide costs time and one that is too narrow would lose records.
"""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
)

from lake_core import conditions
from lake_core.errors import InvalidInput
from lake_core.keys.encoding import encode_value, from_scalar, key_class
from lake_core.records.conditions import Condition, Op
from lake_core.values.types import is_json
from spark_apps.datasource import options as opts
from spark_apps.datasource.reader import LakeReader

_MICROSECOND = dt.timedelta(microseconds=1)


class PushingReader(LakeReader):
    """A reader that hears of the filters."""

    def pushFilters(self, filters: list[Filter]) -> Iterator[Filter]:
        """Narrow what is read; every filter is left to Spark as well."""
        schema = opts.open_view(self._pinned).schema
        for wanted in filters:
            narrowing = _condition(wanted, schema)
            if narrowing is not None:
                self.narrow(narrowing)
            yield wanted


def _condition(wanted: Filter, schema: pa.Schema) -> Condition | None:
    """A condition that holds of all records of which the filter does; None where nothing can be said."""
    path = getattr(wanted, "attribute", ())
    index = schema.get_field_index(path[0]) if len(path) == 1 else -1
    if index < 0:
        return None
    if isinstance(wanted, IsNull | IsNotNull):
        found: Condition = conditions.IsNull(path)
        return found if isinstance(wanted, IsNull) else conditions.Not(found)
    field = schema.field(index)
    if is_json(field) or pa.types.is_nested(field.type):
        return None
    kind = key_class(field.type)
    try:
        return conditions.check(_compared(wanted, path, kind), schema)
    except (InvalidInput, _NotTold):
        return None


class _NotTold(Exception):
    """Spark may take the value for another than it is."""


def _compared(wanted: Filter, path: tuple[str, ...], kind: str) -> Condition:
    def compare(op: Op, value: Any) -> Condition:
        return conditions.Compare(path, op, _encoded(value))

    match wanted:
        case EqualTo(_, value):
            low, high = _around(value, kind)
            return conditions.And((compare(">=", low), compare("<=", high)))
        case In(_, values):
            each = [_compared(EqualTo(path, value), path, kind) for value in values]
            return conditions.Or(tuple(each)) if len(each) > 1 else each[0]
        case GreaterThan(_, value) | GreaterThanOrEqual(_, value):
            return compare(">=", _around(value, kind)[0])
        case LessThan(_, value) | LessThanOrEqual(_, value):
            return compare("<=", _around(value, kind)[1])
    raise _NotTold


def _encoded(value: Any) -> bytes:
    if isinstance(value, dt.datetime):
        return encode_value(
            from_scalar(pa.scalar(value, pa.timestamp("us", "UTC" if value.tzinfo else None)))
        )
    return encode_value(value)


def _around(value: Any, kind: str) -> tuple[Any, Any]:
    """The least and the greatest value that Spark may take for `value`; raises where it is of another type.

    Spark compares what it was given: unsigned integers as decimals, instants cut to microseconds.
    """
    match kind, value:
        case "number", decimal.Decimal() if value == value.to_integral_value():
            if -(2**63) <= value < 2**64:
                return int(value), int(value)
        case "number", int() | float() if not isinstance(value, bool):
            return value, value
        case "timestamp" | "timestamp with zone", dt.datetime():
            try:
                return value - _MICROSECOND, value + _MICROSECOND
            except OverflowError as error:
                raise _NotTold from error
        case "date", dt.date() if not isinstance(value, dt.datetime):
            return value, value
        case ("string", str()) | ("bytes", bytes()) | ("decimal", decimal.Decimal()):
            return value, value
    raise _NotTold
