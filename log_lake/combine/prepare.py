"""Prepares records of a load for the pool's kind, and finds values that the pool's functions cannot combine.

Counted fields get the value 1, and sums get a type with room to grow.  The rule itself is data
(`schemas.rule`).  Called by the builder of loads, and by the checks that separate bad records.
"""

from __future__ import annotations

import decimal

import pyarrow as pa
import pyarrow.compute as pc

from lake_core.errors import InvalidInput
from lake_core.keys import PoolKey
from lake_core.schemas.hidden import DELETED
from lake_core.schemas.rule import ROOM_DIGITS, SUM_DIGITS, Rule
from lake_core.values.types import SUM_MARK, WIDE_MARK, show_type
from log_lake.combine.declared import check_ordered, check_summed, check_type


def prepared(table: pa.Table, rule: Rule, key: PoolKey) -> pa.Table:
    """Returns the records of a load in the form that the pool stores: counted fields are 1, sums have room to
    grow.

    Raises InvalidInput if a field's type does not suit its function, a value leaves no room for sums, or a
    delete marker is not a boolean.
    """
    if rule.kind == "upsert":
        return _with_markers(table)
    if rule.kind != "aggregate":
        return table
    columns, fields = [], []
    for field, column in zip(table.schema, table.columns, strict=True):
        function = "" if field.name in key.names else rule.function(field.name)
        if function == "count":
            column = pa.repeat(pa.scalar(1, pa.int64()), table.num_rows)
            field = pa.field(field.name, pa.int64())
        elif function == "sum" and not pa.types.is_null(field.type):
            field, column = _with_room(field, column)
        elif function in ("min", "max"):
            check_ordered(field, function)
        columns.append(column)
        fields.append(field)
    for name, function in rule.aggregates:
        if function == "count" and name not in table.schema.names:
            columns.append(pa.repeat(pa.scalar(1, pa.int64()), table.num_rows))
            fields.append(pa.field(name, pa.int64()))
    return pa.table(columns, schema=pa.schema(fields))


def _with_markers(table: pa.Table) -> pa.Table:
    index = table.schema.get_field_index(DELETED)
    if index < 0 or pa.types.is_boolean(table.schema.types[index]):
        return table
    if pa.types.is_null(table.schema.types[index]):  # a null type has no room for delete markers
        return table.set_column(index, DELETED, table.column(index).cast(pa.bool_()))
    kind = show_type(table.schema.field(index))
    raise InvalidInput(
        f"field {DELETED!r} is of type {kind}; in an upsert pool it must be a boolean (delete marker)"
    )


def _with_room(field: pa.Field, column: pa.ChunkedArray) -> tuple[pa.Field, pa.ChunkedArray]:
    """Returns a summed field as it is stored: exact numbers as decimals of 38 digits, others as doubles."""
    kind = field.type
    if pa.types.is_floating(kind):
        return pa.field(field.name, pa.float64(), metadata=SUM_MARK), column.cast(pa.float64())
    check_summed(field)
    values = column.cast(pa.decimal128(SUM_DIGITS, kind.scale if pa.types.is_decimal(kind) else 0))
    bounds = pc.min_max(values).as_py()
    largest = max((abs(v) for v in bounds.values() if v is not None), default=0)
    if largest >= _room(values.type):
        raise InvalidInput(f"field {field.name!r}: {largest} {_NO_ROOM}")
    wide = largest > 2**53
    mark = SUM_MARK | (WIDE_MARK if wide else {})
    return pa.field(field.name, values.type, metadata=mark), values


def _room(kind: pa.Decimal128Type) -> decimal.Decimal:
    """Returns the limit (exclusive) up to which a value leaves room for sums; digits after the point count
    too."""
    return decimal.Decimal(1).scaleb(SUM_DIGITS - ROOM_DIGITS - kind.scale)


_NO_ROOM = (
    f"has more than {SUM_DIGITS - ROOM_DIGITS} digits, so a sum of such values may need more than {SUM_DIGITS}; "
    "load it as a double (type.FIELD=double)"
)


def uncombinable(field: pa.Field, column: pa.ChunkedArray, function: str) -> dict[int, str]:
    """Returns by row why the function cannot combine its value.  Most columns have no such row."""
    if pa.types.is_null(field.type) or function not in ("sum", "min", "max"):
        return {}
    try:
        check_type(field, kind="aggregate", function=function)
    except InvalidInput:
        why = (
            "is not a number, so it has no sum"
            if function == "sum"
            else f"has no order, so it has no {function}"
        )
        return {
            row: f"{_cut(column[row])} {why}" for row in pc.indices_nonzero(column.is_valid()).to_pylist()
        }
    if (
        function == "sum"
        and pa.types.is_decimal(field.type)
        and field.type.precision > SUM_DIGITS - ROOM_DIGITS
    ):
        limit = pa.scalar(_room(field.type), pa.decimal128(SUM_DIGITS, field.type.scale))
        beyond = pc.greater_equal(pc.abs(column.cast(limit.type)), limit)
        return {row: f"{column[row]} {_NO_ROOM}" for row in pc.indices_nonzero(beyond).to_pylist()}
    return {}


def _cut(value: pa.Scalar) -> str:
    text = repr(value.as_py())
    return text if len(text) <= 60 else text[:57] + "..."
