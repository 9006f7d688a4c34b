"""The names that users give to types (`--type ts=timestamp`), and the few types that objects store.

Declared names follow Spark SQL: `timestamp` is an instant (UTC, microseconds), `timestamp_ntz` a time
without zone.  `json` is text that holds one JSON value: the type of a field whose values do not share one.
"""

from __future__ import annotations

import re

import pyarrow as pa

from lake_core.errors import InvalidInput

JSON_MARK = {b"lake.type": b"json"}
"""Metadata of a string field that holds JSON."""

WIDE_MARK = {b"lake.wide": b"1"}
"""Metadata of an integer field with values that a double cannot hold, or of a time field with values that
nanoseconds cannot."""

SUM_MARK = {b"lake.sum": b"1"}
"""Metadata of a field that an aggregate pool sums: it has room for the sums of many records."""

ZNG_MARK = b"lake.zng"
"""Metadata of a field, or of a schema: the ZNG type of its values, if the Arrow type does not fully describe it
(decision 62)."""

_NAMED: dict[str, pa.DataType] = {
    "string": pa.string(),
    "binary": pa.binary(),
    "boolean": pa.bool_(),
    "bool": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "uint8": pa.uint8(),
    "uint16": pa.uint16(),
    "uint32": pa.uint32(),
    "uint64": pa.uint64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "timestamp_ns": pa.timestamp("ns", "UTC"),
}


def is_json(field: pa.Field) -> bool:
    """Whether the field holds JSON text."""
    return bool(field.metadata and field.metadata.get(b"lake.type") == b"json")


def is_wide(field: pa.Field) -> bool:
    """Whether the field has values that a wider type of the same kind cannot hold."""
    return bool(field.metadata and field.metadata.get(b"lake.wide") == b"1")


def is_sum(field: pa.Field) -> bool:
    """Whether the field holds sums."""
    return bool(field.metadata and field.metadata.get(b"lake.sum") == b"1")


def json_field(name: str) -> pa.Field:
    """Returns a field of JSON text with this name."""
    return pa.field(name, pa.string(), metadata=JSON_MARK)


def declared_field(name: str, text: str) -> pa.Field:
    """Returns the field that a user declares.  Raises InvalidInput for an unknown type name."""
    word = text.strip().lower()
    if word == "json":
        return json_field(name)
    if word in _NAMED:
        return pa.field(name, _NAMED[word])
    decimal = re.fullmatch(r"decimal\(([0-9]+),\s*([0-9]+)\)", word)
    if decimal and 1 <= int(decimal[1]) <= 38 and int(decimal[2]) <= int(decimal[1]):
        return pa.field(name, pa.decimal128(int(decimal[1]), int(decimal[2])))
    raise InvalidInput(
        f"type {text!r} of field {name!r} is unknown; use decimal(P,S), json, {', '.join(sorted(_NAMED))}"
    )


def show_type(field: pa.Field) -> str:
    """Returns the type of a field as `lake show` prints it."""
    if is_json(field):
        return "json"
    if pa.types.is_struct(field.type):
        return "struct<" + ", ".join(f"{f.name}: {show_type(f)}" for f in field.type) + ">"
    if pa.types.is_list(field.type):
        return f"list<{show_type(field.type.value_field)}>"
    if pa.types.is_map(field.type):
        return f"map<{show_type(field.type.key_field)}, {show_type(field.type.item_field)}>"
    if pa.types.is_decimal(field.type):
        return f"decimal({field.type.precision},{field.type.scale})"
    for name, kind in _NAMED.items():
        if kind == field.type:
            return name
    return str(field.type)
