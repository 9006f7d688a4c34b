"""Converts incoming records to the few types that objects hold.

| comes in | is stored as |
|---|---|
| boolean, integers, float, double, string, bytes, date, timestamp, time, duration | the same |
| decimals of up to 38 digits | the same; a negative scale becomes 0, and the digits are at least the scale |
| large, view, fixed-size and dictionary forms | the plain form |
| half floats; date64; decimals of 32, 64 or 256 bits | float; date; decimal of 128 bits |
| decimals of more than 38 digits | typed JSON |
| timestamps and times in seconds | milliseconds, which Parquet has; zones become UTC |
| UUID | its text |
| other extension types (tensors) | their storage |
| records without fields; unions | typed JSON |
| intervals of months, any other type | refused |

`normalized` runs once, when a load brings data. At any depth, it marks fields with values that a wider relative
of their type cannot hold (`values.types.WIDE_MARK`), and keeps the mark of ZNG types (`ZNG_MARK`) if the values
are of that type. Called by `loading.builder`, and by readers of files whose records have several types.
"""

from __future__ import annotations

import uuid

import pyarrow as pa
import pyarrow.compute as pc

from lake_core.errors import InvalidInput
from lake_core.keys.encoding import TICKS
from lake_core.schemas.schema import EXACT_IN_DOUBLE
from lake_core.values.types import WIDE_MARK, ZNG_MARK, is_json, json_field, show_type
from log_lake.columns.cast import cast_column, members_of
from log_lake.columns.nested import Items, fields_of, is_list, mask_of
from log_lake.texts.typed_json import to_typed
from log_lake.zng.arrow_types import zng_type
from log_lake.zng.from_arrow import from_arrow
from log_lake.zng.type_values import type_value
from log_lake.zng.types import FLOAT16, IP, NET, NULL, TYPE, Enum, Map, Type, plain

MAX_DECIMAL_DIGITS = 38
"""Digits of a stored decimal; one with more becomes typed JSON."""

_NANOSECONDS = 2**63 - 1
_AS_IT_IS = frozenset(
    kind.id
    for kind in (
        *(pa.null(), pa.bool_(), pa.float32(), pa.float64(), pa.string(), pa.binary()),
        *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
        *(pa.date32(), pa.duration("s")),
    )
)
"""Ids of the Arrow types that are stored without a conversion."""


def normalized(table: pa.Table, *, marks_hold: bool = False) -> pa.Table:
    """Converts records to the types that objects store. Marks fields that need a mark, and drops the metadata of
    other programs.

    Marks of ZNG types are checked against the values, unless `marks_hold` says that they were made from these
    values. Raises InvalidInput for a type that the lake does not store.
    """
    arrays, fields = [], []
    for field, column in zip(table.schema, table.columns, strict=True):
        field = field if marks_hold else _of_zng_type(field, column)
        if field.type.id in _AS_IT_IS and not is_json(field):
            target, stored = _bare(field), column
        else:
            source, plain = _without_extension(field, column)
            target = _stored(source, field.name)
            stored = cast_column(plain, source, target)
        marked = _marked(target, stored)
        arrays.append(
            stored
            if marked.type.equals(target.type, check_metadata=True)
            else cast_column(stored, target, marked)
        )
        fields.append(marked)
    return pa.table(arrays, schema=pa.schema(fields))


def check_types(schema: pa.Schema) -> None:
    """Raises InvalidInput if the lake does not store records of the schema."""
    for field in schema:
        _stored(_plain_field(field), field.name)


def _without_extension(field: pa.Field, column: pa.ChunkedArray) -> tuple[pa.Field, pa.ChunkedArray]:
    """Returns the field and column in plain Arrow types, without extension types and dictionaries at any depth,
    and without other programs' metadata."""
    if not _holds_foreign(field.type):
        return _bare(field), column
    chunks = [_plain_array(chunk, field) for chunk in column.chunks]
    plain = _plain_field(field)
    return plain, pa.chunked_array(chunks, plain.type)


def _bare(field: pa.Field) -> pa.Field:
    """Returns the field without other programs' metadata."""
    if is_json(field):
        return json_field(field.name)
    mark = (field.metadata or {}).get(ZNG_MARK)
    return pa.field(field.name, field.type, metadata=None if mark is None else {ZNG_MARK: mark})


def _of_zng_type(field: pa.Field, column: pa.ChunkedArray) -> pa.Field:
    """Returns the field. Removes its marks of ZNG types if the values are not of these types."""
    if not _has_zng_mark(field):
        return field
    try:
        kind = zng_type(field)
        if _may_not_hold(kind):
            for chunk in column.chunks:
                from_arrow(kind, chunk)
    except (InvalidInput, pa.ArrowException):  # another program wrote the mark, or changed the values
        return _without_zng_mark(field)
    return field


def _has_zng_mark(field: pa.Field) -> bool:
    return ZNG_MARK in (field.metadata or {}) or any(map(_has_zng_mark, members_of(field.type)))


def _may_not_hold(kind: Type) -> bool:
    """Whether the Arrow type has values that do not belong to the ZNG type."""
    if isinstance(kind, Map) and plain(kind.children[0]) is NULL:
        return True
    return kind in (IP, NET, TYPE) or isinstance(kind, Enum) or any(map(_may_not_hold, kind.children))


def _without_zng_mark(field: pa.Field) -> pa.Field:
    kind = field.type
    if pa.types.is_struct(kind):
        kind = pa.struct([_without_zng_mark(member) for member in kind])
    elif pa.types.is_map(kind):
        key = _without_zng_mark(kind.key_field).with_nullable(False)
        kind = pa.map_(key, _without_zng_mark(kind.item_field))
    elif pa.types.is_list(kind):
        kind = pa.list_(_without_zng_mark(kind.value_field))
    metadata = {name: value for name, value in (field.metadata or {}).items() if name != ZNG_MARK}
    return pa.field(field.name, kind, field.nullable, metadata=metadata or None)


def _holds_foreign(kind: pa.DataType) -> bool:
    if (
        isinstance(kind, pa.BaseExtensionType)
        or pa.types.is_dictionary(kind)
        or pa.types.is_run_end_encoded(kind)
    ):
        return True
    return any(_holds_foreign(member.type) for member in members_of(kind))


def _plain_field(field: pa.Field) -> pa.Field:
    kind = field.type
    if isinstance(kind, pa.BaseExtensionType):
        match kind.extension_name:
            case "arrow.json":
                return json_field(field.name)
            case "arrow.uuid":
                return pa.field(field.name, pa.string())
        return _plain_field(pa.field(field.name, kind.storage_type))
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return _plain_field(pa.field(field.name, kind.value_type))
    if pa.types.is_struct(kind):
        return _bare(field).with_type(pa.struct([_plain_field(member) for member in kind]))
    if pa.types.is_map(kind):
        key = _plain_field(kind.key_field).with_nullable(False)
        return _bare(field).with_type(pa.map_(key, _plain_field(kind.item_field)))
    if is_list(kind):
        return _bare(field).with_type(pa.list_(_plain_field(kind.value_field)))
    return _bare(field)


def _plain_array(array: pa.Array, field: pa.Field) -> pa.Array:
    kind, target = field.type, _plain_field(field)
    if isinstance(kind, pa.BaseExtensionType):
        storage = array.storage
        if kind.extension_name == "arrow.json":
            return pa.array([_typed_json(t, field.name) for t in storage.to_pylist()], pa.string())
        if kind.extension_name == "arrow.uuid":
            texts = [None if v is None else str(uuid.UUID(bytes=v)) for v in storage.to_pylist()]
            return pa.array(texts, pa.string())
        return _plain_array(storage, pa.field(field.name, kind.storage_type))
    if pa.types.is_dictionary(kind):
        return _plain_array(array.dictionary_decode(), pa.field(field.name, kind.value_type))
    if pa.types.is_run_end_encoded(kind):
        return _plain_array(pc.run_end_decode(array), pa.field(field.name, kind.value_type))
    if pa.types.is_struct(kind):
        children = [_plain_array(child, member) for child, member in zip(fields_of(array), kind, strict=True)]
        return pa.StructArray.from_arrays(children, fields=list(target.type), mask=mask_of(array))
    if pa.types.is_map(kind):
        items = Items(array)
        keys, values = items.entries
        plain_keys = _plain_array(keys, kind.key_field)
        return items.as_maps(plain_keys, _plain_array(values, kind.item_field), target.type)
    if is_list(kind):
        items = Items(array)
        return items.as_lists(_plain_array(items.values, kind.value_field), target.type)
    return array


def _typed_json(text: str | None, name: str) -> str | None:
    try:
        return None if text is None else to_typed(text)
    except ValueError as error:
        raise InvalidInput(f"field {name!r}: malformed JSON: {error}") from error


def _stored(field: pa.Field, path: str) -> pa.Field:
    """Returns the stored form of an incoming field; `path` names it in errors."""
    kind = field.type
    if is_json(field):
        return json_field(field.name)
    plain = _bare(field)
    if kind.id in _AS_IT_IS:
        return plain
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return plain.with_type(pa.string())
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind) or pa.types.is_fixed_size_binary(kind):
        return plain.with_type(pa.binary())
    if pa.types.is_float16(kind):
        mark = plain.metadata or {ZNG_MARK: type_value(FLOAT16)}  # so that ZNG gets back what it was
        return plain.with_type(pa.float32()).with_metadata(mark)
    if pa.types.is_date64(kind):
        return plain.with_type(pa.date32())
    if pa.types.is_timestamp(kind):
        unit = "ms" if kind.unit == "s" else kind.unit
        return plain.with_type(pa.timestamp(unit, "UTC" if kind.tz else None))
    if pa.types.is_time(kind):
        return plain.with_type(pa.time32("ms") if kind.bit_width == 32 else kind)
    if pa.types.is_decimal(kind):
        digits = max(
            kind.precision, kind.scale, kind.precision - kind.scale
        )  # Parquet has none beyond the point
        if digits > MAX_DECIMAL_DIGITS:
            return json_field(field.name)
        return plain.with_type(pa.decimal128(digits, max(kind.scale, 0)))
    if pa.types.is_struct(kind):
        if kind.num_fields == 0:  # Parquet has no empty records
            return json_field(field.name)
        return plain.with_type(pa.struct([_stored(member, f"{path}.{member.name}") for member in kind]))
    if pa.types.is_map(kind):
        key = _stored(kind.key_field.with_name("key"), f"{path}.key")
        if is_json(key):
            raise InvalidInput(
                f"field {path!r}: the lake has no maps with keys of type {kind.key_type}; convert the keys to text"
            )
        item = _stored(kind.item_field.with_name("value"), f"{path}.value")
        return plain.with_type(pa.map_(key.with_nullable(False), item))
    if is_list(kind):
        return plain.with_type(pa.list_(_stored(kind.value_field.with_name("item"), f"{path}[]")))
    if pa.types.is_union(kind):
        for at in range(kind.num_fields):
            _stored(kind.field(at).with_name(field.name), path)
        return json_field(field.name)
    raise InvalidInput(f"field {path!r}: the lake has no type {show_type(field)}; convert it to another type")


def _marked(field: pa.Field, column: pa.ChunkedArray | pa.Array) -> pa.Field:
    """Returns the field with the marks that its values need, also inside of records, lists and maps."""
    kind = field.type
    if is_json(field):
        return field
    if _is_wide(column, kind):
        return field.with_metadata({**(field.metadata or {}), **WIDE_MARK})
    if not pa.types.is_nested(kind):
        return field
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    marked = field
    for chunk in chunks:
        marked = marked.with_type(_marked_inside(marked.type, chunk))
    return marked


def _marked_inside(kind: pa.DataType, array: pa.Array) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([_keeping(f, _marked(f, a)) for f, a in zip(kind, fields_of(array), strict=True)])
    if pa.types.is_map(kind):
        keys, items = Items(array).entries
        return pa.map_(
            _keeping(kind.key_field, _marked(kind.key_field, keys)),
            _keeping(kind.item_field, _marked(kind.item_field, items)),
        )
    return pa.list_(_keeping(kind.value_field, _marked(kind.value_field, Items(array).values)))


def _keeping(earlier: pa.Field, marked: pa.Field) -> pa.Field:
    """Returns the newly marked field, with the marks that were needed for an earlier part of the column."""
    if not earlier.metadata:
        return marked
    return marked.with_metadata({**earlier.metadata, **(marked.metadata or {})})


def _is_wide(column: pa.ChunkedArray | pa.Array, kind: pa.DataType) -> bool:
    """Whether some values do not fit the wider type of the same kind: a double for integers, nanoseconds for
    times."""
    if (pa.types.is_timestamp(kind) or pa.types.is_duration(kind)) and kind.unit != "ns":
        bounds = pc.min_max(column.cast(pa.int64())).as_py()
        limit = _NANOSECONDS // (TICKS["ns"] // TICKS[kind.unit])
        return bounds["min"] is not None and (bounds["min"] < -limit or bounds["max"] > limit)
    if not (pa.types.is_integer(kind) and kind.bit_width == 64):
        return False
    bounds = pc.min_max(column).as_py()
    return bounds["min"] is not None and (bounds["min"] < -EXACT_IN_DOUBLE or bounds["max"] > EXACT_IN_DOUBLE)
