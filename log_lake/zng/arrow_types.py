"""Maps ZNG types to Arrow types and back; docs/zng-zst.md lists them for users.

Every ZNG type has one Arrow type.  Several may share one (text: string, bstring, ip, net, error, enum), so a
field stores its ZNG type as metadata, `ZNG_MARK`.  Without the mark, the plainest of these types is meant.  A
type that only Arrow has is written as a named type, such as `lake.date` over int32, so the mapping works in
both directions.  Objects store half floats as floats; the mark keeps the original type.
"""

from __future__ import annotations

import re
from functools import lru_cache

import pyarrow as pa

from lake_core.errors import Corrupt, InvalidInput
from lake_core.values.types import JSON_MARK, ZNG_MARK, is_json
from log_lake.columns.nested import is_list
from log_lake.zng.text import type_text
from log_lake.zng.type_values import read_type_value, type_value
from log_lake.zng.types import (
    BOOL,
    BSTRING,
    BYTES,
    DECIMAL,
    DURATION,
    ERROR,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    IP,
    NET,
    NULL,
    STRING,
    TIME,
    TYPE,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    Array,
    Enum,
    Map,
    Named,
    Primitive,
    Record,
    Type,
    Union,
    plain,
)

MAX_UNION_TYPES = 127
"""The most types of one union, its null included: Arrow counts them in a signed byte."""

_PRIMITIVES: dict[Type, pa.DataType] = {
    UINT8: pa.uint8(),
    UINT16: pa.uint16(),
    UINT32: pa.uint32(),
    UINT64: pa.uint64(),
    INT8: pa.int8(),
    INT16: pa.int16(),
    INT32: pa.int32(),
    INT64: pa.int64(),
    DURATION: pa.duration("ns"),
    TIME: pa.timestamp("ns", "UTC"),
    FLOAT16: pa.float16(),
    FLOAT32: pa.float32(),
    FLOAT64: pa.float64(),
    DECIMAL: pa.binary(),
    BOOL: pa.bool_(),
    BYTES: pa.binary(),
    STRING: pa.string(),
    BSTRING: pa.string(),
    IP: pa.string(),
    NET: pa.string(),
    TYPE: pa.binary(),
    ERROR: pa.string(),
    NULL: pa.null(),
}
_PLAINEST = {
    arrow: kind for kind, arrow in _PRIMITIVES.items() if kind not in (DECIMAL, BSTRING, IP, NET, TYPE, ERROR)
}
_ARROW_ONLY = re.compile(
    r"lake\.(?:(date)|(json)|(timestamp|timestamp_ntz|time|duration)_(s|ms|us|ns)|decimal_(\d+)_(\d+))"
)


def arrow_field(name: str, kind: Type) -> pa.Field:
    """Returns the Arrow field for the values, with a mark if the Arrow type alone does not identify the ZNG
    type."""
    field = pa.field(name, arrow_type(kind), metadata=JSON_MARK if _is_json_type(kind) else None)
    return (
        field
        if zng_type(field) == kind
        else field.with_metadata({**(field.metadata or {}), ZNG_MARK: type_value(kind)})
    )


@lru_cache(maxsize=4_096)
def arrow_schema(kind: Type) -> pa.Schema:
    """Returns the Arrow schema of records that have this ZNG type (the type of a top-level value).  Raises
    InvalidInput if the type is no record."""
    record = plain(kind)
    if not isinstance(record, Record):
        raise InvalidInput(f"values of type <{type_text(kind)}> are no records; make them a field of one")
    fields = [arrow_field(name, child) for name, child in zip(record.names, record.children, strict=True)]
    return pa.schema(fields, metadata={ZNG_MARK: type_value(kind)} if isinstance(kind, Named) else None)


@lru_cache(maxsize=4_096)
def arrow_type(kind: Type) -> pa.DataType:
    """Returns the Arrow type for the values.  Raises InvalidInput for a union of too many types."""
    match kind:
        case Primitive():
            return _PRIMITIVES[kind]
        case Named():
            return arrow_only(kind) or arrow_type(kind.target)
        case Record():
            return pa.struct(
                [arrow_field(name, c) for name, c in zip(kind.names, kind.children, strict=True)]
            )
        case Array():
            return pa.list_(arrow_field("item", kind.inner))
        case Map():
            key, value = kind.children
            key_field = arrow_field("key", key).with_nullable(False)
            if pa.types.is_null(
                key_field.type
            ):  # `|{}|` in text: such maps are empty, and Arrow has no null keys
                key_field = key_field.with_type(pa.string())
            return pa.map_(key_field, arrow_field("value", value))
        case Union():
            if len(kind.children) >= MAX_UNION_TYPES:
                raise InvalidInput(
                    f"a union of {len(kind.children)} types; Arrow holds {MAX_UNION_TYPES - 1}"
                )
            fields = [arrow_field(f"c{at}", child) for at, child in enumerate(kind.children)]
            return pa.dense_union([*fields, pa.field("null", pa.null())])
        case Enum():
            return pa.string()
    raise TypeError(f"{kind!r} has no Arrow type")


def arrow_only(kind: Named) -> pa.DataType | None:
    """Returns the Arrow type for one of the lake's own type names; None for other names."""
    match = _ARROW_ONLY.fullmatch(kind.name)
    if match is None or not isinstance(kind.target, Primitive):
        return None
    date, json, class_name, unit, precision, scale = match.groups()
    if date:
        return pa.date32() if kind.target is INT32 else None
    if json or precision:
        if kind.target is not STRING:
            return None
        if json:
            return pa.string()
        return pa.decimal128(int(precision), int(scale)) if 1 <= int(precision) <= 38 >= int(scale) else None
    if kind.target is not INT64:
        return None
    if class_name == "time":
        return pa.time32(unit) if unit in ("s", "ms") else pa.time64(unit)
    if class_name == "duration":
        return pa.duration(unit)
    return pa.timestamp(unit, "UTC" if class_name == "timestamp" else None)


def _is_json_type(kind: Type) -> bool:
    return isinstance(kind, Named) and kind.name == "lake.json" and kind.target is STRING


def zng_schema(schema: pa.Schema) -> Type:
    """Returns the super type of records of the schema.  Raises InvalidInput for a type that ZNG cannot hold."""
    fields = list(schema)
    plainest = Record(tuple(schema.names), tuple(map(zng_type, fields)))
    marked = _marked(schema.metadata)
    if isinstance(marked, Named) and plain(marked) == plainest:
        return marked
    return plainest


def zng_type(field: pa.Field) -> Type:
    """Returns the ZNG type of the field's values: that of its mark if it fits, otherwise the plainest."""
    marked = _marked(field.metadata)
    if marked is not None and _is_form_of(marked, field.type):
        return marked
    if is_json(field):
        return Named("lake.json", STRING)
    return _plainest(field)


def _is_form_of(kind: Type, stored: pa.DataType) -> bool:
    try:
        return _holds(stored, arrow_type(kind))
    except InvalidInput:  # a mark of another program, of a type that has no Arrow type
        return False


def _holds(stored: pa.DataType, kind: pa.DataType) -> bool:
    """Whether a field of type `stored` can hold values of type `kind`: `stored` is `kind`, or the form in which
    objects store it."""
    if stored == kind:
        return True
    if stored.id != kind.id:
        return bool(pa.types.is_float32(stored) and pa.types.is_float16(kind))
    if pa.types.is_union(kind) or stored.num_fields != kind.num_fields:
        return False
    pairs = [(stored.field(at), kind.field(at)) for at in range(kind.num_fields)]
    named = pa.types.is_struct(kind)
    return bool(pairs) and all((a.name == b.name or not named) and _holds(a.type, b.type) for a, b in pairs)


def _marked(metadata: dict[bytes, bytes] | None) -> Type | None:
    if not metadata or ZNG_MARK not in metadata:
        return None
    try:
        return read_type_value(metadata[ZNG_MARK], ZNG_MARK.decode())
    except Corrupt:
        return None


def _plainest(field: pa.Field) -> Type:
    kind = field.type
    if kind in _PLAINEST:
        return _PLAINEST[kind]
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return STRING
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind) or pa.types.is_fixed_size_binary(kind):
        return BYTES
    if pa.types.is_dictionary(kind):
        return zng_type(field.with_type(kind.value_type))
    if pa.types.is_date32(kind):
        return Named("lake.date", INT32)
    if pa.types.is_timestamp(kind):
        return Named(f"lake.timestamp{'' if kind.tz else '_ntz'}_{kind.unit}", INT64)
    if pa.types.is_time(kind):
        return Named(f"lake.time_{kind.unit}", INT64)
    if pa.types.is_duration(kind):
        return Named(f"lake.duration_{kind.unit}", INT64)
    if pa.types.is_decimal128(kind) and kind.scale >= 0:
        return Named(f"lake.decimal_{kind.precision}_{kind.scale}", STRING)
    if pa.types.is_struct(kind):
        return Record(tuple(inner.name for inner in kind), tuple(map(zng_type, kind)))
    if pa.types.is_map(kind):
        return Map(zng_type(kind.key_field), zng_type(kind.item_field))
    if is_list(kind):
        return Array(zng_type(kind.value_field))
    if pa.types.is_union(kind) and kind.mode == "dense" and kind.num_fields > 1 and kind[-1].name == "null":
        return Union(tuple(zng_type(kind.field(at)) for at in range(kind.num_fields - 1)))
    raise InvalidInput(f"field {field.name!r}: type {kind} cannot be ZNG; convert it to another type")
