"""A condition as a Spark column: the same answers as `lake_core.conditions.evaluate`, null logic included.

Spark compares as the lake does: NaN equals itself and comes last, strings by bytes.  What it would get wrong is
kept away from it: a value that a column's type cannot hold is not cast, which could round, but turned into the
comparison with its neighbour (`conditions.floor`).  A field is taken in the type that Spark has for it
(`sparktypes`): there nanoseconds are cut to microseconds, and what a condition says it says of the cut times.
"""

from __future__ import annotations

import decimal
import operator
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as f

from lake_core.conditions import And, Compare, Condition, In, IsNull, Not, Or
from lake_core.conditions.fields import find
from lake_core.conditions.show import show as show_condition
from lake_core.errors import InvalidInput
from lake_core.keys.encoding import Value, class_of, decode_value, from_scalar, key_class
from lake_core.records.conditions import OPS, Op, Path
from lake_core.values.floor import floor
from lake_core.values.text import show
from lake_core.values.types import is_json


def to_spark(condition: Condition, schema: pa.Schema) -> Column:
    """A checked condition on records of the lake's schema, read as `spark_schema(schema)`.

    Raises InvalidInput where it looks into a field of JSON, which Spark has as VARIANT.
    """
    match condition:
        case And(of):
            return reduce(operator.and_, (to_spark(member, schema) for member in of))
        case Or(of):
            return reduce(operator.or_, (to_spark(member, schema) for member in of))
        case Not(of):
            return ~to_spark(of, schema)
        case _:
            return _leaf(condition, schema)


def _leaf(leaf: Compare | In | IsNull, schema: pa.Schema) -> Column:
    field, inside = find(schema, leaf.field)
    if field is None:
        return f.lit(True) if isinstance(leaf, IsNull) else _unknown()
    column = _column(leaf.field)
    if isinstance(leaf, IsNull) and not inside:
        return column.isNull()
    if isinstance(leaf, IsNull) or is_json(field):
        raise InvalidInput(f"condition `{show_condition(leaf)}`: Spark cannot look into a field of JSON")
    values = [decode_value(value) for value in (leaf.values if isinstance(leaf, In) else (leaf.value,))]
    if values[-1] is None or class_of(values[-1]) != key_class(field.type):  # null sorts first
        return _unknown()
    kind = _spark_kind(field.type)
    if isinstance(leaf, In):
        return _in(column, values, kind)
    return _compare(column, leaf.op, values[0], kind)


def _column(path: Path) -> Column:
    return f.col(".".join("`" + name.replace("`", "``") + "`" for name in path))


def _unknown() -> Column:
    return f.lit(None).cast("boolean")


def _constant(column: Column, value: bool) -> Column:
    return f.when(column.isNotNull(), f.lit(value))


def _spark_kind(kind: pa.DataType) -> pa.DataType:
    """The type of the values that Spark sees, as far as they are fewer."""
    return pa.timestamp("us", kind.tz) if pa.types.is_timestamp(kind) else kind


def _compare(column: Column, op: Op, value: Value, kind: pa.DataType) -> Column:
    found = floor(value, kind)
    if found is None:
        return _constant(column, op in ("!=", ">", ">="))
    scalar, exact = found
    if not exact:
        if op in ("=", "!="):
            return _constant(column, op == "!=")
        op = "<=" if op in ("<", "<=") else ">"
    compared: Column = OPS[op](column, _literal(scalar))
    return compared


def _in(column: Column, values: list[Value], kind: pa.DataType) -> Column:
    floors = [floor(value, kind) for value in values if value is not None]
    held = [_literal(found[0]) for found in floors if found is not None and found[1]]
    if values[0] is None:
        held.append(f.lit(None))
    return column.isin(held) if held else _constant(column, False)


def _literal(scalar: pa.Scalar) -> Column:
    kind = scalar.type
    if pa.types.is_timestamp(kind):
        if kind.tz:
            return f.timestamp_micros(f.lit(scalar.value))
        return f.expr(f"timestamp_ntz '{show(from_scalar(scalar))}'")
    if pa.types.is_date(kind):  # `lit` would go by the calendar that Java had for dates before 1582
        return f.date_from_unix_date(f.lit(scalar.cast(pa.int32()).as_py()))
    value: Any = scalar.as_py()
    return f.lit(decimal.Decimal(value) if pa.types.is_uint64(kind) else value)
