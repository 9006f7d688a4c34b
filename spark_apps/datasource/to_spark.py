"""Converts records from the lake to Spark: to the Arrow form of a schema, the pool's own or a user's.

A user's schema may choose columns, leave fields of records out, and ask for another type if that type holds
every value: a wider or narrower integer, a number as decimal, an integer, date or boolean as text.  Only the
casts to float and to double round, because these types imply it.  Every other cast is refused, because engines
disagree about it (is a number a time in seconds or microseconds?); Spark can cast the values after it has read
them.

Times finer than a microsecond become the microsecond before them, also before 1970.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PySparkValueError

from lake_core.errors import InvalidInput
from lake_core.keys.encoding import TICKS
from lake_core.values.types import is_json, show_type
from log_lake.columns.json_text import shown
from log_lake.columns.nested import Items, mask_of
from spark_apps.datasource.types import VARIANT, is_variant
from spark_apps.datasource.variants import variant_of


class _Refused(ValueError):
    """The values do not fit the type that the user's schema asks for."""


def to_batches(table: pa.Table, target: pa.Schema) -> list[pa.RecordBatch]:
    """Returns records as batches in Spark's Arrow schema `target`: by field name, null for fields that they lack.

    Raises InvalidInput if a user's schema asks for a type that cannot hold the values.
    """
    columns = []
    for field in target:
        index = table.schema.get_field_index(field.name)
        source = pa.field(field.name, pa.null()) if index < 0 else table.schema.field(index)
        column = pa.chunked_array([pa.nulls(table.num_rows)]) if index < 0 else table.column(index)
        try:
            chunks = [_convert_field(chunk, source, field) for chunk in column.chunks]
        except (_Refused, pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
            reason = f": {error}" if str(error) else ""
            raise InvalidInput(
                f"column {field.name!r}: the lake does not read {show_type(source)} as "
                f"{_shown(field.type)}{reason}; "
                "read it in its own type, and cast it in Spark"
            ) from error
        columns.append(pa.chunked_array(chunks, field.type))
    return pa.table(columns, schema=target).to_batches()


def check_readable(schema: pa.Schema, target: pa.Schema) -> None:
    """Raises InvalidInput if a column of the schema cannot be read in the type that `target` asks for."""
    to_batches(schema.empty_table(), target)


def _convert_field(array: pa.Array, source: pa.Field, target: pa.Field) -> pa.Array:
    if not target.nullable and array.null_count:
        raise _Refused(f"the schema says that {target.name!r} is not null, and a record has no value for it")
    return _convert(array, source, target.type)


def _convert(array: pa.Array, source: pa.Field, target: pa.DataType) -> pa.Array:
    kind = array.type
    if pa.types.is_null(kind):
        return pa.nulls(len(array), target)
    if is_json(source):
        return _from_json(array, source, target)
    if pa.types.is_struct(target) and pa.types.is_struct(kind) and not is_variant(target):
        children = [_child(array, source, field) for field in target]
        return pa.StructArray.from_arrays(children, fields=list(target), mask=mask_of(array))
    if pa.types.is_list(target) and pa.types.is_list(kind):
        items = Items(array)
        return items.as_lists(
            _convert_field(items.values, source.type.value_field, target.value_field), target
        )
    if pa.types.is_map(target) and pa.types.is_map(kind):
        items = Items(array)
        keys, values = items.entries
        return items.as_maps(
            _convert_field(keys, source.type.key_field, target.key_field),
            _convert_field(values, source.type.item_field, target.item_field),
            target,
        )
    if _is_moment(kind):
        return _moments(array, target)
    if pa.types.is_time(kind):
        return _times(array, target)
    if kind == target or (pa.types.is_date(kind) and pa.types.is_string(target)):
        return array.cast(target)
    if pa.types.is_boolean(kind) and pa.types.is_string(target):
        return array.cast(target)
    if _is_number(kind):
        return _numbers(array, target)
    raise _Refused


def _numbers(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Numbers in another type; raises for a number that the type does not hold."""
    kind = array.type
    if pa.types.is_string(target) and pa.types.is_integer(kind):
        return array.cast(target)
    if not _is_number(target) or (pa.types.is_floating(kind) and pa.types.is_decimal(target)):
        raise _Refused
    if pa.types.is_integer(kind) and pa.types.is_decimal(target):
        return array.cast(pa.decimal128(38, 0)).cast(target)
    converted = array.cast(target)
    if pa.types.is_float32(target) and pc.any(pc.not_equal(pc.is_inf(converted), pc.is_inf(array))).as_py():
        raise _Refused("a value is beyond the range of float")
    return converted


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)


def _is_moment(kind: pa.DataType) -> bool:
    return pa.types.is_timestamp(kind) or pa.types.is_duration(kind)


def _moments(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Timestamps and durations in microseconds, rounded down; never from local time to instants or back."""
    kind = array.type
    alike = _is_moment(target) and pa.types.is_duration(target) == pa.types.is_duration(kind)
    if not alike or bool(getattr(kind, "tz", None)) != bool(getattr(target, "tz", None)):
        raise _Refused
    if kind.unit != "ns":
        return array.cast(target)
    nanoseconds = pc.fill_null(array.view(pa.int64()), 0).to_numpy(zero_copy_only=False)
    missing = pc.is_null(array).to_numpy(zero_copy_only=False)
    return pa.array(np.floor_divide(nanoseconds, 1000), pa.int64(), mask=missing).view(target)


def _times(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Times of day as nanoseconds since midnight, or as Spark's TIME, which has microseconds."""
    kind = array.type
    counts = array.view(pa.int32() if kind.bit_width == 32 else pa.int64()).cast(pa.int64())
    nanoseconds = pc.multiply(counts, TICKS["ns"] // TICKS[kind.unit])
    if pa.types.is_int64(target):
        return nanoseconds
    if not pa.types.is_time(target):
        raise _Refused
    return pc.multiply(pc.divide(nanoseconds, 1000), 1000).view(target)


def _child(array: pa.StructArray, source: pa.Field, target: pa.Field) -> pa.Array:
    index = array.type.get_field_index(target.name)
    child = pa.nulls(len(array)) if index < 0 else array.field(index)
    if not target.nullable and child.filter(array.is_valid()).null_count:
        raise _Refused(f"the schema says that {target.name!r} is not null, and a record has no value for it")
    return _convert(child, target if index < 0 else source.type.field(index), target.type)


def _shown(kind: pa.DataType) -> str:
    from pyspark.sql.pandas.types import from_arrow_type

    return from_arrow_type(kind).simpleString()


def _from_json(array: pa.Array, source: pa.Field, target: pa.DataType) -> pa.Array:
    """Typed JSON as variants, each distinct text encoded once; or as the text that the lake shows."""
    if pa.types.is_string(target):
        return shown(pa.chunked_array([array]), source).combine_chunks()
    if not is_variant(target):
        raise _Refused
    encoded = array.dictionary_encode()
    try:
        dictionary = pa.array([variant_of(text) for text in encoded.dictionary.to_pylist()], VARIANT)
    except PySparkValueError as error:
        raise _Refused(f"a value is too large for a variant ({error.getCondition()})") from error
    taken = dictionary.take(encoded.indices)
    return pa.StructArray.from_arrays(
        [pc.fill_null(taken.field(0), b""), pc.fill_null(taken.field(1), b"")],
        fields=list(target),
        mask=pc.is_null(encoded.indices),
    )
