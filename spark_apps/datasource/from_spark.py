"""Converts records from Spark to the lake, and checks which types of columns a data frame may have.

`check_storable` runs when a write is planned, so that no task begins work that it cannot finish.  Other faults
show only in values (a date beyond the calendar): the task that meets one raises.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as T

from lake_core.errors import InvalidInput
from lake_core.keys.encoding import FIRST_DAY, LAST_DAY
from lake_core.values.types import json_field
from log_lake.columns.nested import Items, mask_of
from spark_apps.datasource.types import arrow_schema, is_variant
from spark_apps.datasource.variants import text_of_variant

_PLAIN = (
    T.BooleanType,
    T.IntegralType,
    T.FractionalType,
    T.StringType,
    T.CharType,
    T.VarcharType,
    T.BinaryType,
    T.DatetimeType,
    T.DayTimeIntervalType,
    T.NullType,
    T.VariantType,
)
_ADVICE = {
    T.YearMonthIntervalType: "write a number of months",
    T.CalendarIntervalType: "write a day-time interval",
    T.GeometryType: "write its bytes (st_asbinary)",
    T.GeographyType: "write its bytes (st_asbinary)",
}
_DAY = 86_400 * 10**6
"""Microseconds."""


def check_storable(schema: T.StructType) -> None:
    """Raises InvalidInput for a column of a type that the lake does not store."""
    for field in schema:
        _check(field.dataType, (field.name,))


def _check(kind: T.DataType, path: tuple[str, ...]) -> None:
    if isinstance(kind, T.StructType):
        for field in kind:
            _check(field.dataType, (*path, field.name))
    elif isinstance(kind, T.ArrayType):
        _check(kind.elementType, path)
    elif isinstance(kind, T.MapType):
        for inside in (kind.keyType, kind.valueType):
            if _holds(inside, T.VariantType):
                raise InvalidInput(
                    f"column {_shown(path)}: the lake has no variants inside a map; write it as a struct"
                )
            _check(inside, path)
        if _holds(kind.keyType, T.NullType):
            raise InvalidInput(
                f"column {_shown(path)}: the map's keys have no type ({kind.simpleString()}); cast it, "
                "as in cast(map() as map<string, string>)"
            )
    elif isinstance(kind, T.UserDefinedType):
        _check(kind.sqlType(), path)
    elif not isinstance(kind, _PLAIN):
        advice = _ADVICE.get(type(kind), "cast it to a type that it has, or leave it out")
        raise InvalidInput(f"column {_shown(path)}: the lake has no type {kind.simpleString()}; {advice}")


def _holds(kind: T.DataType, target: type[T.DataType]) -> bool:
    if isinstance(kind, T.StructType):
        return any(_holds(field.dataType, target) for field in kind)
    if isinstance(kind, T.ArrayType):
        return _holds(kind.elementType, target)
    if isinstance(kind, T.MapType):
        return _holds(kind.keyType, target) or _holds(kind.valueType, target)
    return isinstance(kind, target)


def stored_schema(schema: T.StructType) -> pa.Schema:
    """Returns the schema that a data frame's records have after `from_spark`."""
    return from_spark(pa.RecordBatch.from_pylist([], arrow_schema(schema))).schema


def from_spark(batch: pa.RecordBatch) -> pa.Table:
    """Returns a batch from Spark as a table, with variants as JSON.  Raises InvalidInput for a value that the lake
    cannot hold."""
    received = [
        _received(array, field, (field.name,))
        for array, field in zip(batch.columns, batch.schema, strict=True)
    ]
    return pa.table([array for array, _ in received], schema=pa.schema([field for _, field in received]))


def _received(array: pa.Array, field: pa.Field, path: tuple[str, ...]) -> tuple[pa.Array, pa.Field]:
    kind = field.type
    if is_variant(kind):
        return _texts(array, path), json_field(field.name)
    if pa.types.is_struct(kind):
        children = [_received(array.field(i), child, (*path, child.name)) for i, child in enumerate(kind)]
        fields = [child for _, child in children]
        received = pa.StructArray.from_arrays(
            [child for child, _ in children], fields=fields, mask=mask_of(array)
        )
        return (received, pa.field(field.name, received.type)) if fields else (array, field)
    if pa.types.is_list(kind):
        items = Items(array)
        values, item = _received(items.values, kind.value_field, path)
        received = items.as_lists(values, pa.list_(item))
        return received, pa.field(field.name, received.type)
    if pa.types.is_map(kind):
        for inside in (array.keys, array.items):
            _received(inside, pa.field(field.name, inside.type), path)
    _check_calendar(array, path)
    return array, pa.field(field.name, kind)


def _check_calendar(array: pa.Array, path: tuple[str, ...]) -> None:
    """Raises InvalidInput for a date or a time outside of the years 1 to 9999."""
    if pa.types.is_date32(array.type):
        days, low, high = array.cast(pa.int32()), FIRST_DAY, LAST_DAY
    elif pa.types.is_timestamp(array.type):
        days, low, high = array.cast(pa.int64()), FIRST_DAY * _DAY, (LAST_DAY + 1) * _DAY - 1
    else:
        return
    bounds = pc.min_max(days).as_py()
    for value in (bounds["min"], bounds["max"]):
        if value is not None and not low <= value <= high:
            day = value if low == FIRST_DAY else value // _DAY
            raise InvalidInput(
                f"column {_shown(path)}: {_day(day)} is outside of the years 1 to 9999; correct it or make it null"
            )


def _day(days: int) -> str:
    """Returns a day as Spark writes it; Arrow has no text for the farthest ones."""
    text = str(pa.array([days], pa.date32()).cast(pa.string())[0].as_py())
    return f"the day {days:,} days from 1970-01-01" if text.startswith("<") else text


def _shown(path: tuple[str, ...]) -> str:
    return repr(".".join(path))


def _texts(array: pa.StructArray, path: tuple[str, ...]) -> pa.Array:
    """Returns variants as typed JSON; a null variant becomes null, as everywhere in the lake."""
    valid = array.is_valid()
    present = array.filter(valid) if array.null_count else array
    parts = zip(present.field("value").to_pylist(), present.field("metadata").to_pylist(), strict=True)
    try:
        texts = pa.array([text_of_variant(value, metadata) for value, metadata in parts], pa.string())
    except ValueError as error:
        raise InvalidInput(f"column {_shown(path)}: the lake cannot hold a variant: {error}") from error
    return (
        pc.replace_with_mask(pa.nulls(len(array), pa.string()), valid, texts) if array.null_count else texts
    )
