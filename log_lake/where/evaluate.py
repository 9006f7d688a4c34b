"""Decides which records of a table fulfil a condition, by Arrow kernels, a column at a time.

The condition must be checked.  A field that the table lacks counts as null.  `classwise` gives the answer of a
comparison for the column's class.  Records of one object give the same answers in a united schema, because
uniting loses nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, reduce
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from lake_core.conditions.classwise import CACHED, NULL_VALUE, among
from lake_core.keys.encoding import Value, decode_value, encode_value, key_class
from lake_core.records.conditions import And, Called, Compare, Condition, In, IsNull, Not, Or, Path, Unless
from lake_core.values.numbers import Op
from lake_core.values.types import is_json
from log_lake.texts.floor import floor
from log_lake.where.mixed import in_json
from log_lake.where.own import called

Records: TypeAlias = pa.Table | pa.RecordBatch
Column: TypeAlias = pa.Array | pa.ChunkedArray
"""One value per record, in chunks if the records have chunks."""

_KERNELS: dict[Op, Callable[[Column, pa.Scalar], Column]] = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_NULL = pa.nulls(1, pa.bool_())[0]  # pa.scalar would load pandas, if it is installed
_NAN = encode_value(math.nan)


def evaluate(condition: Condition, records: Records) -> pa.BooleanArray:
    """Returns true, false or null for each record: whether it fulfils the condition.

    Raises InvalidInput for a column whose type objects do not store (a dictionary).
    """
    truths = truth(condition, records)
    return truths.combine_chunks() if isinstance(truths, pa.ChunkedArray) else truths


def holds(condition: Condition, records: Records) -> pa.BooleanArray:
    """Returns for each record whether it fulfils the condition; null counts as false."""
    return pc.fill_null(evaluate(condition, records), False)


def truth(condition: Condition, records: Records) -> Column:
    """Returns what `evaluate` returns, in the chunks of the records."""
    match condition:
        case And(of):
            return reduce(pc.and_kleene, (truth(member, records) for member in of))
        case Or(of):
            return reduce(pc.or_kleene, (truth(member, records) for member in of))
        case Not(of):
            return pc.invert(truth(of, records))
        case Called():
            return called(condition, records)
        case Unless(of):
            return pc.invert(pc.fill_null(truth(of, records), False))
        case _:
            return _leaf(condition, records)


def _leaf(leaf: Compare | In | IsNull, records: Records) -> Column:
    column, field, inside = _column(records, leaf.field)
    if isinstance(leaf, IsNull) and not inside:
        return pc.is_null(column)
    if is_json(field):
        return in_json(leaf, column, inside, _of_column)
    assert not isinstance(leaf, IsNull)
    return _of_column(leaf, column)


def _of_column(leaf: Compare | In, column: Column) -> Column:
    """Compares with a column of a plain type; the answer is null if the classes do not compare."""
    leaf_among = among(leaf, _class(column.type))
    if leaf_among is None:
        return pa.nulls(len(column), pa.bool_())
    if isinstance(leaf_among, bool):
        return _constant(column, leaf_among)
    if isinstance(leaf_among, Compare):
        return _compare(column, leaf_among.op, decode_value(leaf_among.value))
    return _in(column, leaf_among.values)


def column_at(records: Records, path: Path) -> Column:
    """Returns the column at the path, or nulls if the records have no such column.  The path must not lead into
    JSON."""
    return _column(records, path)[0]


def _column(records: Records, path: Path) -> tuple[Column, pa.Field, Path]:
    """Returns the column at the path, its field, and the rest of the path, which leads into the field's
    JSON."""
    absent = pa.nulls(records.num_rows), pa.field("", pa.null()), ()
    fields: pa.Schema | pa.StructType = records.schema
    column = None
    for depth, name in enumerate(path):
        index = fields.get_field_index(name)
        if index < 0:
            return absent
        field = fields.field(index)
        column = records.column(index) if column is None else pc.struct_field(column, [index])
        if is_json(field):
            return column, field, path[depth + 1 :]
        fields = field.type if pa.types.is_struct(field.type) else pa.schema([])
    return column, field, ()


def _class(kind: pa.DataType) -> str:
    """Returns the class of values that compare with the type's; "" for records and lists, which do not
    compare."""
    return "" if pa.types.is_nested(kind) else key_class(kind)


def _constant(column: Column, value: bool) -> Column:
    """Returns `value` for every record, but null where the column is null."""
    if not column.null_count:
        return pa.repeat(value, len(column))
    return pc.if_else(pc.is_valid(column), value, _NULL)


def comparison(op: Op, value: Value, kind: pa.DataType) -> bool | tuple[Op, pa.Scalar]:
    """Changes a comparison with a value of the type's class into one with a value that the type holds.

    If the answer is the same for every value of the type, returns that answer; a null still gives null.
    """
    floored = floor(value, kind)
    if floored is None:
        return op in ("!=", ">", ">=")
    nearest, exact = floored
    if exact:
        return op, nearest
    if op in ("=", "!="):
        return op == "!="
    return "<=" if op in ("<", "<=") else ">", nearest


def _compare(column: Column, op: Op, value: Value) -> Column:
    meant = comparison(op, value, column.type)
    if isinstance(meant, bool):
        return _constant(column, meant)
    op, value = meant
    if pa.types.is_floating(column.type) and pc.is_nan(value).as_py():
        return _compare_nan(column, op)
    return ordered(column, op, value)


def _compare_nan(column: Column, op: Op) -> Column:
    """Returns the comparison of doubles with NaN, which equals itself and comes after all numbers."""
    match op:
        case "=" | ">=":
            return pc.is_nan(column)
        case "!=" | "<":
            return pc.invert(pc.is_nan(column))
        case _:
            return _constant(column, op == "<=")


def ordered(column: Column, op: Op, value: pa.Scalar | pa.Array) -> Column:
    """Compares with values of the column's own type, which must not be NaN.

    Arrow's kernels answer false for every comparison of NaN except `!=`; here NaN comes after all numbers.
    """
    if pa.types.is_floating(column.type) and op in (">", ">="):
        return pc.invert(_KERNELS["<=" if op == ">" else "<"](column, value))
    return _KERNELS[op](column, value)


def _in(column: Column, values: tuple[bytes, ...]) -> Column:
    mask = pc.is_in(column, value_set=_value_set(values, column.type))
    if _NAN in values and pa.types.is_floating(column.type):  # `is_in` knows only one bit pattern of NaN
        mask = pc.or_(mask, pc.is_nan(column))
    if values[0] == NULL_VALUE:
        mask = pc.if_else(mask, True, _NULL)
    return pc.if_else(pc.is_valid(column), mask, _NULL) if column.null_count else mask


@lru_cache(maxsize=CACHED)
def exactly(data: bytes, kind: pa.DataType) -> pa.Scalar | None:
    """Returns the encoded value as a scalar of the type, or None if the type cannot hold it.

    Cached: when another delete is added to a set of a thousand, the set is built again from all their values.
    """
    floored = floor(decode_value(data), kind)
    return floored[0] if floored is not None and floored[1] else None


@lru_cache(maxsize=64)
def _value_set(values: tuple[bytes, ...], kind: pa.DataType) -> pa.Array:
    """Returns the values that the type can hold.  Cached, because a scan asks for them at every batch."""
    scalars = [value for data in values if data != NULL_VALUE and (value := exactly(data, kind)) is not None]
    if pa.types.is_floating(kind) and any(value.as_py() == 0 for value in scalars):
        scalars.append(pa.scalar(-0.0, kind))  # `is_in` takes -0.0 for another number
    return pa.array(scalars, kind)
