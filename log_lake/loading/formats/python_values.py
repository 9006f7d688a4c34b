"""Builds columns from Python values, for blocks that Arrow's own JSON reader does not read exactly.

Types follow the values.  Values of one kind have its type; integers and doubles become doubles if nothing is
lost; records and lists get the types of their elements; a field of several kinds becomes JSON.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from lake_core.schemas.schema import EXACT_IN_DOUBLE
from lake_core.values.types import is_json, json_field
from log_lake.texts.fit import array_of
from log_lake.texts.typed_json import text_of


def table_from_records(
    records: list[dict[str, Any]], declared: dict[str, pa.Field], *, otherwise: tuple[str, ...] = ()
) -> pa.Table:
    """Returns the records as a table, with fields in the order in which they occur.  The caller must have
    converted the values of declared fields.

    A table without fields cannot count its records.  So if no record has a field, the table has the fields that
    `otherwise` names, all null.
    """
    names = dict.fromkeys(name for record in records for name in record) or dict.fromkeys(otherwise)
    fields, arrays = [], []
    for name in names:
        values = [record.get(name) for record in records]
        field = declared.get(name) or infer_field(name, values)
        fields.append(field)
        arrays.append(_array(values, field))
    return pa.table(arrays, schema=pa.schema(fields))


def infer_field(name: str, values: list[Any]) -> pa.Field:
    """Returns the field whose type holds these JSON values."""
    kinds = {_kind(v) for v in values if v is not None}
    if not kinds:
        return pa.field(name, pa.null())
    if kinds <= {"integer", "double"}:
        return _number_field(name, [v for v in values if v is not None], kinds)
    if len(kinds) > 1 or "decimal" in kinds:
        return json_field(name)
    kind = kinds.pop()
    if kind == "record":
        members: dict[str, list[Any]] = {}
        for record in values:
            for member, value in (record or {}).items():
                members.setdefault(member, []).append(value)
        if not members:
            return json_field(name)
        return pa.field(name, pa.struct([infer_field(*member) for member in members.items()]))
    if kind == "list":
        return pa.field(name, pa.list_(infer_field("item", [e for v in values if v is not None for e in v])))
    return pa.field(name, pa.bool_() if kind == "boolean" else pa.string())


_KINDS = (
    ("integer", int),
    ("double", float),
    ("string", str),
    ("record", dict),
    ("decimal", decimal.Decimal),  # a number that neither a 64-bit integer nor a double holds
)


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    for kind, python in _KINDS:
        if isinstance(value, python):
            return kind
    return "list"


def _number_field(name: str, values: list[Any], kinds: set[str]) -> pa.Field:
    integers = [v for v in values if isinstance(v, int)]
    if kinds == {"integer"}:
        if all(-(2**63) <= v < 2**63 for v in integers):
            return pa.field(name, pa.int64())
        return pa.field(name, pa.uint64()) if all(0 <= v < 2**64 for v in integers) else json_field(name)
    if all(abs(v) <= EXACT_IN_DOUBLE for v in integers):
        return pa.field(name, pa.float64())
    return json_field(name)


def _array(values: list[Any], field: pa.Field) -> pa.Array:
    store = _storing(field)
    stored = [None if value is None else store(value) for value in values]
    if is_json(field) or pa.types.is_nested(field.type):
        return pa.array(stored, field.type)
    return array_of(stored, field.type)


def _storing(field: pa.Field) -> Callable[[Any], Any]:
    """Returns a function that converts a value of the field, other than None, to what Arrow accepts.  A record
    keeps the members that it has."""
    if is_json(field):
        return text_of
    if pa.types.is_struct(field.type):
        members = {member.name: _storing(member) for member in field.type}
        return lambda value: (
            {name: members[name](v) for name, v in value.items() if v is not None and name in members}
            if isinstance(value, dict)
            else value
        )
    if pa.types.is_list(field.type):
        store = _storing(field.type.value_field)
        return lambda value: (
            [None if v is None else store(v) for v in value] if isinstance(value, list) else value
        )
    if pa.types.is_floating(field.type):
        return lambda value: float(value) if isinstance(value, int) else value
    return _as_it_is


def _as_it_is(value: Any) -> Any:
    return value
