"""Unites schemas, so that objects with different fields become one table.

Fields unite by name.  An absent field is null; numbers widen; records unite field by field, lists and maps by
their elements.  If no type holds both (a string here, a number there), the united field is typed JSON, from
which every value reads back unchanged (`log_lake.texts.typed_json`).  Only a pool key cannot change its class.
A declared type is never united, because a load refuses data that does not fit it.

Uniting is associative and commutative, so the type of a field does not depend on the order of compactions
(decision 51).  Called by scans and compaction; `normalize` defines the small set of types that objects hold.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable

import pyarrow as pa

from lake_core.errors import Corrupt
from lake_core.keys.encoding import TICKS
from lake_core.schemas.limits import leaves
from lake_core.values.types import (
    SUM_MARK,
    WIDE_MARK,
    ZNG_MARK,
    is_json,
    is_sum,
    is_wide,
    json_field,
)

EXACT_IN_DOUBLE = 2**53


def schema_id(schema: pa.Schema) -> str:
    """Returns the id of a schema, made from its content: equal schemas have equal ids."""
    return hashlib.sha256(schema.serialize()).hexdigest()[:20]


def stored_schema(data: bytes) -> pa.Schema:
    """Returns the schema in bytes of Arrow's IPC form; its names must be text.  Raises Corrupt."""
    try:
        return with_text_names(pa.ipc.read_schema(pa.py_buffer(data)))
    except Exception as error:  # damaged bytes make Arrow raise errors of many classes
        raise Corrupt(f"a stored schema of {len(data)} bytes is damaged: {error}") from error


def with_text_names(schema: pa.Schema) -> pa.Schema:
    """Returns the schema of a file, after a check of its names.  Raises UnicodeDecodeError if a name, at any
    depth, is not UTF-8: Arrow decodes names only when they are used."""
    for _ in leaves(schema):
        pass
    return schema


def unite_schemas(schemas: Iterable[pa.Schema]) -> pa.Schema:
    """Returns one schema that can hold the records of all; fields are in the order in which they occur."""
    fields: dict[str, pa.Field] = {}
    last: pa.Schema | None = None
    for schema in schemas:
        if last is not None and schema.equals(last, check_metadata=True) and not any(map(is_sum, schema)):
            continue  # tables of one load are mostly alike, and may have thousands of fields
        last = schema
        for field in schema:
            united = fields.get(field.name)
            fields[field.name] = field if united is None else unite_fields(united, field)
    return pa.schema([field.with_nullable(True) for field in fields.values()])


def unite_fields(a: pa.Field, b: pa.Field) -> pa.Field:
    """Returns the narrowest field that holds the values of both; a JSON field if no type does."""
    if is_json(a) or is_json(b):
        return json_field(a.name)
    if pa.types.is_null(a.type):
        return b
    if pa.types.is_null(b.type):
        return a
    return _with_shared_mark(_unite_types(a, b), a, b)


def unit_remedy(classes: Collection[str]) -> str:
    """Returns what a user can do if no unit holds all times or durations of these classes; "" for other values."""
    match sorted(classes):
        case ["timestamp"] | ["timestamp with zone"]:
            reach = "years before 1678 and after 2261"
        case ["duration"]:
            reach = "durations of more than 292 years"
        case _:
            return ""
    return f"write them in microseconds, or load {reach} into a pool of their own"


def _with_shared_mark(united: pa.Field, a: pa.Field, b: pa.Field) -> pa.Field:
    """Returns the united field.  It keeps the mark of a ZNG type only if both fields have the same one."""
    marks = united.metadata or {}
    if ZNG_MARK not in marks or (a.metadata or {}).get(ZNG_MARK) == (b.metadata or {}).get(ZNG_MARK):
        return united
    return united.with_metadata({name: value for name, value in marks.items() if name != ZNG_MARK} or None)


def _unite_types(a: pa.Field, b: pa.Field) -> pa.Field:
    if is_sum(a) or is_sum(b):
        return _unite_sums(a, b)
    nested = _unite_nested(a, b)
    if nested is not None:
        return nested
    if a.type == b.type:
        return b if is_wide(b) else a
    if _is_number(a.type) and _is_number(b.type):
        return _unite_numbers(a, b)
    if (finer := _finer(a.type, b.type)) is not None:
        if any(is_wide(field) and not _reaches(field.type, finer) for field in (a, b)):
            return json_field(a.name)
        return pa.field(a.name, finer, metadata=WIDE_MARK if is_wide(a) or is_wide(b) else None)
    if pa.types.is_decimal(a.type) and pa.types.is_decimal(b.type):
        whole = max(a.type.precision - a.type.scale, b.type.precision - b.type.scale)
        scale = max(a.type.scale, b.type.scale)
        if whole + scale <= 38:
            return a.with_type(pa.decimal128(whole + scale, scale))
    return json_field(a.name)


def _finer(a: pa.DataType, b: pa.DataType) -> pa.DataType | None:
    """Returns the type with the finer unit of two timestamps, times of day or durations; None for other types."""
    for alike in (pa.types.is_timestamp, pa.types.is_time, pa.types.is_duration):
        if alike(a) and alike(b):
            if pa.types.is_timestamp(a) and bool(a.tz) != bool(b.tz):
                return None
            return max(a, b, key=lambda kind: TICKS[kind.unit])
    return None


def _reaches(kind: pa.DataType, finer: pa.DataType) -> bool:
    """Whether the finer unit can hold every value that objects may hold in the type.  Objects hold timestamps
    of the years 1 to 9999 and any duration; nanoseconds reach only from 1677 to 2262."""
    return bool(kind.unit == finer.unit or (pa.types.is_timestamp(kind) and finer.unit != "ns"))


def _unite_numbers(a: pa.Field, b: pa.Field) -> pa.Field:
    if pa.types.is_integer(a.type) and pa.types.is_integer(b.type):
        a, b = _signed_if_narrow(a, b), _signed_if_narrow(b, a)
        low = min(_integer_range(a.type)[0], _integer_range(b.type)[0])
        high = max(_integer_range(a.type)[1], _integer_range(b.type)[1])
        kinds = (pa.uint8(), pa.uint16(), pa.uint32()) if low == 0 else (pa.int8(), pa.int16(), pa.int32())
        for kind in (*kinds, pa.uint64() if low == 0 else pa.int64()):
            if _integer_range(kind)[0] <= low and high <= _integer_range(kind)[1]:
                return pa.field(a.name, kind, metadata=WIDE_MARK if is_wide(a) or is_wide(b) else None)
        return json_field(a.name)
    if is_wide(a) or is_wide(b):  # a double would not give the integers back
        return json_field(a.name)
    return pa.field(a.name, pa.float64())


def _unite_sums(a: pa.Field, b: pa.Field) -> pa.Field:
    """Unites sums of an aggregate pool.  Exact numbers stay exact; with doubles they become doubles, if no digit
    of a whole number is lost.

    Doubles and decimals with digits after the point do not unite, because their sum would be neither exact nor
    a double (decision 53).
    """
    wide = is_wide(a) or is_wide(b)
    mark = SUM_MARK | (WIDE_MARK if wide else {})
    scales = [_scale(field.type) for field in (a, b)]
    if None not in scales:
        return pa.field(a.name, pa.decimal128(38, max(s for s in scales if s is not None)), metadata=mark)
    others = [scale for scale in scales if scale is not None]
    if any(others) or (wide and others) or not (_is_summable(a.type) and _is_summable(b.type)):
        return json_field(a.name)
    return pa.field(a.name, pa.float64(), metadata=SUM_MARK)


def _scale(kind: pa.DataType) -> int | None:
    """Returns the digits after the point of an exact number's type; None for other types."""
    if pa.types.is_integer(kind):
        return 0
    return int(kind.scale) if pa.types.is_decimal(kind) else None


def _is_summable(kind: pa.DataType) -> bool:
    return _is_number(kind) or bool(pa.types.is_decimal(kind))


def _signed_if_narrow(field: pa.Field, other: pa.Field) -> pa.Field:
    """Returns the field.  Unsigned 64-bit integers beside signed ones become signed, if none is beyond 2^53."""
    narrow = pa.types.is_uint64(field.type) and not is_wide(field)
    return field.with_type(pa.int64()) if narrow and pa.types.is_signed_integer(other.type) else field


def _integer_range(kind: pa.DataType) -> tuple[int, int]:
    bits = kind.bit_width
    return (
        (0, 2**bits - 1) if pa.types.is_unsigned_integer(kind) else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    )


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind)


def _unite_nested(a: pa.Field, b: pa.Field) -> pa.Field | None:
    """Unites records field by field, and lists and maps by their elements, including the marks inside."""
    if pa.types.is_struct(a.type) and pa.types.is_struct(b.type):
        return a.with_type(pa.struct(unite_schemas([pa.schema(list(a.type)), pa.schema(list(b.type))])))
    if pa.types.is_list(a.type) and pa.types.is_list(b.type):
        return a.with_type(pa.list_(unite_fields(a.type.value_field, b.type.value_field)))
    if pa.types.is_map(a.type) and pa.types.is_map(b.type):
        keys = unite_fields(a.type.key_field, b.type.key_field)
        if is_json(keys):
            return json_field(a.name)
        return a.with_type(
            pa.map_(keys.with_nullable(False), unite_fields(a.type.item_field, b.type.item_field))
        )
    return None
