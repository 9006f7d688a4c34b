"""Conditions of the lake as predicates over one object's columns, where both mean exactly the same.

The object's own schema decides, as in `log_lake.where.evaluate`: `classwise` narrows a comparison to the
class of the column, `floor` to a value that the column's type holds.  A field that the object lacks is null.  Spark
and the lake agree on booleans, numbers (NaN comes last and equals itself, -0.0 equals 0.0), texts and bytes (byte
by byte), dates and times.  A comparison with a field that Spark's reader does not return has no predicate
(`columns`).  Pure.
"""

from __future__ import annotations

import pyarrow as pa

from lake_core.conditions import And, Called, Compare, Condition, In, IsNull, Not, Or, Unless
from lake_core.conditions.classwise import NULL_VALUE, among
from lake_core.conditions.fields import find_field
from lake_core.keys.encoding import Value, decode_value, key_class
from lake_core.records.conditions import Path
from lake_core.values.numbers import Op
from lake_core.values.types import is_json
from log_lake.texts.floor import floor
from log_lake.where.evaluate import comparison
from spark_apps.native.columns import NotNative, check_readable
from spark_apps.native.predicates import (
    All,
    Always,
    Any,
    Compared,
    Constant,
    Empty,
    Inverted,
    NotTrue,
    Predicate,
    any_of,
)


def predicate_of(condition: Condition, schema: pa.Schema) -> Predicate:
    """Returns the predicate for a checked condition on records of an object with this schema.  Raises
    NotNative."""
    match condition:
        case And(of):
            return All(tuple(predicate_of(member, schema) for member in of))
        case Or(of):
            return Any(tuple(predicate_of(member, schema) for member in of))
        case Not(of):
            return Inverted(predicate_of(of, schema))
        case Unless(of):
            return NotTrue(predicate_of(of, schema))
        case Called():
            raise NotNative("a function of the user's own decides")
        case Compare() | In() | IsNull():
            return _leaf(condition, schema)


def _leaf(leaf: Compare | In | IsNull, schema: pa.Schema) -> Predicate:
    field = _field(leaf.field, schema)
    if field is None or pa.types.is_null(field.type):
        return Constant(True if isinstance(leaf, IsNull) else None)
    check_readable(field if len(leaf.field) == 1 else schema.field(leaf.field[0]))
    if isinstance(leaf, IsNull):
        return Empty(leaf.field)
    leaf_among = among(leaf, "" if pa.types.is_nested(field.type) else key_class(field.type))
    if leaf_among is None or isinstance(leaf_among, bool):
        return Always(leaf.field, leaf_among)
    if isinstance(leaf_among, Compare):
        return _compared(leaf.field, leaf_among.op, decode_value(leaf_among.value), field.type)
    equal = [
        Compared(leaf.field, "=", floored[0])
        for data in leaf_among.values
        if data != NULL_VALUE
        and (floored := floor(decode_value(data), field.type)) is not None
        and floored[1]
    ]
    rest = Always(leaf.field, None if leaf_among.values[0] == NULL_VALUE else False)
    return any_of([*equal, rest])


def _compared(path: Path, op: Op, value: Value, kind: pa.DataType) -> Predicate:
    meant = comparison(op, value, kind)
    return Always(path, meant) if isinstance(meant, bool) else Compared(path, *meant)


def _field(path: Path, schema: pa.Schema) -> pa.Field | None:
    """Returns the field at the path; None if the object has none.  Raises NotNative for a path into JSON."""
    field, _ = find_field(schema, path)
    if field is not None and is_json(field):
        raise NotNative(f"column {path[0]!r} holds values of several kinds")
    return field
