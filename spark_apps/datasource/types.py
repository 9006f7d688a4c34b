"""The types of lake records in Spark.

Spark has no unsigned 64-bit integers (decimal(20,0)), no nanoseconds (microseconds) and no fields of type null
(string). A time of day is a BIGINT, the nanoseconds since midnight: Spark 4.2 refuses most queries of its own
type TIME unless `spark.sql.timeType.enabled` is set.  `.schema("t time")` asks for that type.  A field whose
values have several types is VARIANT in Spark.  `to_spark` converts the records, `from_spark` those that Spark
writes.
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.errors import PySparkTypeError
from pyspark.sql import types as T

from lake_core.errors import InvalidInput
from lake_core.values.types import is_json, show_type

VARIANT = pa.struct(
    [
        pa.field("value", pa.binary(), nullable=False),
        pa.field("metadata", pa.binary(), nullable=False, metadata={b"variant": b"true"}),
    ]
)


def spark_schema(schema: pa.Schema) -> T.StructType:
    """Returns the schema in Spark's types.  Raises InvalidInput for a type that Spark does not have."""
    return T.StructType([T.StructField(f.name, _spark_type(f), True) for f in schema])


def arrow_schema(schema: T.StructType) -> pa.Schema:
    """Returns the Arrow form in which Spark exchanges records of the schema.  Raises InvalidInput if there is
    none."""
    from pyspark.sql.pandas.types import to_arrow_schema

    for field in schema:
        try:
            to_arrow_schema(T.StructType([field]), timezone="UTC")
        except PySparkTypeError as error:
            raise InvalidInput(
                f"column {field.name!r}: the lake has no type {field.dataType.simpleString()}; choose another type"
            ) from error
    return to_arrow_schema(schema, timezone="UTC")


def is_variant(kind: pa.DataType) -> bool:
    """Whether an Arrow type is Spark's form of a variant."""
    if not pa.types.is_struct(kind) or kind.get_field_index("metadata") < 0:
        return False
    return bool((kind.field("metadata").metadata or {}).get(b"variant") == b"true")


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

    try:
        return from_arrow_type(_carried(kind))
    except PySparkTypeError as error:
        raise InvalidInput(
            f"field {field.name!r}: Spark has no type for {show_type(field)}; leave it out (option columns)"
        ) from error


def _carried(kind: pa.DataType) -> pa.DataType:
    """Returns the Arrow type in which Spark accepts a plain type."""
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
