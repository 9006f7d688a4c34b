"""Decides which columns Spark's Parquet reader gives exactly as the lake means them, and how they become columns
of the pool.

Spark's reader does not read times of day, durations, nanoseconds and unsigned integers of 64 bits, because it
does not have these types.  Nor does it read fields of JSON, which are variants in Spark, or fields of type null
inside of lists and maps.

A stored field becomes the pool's field by casts that lose nothing: to wider integers and decimals, from numbers
to doubles that hold them, record by record and list by list.  A field that the object lacks is null.  Only the
lake makes any other union of types (to JSON, to nanoseconds).

Spark itself pushes the filters of a user's query down to Parquet, which for some values loses rows
(`predicates`).  So columns with such values are given in a form that Spark does not push down.  Outside of
lists and maps these are: floats; timestamps in milliseconds, because Spark cuts the other side to milliseconds
too; and dates and instants of an object with values of October 1582.  Pure; called by `plan`.
"""

from __future__ import annotations

import datetime as dt
from enum import Enum

import pyarrow as pa
from pyspark.sql import types as T

from lake_core.keys.encoding import ZONED, Instant, encode_value
from lake_core.records import Column
from lake_core.values.types import is_json, show_type
from spark_apps.datasource.types import spark_schema
from spark_apps.native.predicates import FIRST_MOVED, LAST_MOVED, guarded, quoted

RESERVED = "_tmp_metadata_"
"""A prefix of column names that Spark computes instead of reading."""


class NotNative(Exception):
    """A column, key range or condition that Spark's Parquet reader cannot express exactly; the message says
    why."""


def check_readable(field: pa.Field) -> None:
    """Raises NotNative if Spark's reader does not give the stored values of the field."""
    if fault := _fault(field, inside=False):
        raise NotNative(f"column {field.name!r} {fault}")


def check_names(names: list[str]) -> None:
    """Raises NotNative if Spark could take one column of an object for another, or for one of its own."""
    by_folded: dict[str, str] = {}
    for name in names:
        other = by_folded.setdefault(name.casefold(), name)
        if other != name:
            raise NotNative(f"columns {other!r} and {name!r} differ in case only")
        if name.startswith(RESERVED):
            raise NotNative(f"column {name!r} has a name that Spark reserves")


def _fault(field: pa.Field, *, inside: bool) -> str:
    kind = field.type
    if is_json(field):
        return "holds values of several kinds"
    if pa.types.is_null(kind):
        return "holds lists or maps of nulls" if inside else ""
    if pa.types.is_struct(kind):
        try:
            check_names([member.name for member in kind])
        except NotNative as reason:
            return f"is a record: {reason}"
        return next((fault for member in kind if (fault := _fault(member, inside=True))), "")
    if pa.types.is_list(kind):
        return _fault(kind.value_field, inside=True)
    if pa.types.is_map(kind):
        return _fault(kind.key_field, inside=True) or _fault(kind.item_field, inside=True)
    if pa.types.is_timestamp(kind):
        return "holds nanoseconds" if kind.unit == "ns" else ""
    if (
        pa.types.is_boolean(kind)
        or (pa.types.is_integer(kind) and not pa.types.is_uint64(kind))
        or pa.types.is_float32(kind)
        or pa.types.is_float64(kind)
        or pa.types.is_decimal128(kind)
        or pa.types.is_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_date32(kind)
    ):
        return ""
    return f"is of type {show_type(field)}"


def presented(stored: pa.Field | None, target: pa.Field, *, moved: bool) -> str:
    """Returns the pool's column as an expression over the object's columns; `stored` is None if the object has no
    such field.

    `moved`: whether the object may have dates or times of October 1582 in this column (`may_be_moved`).  Raises
    NotNative.
    """
    name = quoted((target.name,))
    return f"{_expression(name, stored, target, moved=moved)} as {name}"


def may_be_moved(field: pa.Field, statistics: Column | None) -> bool:
    """Whether the field may have values that Spark pushes down as other values.  `statistics` are those of the
    object that has the field."""
    kind = field.type
    if not (pa.types.is_date32(kind) or (pa.types.is_timestamp(kind) and kind.tz)):
        return pa.types.is_nested(kind)  # inside of it there are no statistics
    if statistics is None:
        return True
    if statistics.low is None or statistics.high is None:  # nothing but nulls
        return False
    first, last = (
        moment.date()
        if pa.types.is_date32(kind)
        else Instant((ZONED, int((moment - dt.datetime(1970, 1, 1)).total_seconds()), 0))
        for moment in (FIRST_MOVED, LAST_MOVED)
    )
    return statistics.low <= encode_value(last) and encode_value(first) <= statistics.high


def _is_guarded(kind: pa.DataType, *, moved: bool) -> bool:
    if pa.types.is_timestamp(kind) and kind.tz:
        return moved or kind.unit == "ms"
    return bool(pa.types.is_floating(kind) or (moved and pa.types.is_date32(kind)))


def _expression(column: str, stored: pa.Field | None, target: pa.Field, *, moved: bool) -> str:
    if stored is None or pa.types.is_null(stored.type):
        return f"cast(null as {ddl(_spark_type(target))})"
    check_readable(stored)
    return _united(column, stored, target, guard=_Guard.MOVED if moved else _Guard.PLAIN, depth=0)


class _Guard(Enum):
    """When a value is written so that Spark does not push it down to Parquet.  PLAIN: if its type needs that.
    MOVED: also dates and times that Spark would push down as others.  NONE: never."""

    MOVED = "moved"
    PLAIN = "plain"
    NONE = "none"


def _united(column: str, stored: pa.Field, target: pa.Field, *, guard: _Guard, depth: int) -> str:
    """Returns an expression that gives the values of a stored field in the type of the pool's field."""
    if is_json(target):
        raise NotNative(f"column {target.name!r} holds values of several kinds in other objects")
    kind, wanted_kind = stored.type, target.type
    if pa.types.is_struct(kind) and pa.types.is_struct(wanted_kind):
        return _record(column, stored, target, guard=guard, depth=depth)
    if pa.types.is_list(kind) and pa.types.is_list(wanted_kind):
        item = f"x{depth}"
        inner = _united(item, kind.value_field, wanted_kind.value_field, guard=_Guard.NONE, depth=depth + 1)
        return column if inner == item else f"transform({column}, {item} -> {inner})"
    if pa.types.is_map(kind) and pa.types.is_map(wanted_kind):
        key, item = f"k{depth}", f"x{depth}"
        if _united(key, kind.key_field, wanted_kind.key_field, guard=_Guard.NONE, depth=depth + 1) != key:
            raise NotNative(f"column {target.name!r} is a map whose keys have another type in other objects")
        inner = _united(item, kind.item_field, wanted_kind.item_field, guard=_Guard.NONE, depth=depth + 1)
        return column if inner == item else f"transform_values({column}, ({key}, {item}) -> {inner})"
    is_guarded = guard is not _Guard.NONE and _is_guarded(kind, moved=guard is _Guard.MOVED)
    value = guarded(column, kind) if is_guarded else column
    ours, theirs = _spark_type(stored), _spark_type(target)
    if ours == theirs:
        return value
    if not _is_exact(kind, wanted_kind):
        raise NotNative(
            f"column {target.name!r} is of type {show_type(stored)} here and {show_type(target)} in the pool"
        )
    return f"cast({value} as {ddl(theirs)})"


def _record(column: str, stored: pa.Field, target: pa.Field, *, guard: _Guard, depth: int) -> str:
    by_name = {member.name: member for member in stored.type}
    parts = []
    plain = [member.name for member in stored.type] == [member.name for member in target.type]
    for member in target.type:
        source = by_name.get(member.name)
        inner = f"{column}.{quoted((member.name,))}"
        if source is None or pa.types.is_null(source.type):
            value = f"cast(null as {ddl(_spark_type(member))})"
        else:
            value = _united(inner, source, member, guard=guard, depth=depth)
        plain = plain and value == inner
        parts += [f"cast(X'{member.name.encode().hex()}' as string)", value]
    return column if plain else f"if({column} is null, null, named_struct({', '.join(parts)}))"


def _is_exact(kind: pa.DataType, target: pa.DataType) -> bool:
    """Whether Spark's cast to the united type gives every value that the lake unites to it."""
    if pa.types.is_integer(kind):
        return bool(
            pa.types.is_integer(target) or pa.types.is_float64(target) or pa.types.is_decimal128(target)
        )
    if pa.types.is_float32(kind):
        return bool(pa.types.is_float64(target))
    return bool(pa.types.is_decimal128(kind) and pa.types.is_decimal128(target))


def _spark_type(field: pa.Field) -> T.DataType:
    return spark_schema(pa.schema([field])).fields[0].dataType


def ddl(kind: T.DataType) -> str:
    """Returns the type as Spark's SQL writes it.  Names of fields may have any characters."""
    if isinstance(kind, T.StructType):
        return "struct<" + ", ".join(f"{quoted((f.name,))}: {ddl(f.dataType)}" for f in kind) + ">"
    if isinstance(kind, T.ArrayType):
        return f"array<{ddl(kind.elementType)}>"
    if isinstance(kind, T.MapType):
        return f"map<{ddl(kind.keyType)}, {ddl(kind.valueType)}>"
    return kind.simpleString()
