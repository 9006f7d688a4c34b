"""Lake records as Spark's, and Spark's as the lake's: types, and batches of them.

Spark has no unsigned 64-bit integers (decimal(20,0)), no nanoseconds (microseconds) and no fields of type
null (string).  A field whose values have several types is JSON in the lake and VARIANT in Spark: its values
come back as they were.  `spark_schema` gives the schema, `to_batch` the records in it; `from_spark` takes records.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as T

from lake_core.errors import InvalidInput
from lake_core.values.types import is_json, json_field, show_type

_VARIANT = pa.struct(
    [
        pa.field("value", pa.binary(), nullable=False),
        pa.field("metadata", pa.binary(), nullable=False, metadata={b"variant": b"true"}),
    ]
)


def spark_schema(schema: pa.Schema) -> T.StructType:
    """The schema as Spark sees it."""
    return T.StructType([T.StructField(f.name, _spark_type(f), True) for f in schema])


def arrow_schema(schema: T.StructType) -> pa.Schema:
    """In which form Spark takes and gives records of the schema."""
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(schema, timezone="UTC")


def _spark_type(field: pa.Field) -> T.DataType:
    kind = field.type
    if is_json(field):
        return T.VariantType()
    if pa.types.is_struct(kind):
        return T.StructType([T.StructField(f.name, _spark_type(f), True) for f in kind])
    if pa.types.is_list(kind):
        return T.ArrayType(_spark_type(kind.value_field), True)
    if pa.types.is_map(kind):
        return T.MapType(_spark_type(kind.key_field), _spark_type(kind.item_field), True)
    from pyspark.sql.pandas.types import from_arrow_type

    return from_arrow_type(_carried(kind))


def _carried(kind: pa.DataType) -> pa.DataType:
    """The Arrow type in which Spark takes a plain type."""
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", "UTC" if kind.tz else None)
    if pa.types.is_uint64(kind):
        return pa.decimal128(20, 0)
    if pa.types.is_unsigned_integer(kind):
        return pa.int64() if kind.bit_width == 32 else pa.int32()
    if pa.types.is_time(kind):
        return pa.int64()
    if pa.types.is_null(kind):
        return pa.string()
    return kind


def to_batch(table: pa.Table, target: pa.Schema) -> list[pa.RecordBatch]:
    """Records in Spark's Arrow schema `target` (fields by name, absent ones null), as batches.

    Raises InvalidInput where a user's schema asks for a type that the values are not.
    """
    columns = []
    for field in target:
        index = table.schema.get_field_index(field.name)
        if index < 0:
            columns.append(pa.nulls(table.num_rows, field.type))
            continue
        source = table.schema.field(index)
        try:
            chunks = [_convert(chunk, source, field.type) for chunk in table.column(index).chunks]
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
            raise InvalidInput(
                f"column {field.name!r}: {show_type(source)} cannot be read as {field.type}: {error}"
            ) from error
        columns.append(pa.chunked_array(chunks, field.type))
    return pa.table(columns, schema=target).to_batches()


def _convert(array: pa.Array, source: pa.Field, target: pa.DataType) -> pa.Array:
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), target)
    if is_json(source) and target.equals(_VARIANT, check_metadata=False):
        return _variants(array, target)
    if pa.types.is_struct(target) and pa.types.is_struct(array.type):
        children = [_child(array, source, field) for field in target]
        mask = pc.invert(array.is_valid()) if array.null_count else None
        return pa.StructArray.from_arrays(children, fields=list(target), mask=mask)
    if pa.types.is_list(target) and pa.types.is_list(array.type):
        values = _convert(array.flatten(), source.type.value_field, target.value_type)
        return _as_lists(array, values, target)
    if pa.types.is_timestamp(target) and pa.types.is_timestamp(array.type) and array.type.unit == "ns":
        return array.cast(target, safe=False)  # Spark has no nanoseconds
    if pa.types.is_time(array.type):
        array = array.cast(pa.int32() if pa.types.is_time32(array.type) else pa.int64())
    return array if array.type == target else array.cast(target)


def _as_lists(lists: pa.ListArray, values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Lists of the same lengths with other values, those of all lists one after another."""
    lengths = pc.fill_null(pc.list_value_length(lists), 0).cast(pa.int32())
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths).cast(pa.int32())])
    mask = pc.invert(lists.is_valid()) if lists.null_count else None
    return pa.ListArray.from_arrays(offsets, values, type=kind, mask=mask)


def _child(array: pa.StructArray, source: pa.Field, wanted: pa.Field) -> pa.Array:
    index = array.type.get_field_index(wanted.name)
    if index < 0:
        return pa.nulls(len(array), wanted.type)
    return _convert(array.field(index), source.type.field(index), wanted.type)


def _variants(array: pa.Array, target: pa.DataType) -> pa.Array:
    """JSON text as Spark's binary variants; each distinct text is encoded once."""
    encoded = array.dictionary_encode()
    values = [_variant(text) for text in encoded.dictionary.to_pylist()]
    dictionary = pa.array(values, _VARIANT)
    taken = dictionary.take(encoded.indices)
    return pa.StructArray.from_arrays(
        [pc.fill_null(taken.field(0), b""), pc.fill_null(taken.field(1), b"")],
        fields=list(target),
        mask=pc.is_null(encoded.indices),
    )


@lru_cache(maxsize=65_536)
def _variant(text: str) -> dict[str, Any]:
    value = T.VariantVal.parseJson(text)
    return {"value": value.value, "metadata": value.metadata}


_JSON = msgspec.json.Encoder(decimal_format="number")


def from_spark(batch: pa.RecordBatch) -> pa.Table:
    """A batch as Spark writes it, variants as JSON; raises InvalidInput for what cannot be kept."""
    received = [_received(array, field) for array, field in zip(batch.columns, batch.schema, strict=True)]
    return pa.table([array for array, _ in received], schema=pa.schema([field for _, field in received]))


def _received(array: pa.Array, field: pa.Field) -> tuple[pa.Array, pa.Field]:
    kind = field.type
    if _is_variant(kind):
        return _texts(array), json_field(field.name)
    if pa.types.is_struct(kind):
        children = [_received(array.field(i), child) for i, child in enumerate(kind)]
        fields = [child for _, child in children]
        mask = pc.invert(array.is_valid()) if array.null_count else None
        made = pa.StructArray.from_arrays([child for child, _ in children], fields=fields, mask=mask)
        return (made, pa.field(field.name, made.type)) if fields else (array, field)
    if pa.types.is_list(kind):
        values, item = _received(array.flatten(), kind.value_field)
        made = _as_lists(array, values, pa.list_(item))
        return made, pa.field(field.name, made.type)
    if pa.types.is_map(kind) and (_holds_variants(kind.key_type) or _holds_variants(kind.item_type)):
        raise InvalidInput(
            f"column {field.name!r}: variants inside a map cannot be kept; write it as a struct"
        )
    return array, pa.field(field.name, kind)


def _is_variant(kind: pa.DataType) -> bool:
    if not pa.types.is_struct(kind) or kind.get_field_index("metadata") < 0:
        return False
    return bool((kind.field("metadata").metadata or {}).get(b"variant") == b"true")


def _holds_variants(kind: pa.DataType) -> bool:
    children = (kind.field(i).type for i in range(kind.num_fields))
    return _is_variant(kind) or any(_holds_variants(child) for child in children)


def _texts(array: pa.StructArray) -> pa.Array:
    """Variants as JSON text; a variant that is null is no value, as everywhere in the lake."""
    valid = array.is_valid()
    held = array.filter(valid) if array.null_count else array
    parts = zip(held.field("value").to_pylist(), held.field("metadata").to_pylist(), strict=True)
    texts = pa.array([_text(value, metadata) for value, metadata in parts], pa.string())
    return (
        pc.replace_with_mask(pa.nulls(len(array), pa.string()), valid, texts) if array.null_count else texts
    )


@lru_cache(maxsize=65_536)
def _text(value: bytes, metadata: bytes) -> str | None:
    text = _JSON.encode(T.VariantVal(value, metadata).toPython()).decode()
    return None if text == "null" else text
