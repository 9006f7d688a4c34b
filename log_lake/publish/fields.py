"""The fields of a pool as columns of an Iceberg table, and what Iceberg cannot express.

| in the lake | in the table |
|---|---|
| booleans, floats, doubles, text, bytes, dates | the same |
| integers: signed, of up to 32 bits; of 64 | int; long |
| decimals | the same |
| timestamps in microseconds, with and without zone | timestamptz, timestamp |
| times of day in microseconds | time |
| records, lists, maps | struct, list, map |
| a field that is null in every record | not in the table |

Iceberg has no unsigned integers, no nanoseconds (before version 3), no durations, and no field of several
classes. Timestamps in milliseconds are refused: Spark's reader of Iceberg compares their statistics with
microseconds, and loses records (decision 109).  A reader accepts an object's column if its type is that of the
table's column, or a narrower one: int for long, float for double, a decimal with fewer digits before the point.
Only the lake can read other unions of types.

Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pyarrow as pa
from pyiceberg import types as T

from lake_core.errors import InvalidInput
from lake_core.phrases import counted, did_you_mean
from lake_core.schemas.hidden import DELETED, user_fields
from lake_core.values.types import is_json, show_type

RESERVED = frozenset(
    {"_file", "_pos", "_deleted", "_spec_id", "_partition", "_row_id", "_last_updated_sequence_number"}
)
"""Names that readers of Iceberg use for columns that they add."""


_OR_TEXT = ", or publish it converted (lake set {} publish.types=text)"


def columns_of(schema: pa.Schema, *, pool_name: str, without: Collection[str] = ()) -> pa.Schema:
    """Returns the fields that the table has.  Raises InvalidInput for a field that Iceberg cannot express."""
    for name in without:
        if name not in schema.names:
            raise InvalidInput(
                f"pool {pool_name!r}: field {name!r} does not exist; {did_you_mean(name, schema.names)}"
            )
    kept = [f for f in user_fields(schema) if f.name not in without and not pa.types.is_null(f.type)]
    by_folded: dict[str, str] = {}
    for column in kept:
        fault = fault_of(column)
        other = by_folded.setdefault(column.name.casefold(), column.name)
        if column.name in RESERVED:
            fault = "has a name that Iceberg reserves"
        elif other != column.name:
            fault = f"differs from {other!r} in case only, which readers do not tell apart"
        if fault:
            raise InvalidInput(
                f"pool {pool_name!r}: field {column.name!r} {fault}; leave it out (--without {column.name})"
                + ("" if column.name in RESERVED or other != column.name else _OR_TEXT.format(pool_name))
            )
    if not kept:
        raise InvalidInput(f"pool {pool_name!r}: there is no field to publish; load records first")
    return pa.schema([_without_nulls(column) for column in kept])


def upsert_fields(schema: pa.Schema) -> pa.Schema:
    """Returns the fields of an upsert pool without `_deleted`, which marks delete markers."""
    return pa.schema([f for f in schema if f.name != DELETED])


def fault_of(column: pa.Field) -> str:
    """Returns the part of the field's type that Iceberg does not support; "" if it supports all."""
    kind = column.type
    if is_json(column):
        return "holds values of several kinds, or empty records, as JSON"
    if pa.types.is_null(kind):
        return "holds lists or maps of nulls"
    if pa.types.is_struct(kind):
        members = [member for member in kind if not pa.types.is_null(member.type)]
        if not members:
            return "is a record that holds nothing but nulls"
        return next((fault for member in members if (fault := fault_of(member))), "")
    if pa.types.is_list(kind):
        return fault_of(kind.value_field)
    if pa.types.is_map(kind):
        return fault_of(kind.key_field) or fault_of(kind.item_field)
    if pa.types.is_timestamp(kind) and kind.unit == "ms":
        return "holds timestamps in milliseconds, which readers of Iceberg filter wrongly"
    return (
        "" if plain_type(kind) is not None else f"is of type {show_type(column)}, which Iceberg does not have"
    )


def _without_nulls(column: pa.Field) -> pa.Field:
    """Returns the field without members of records that are null everywhere."""
    kind = column.type
    if pa.types.is_struct(kind):
        return column.with_type(
            pa.struct([_without_nulls(member) for member in kind if not pa.types.is_null(member.type)])
        )
    if pa.types.is_list(kind):
        return column.with_type(pa.list_(_without_nulls(kind.value_field)))
    if pa.types.is_map(kind):
        return column.with_type(pa.map_(_without_nulls(kind.key_field), _without_nulls(kind.item_field)))
    return column


def plain_type(kind: pa.DataType) -> T.PrimitiveType | None:
    """Returns the type in the table; None for records, lists, maps, and types that Iceberg does not have."""
    if pa.types.is_signed_integer(kind):
        return T.LongType() if kind.bit_width == 64 else T.IntegerType()
    if pa.types.is_decimal128(kind):
        return T.DecimalType(kind.precision, kind.scale)
    if pa.types.is_timestamp(kind) and kind.unit == "us":
        return T.TimestamptzType() if kind.tz else T.TimestampType()
    if pa.types.is_time(kind):
        return T.TimeType() if kind.unit == "us" else None
    return _SAME.get(kind)


_SAME: dict[pa.DataType, T.PrimitiveType] = {
    pa.bool_(): T.BooleanType(),
    pa.float32(): T.FloatType(),
    pa.float64(): T.DoubleType(),
    pa.string(): T.StringType(),
    pa.binary(): T.BinaryType(),
    pa.date32(): T.DateType(),
}


# --- objects


def check_objects(columns: pa.Schema, stored: Sequence[tuple[pa.Schema, int]], *, pool_name: str) -> None:
    """Raises InvalidInput if readers could not read a column of an object as the table's column.

    `stored`: schemas of objects, and the number of objects with each; with the names that readers of the pool see.
    """
    for column in columns:
        kinds: dict[str, int] = {}
        for schema, objects in stored:
            index = schema.get_field_index(column.name)
            if index >= 0 and not reads_as(schema.field(index), column):
                kind = show_type(schema.field(index))
                kinds[kind] = kinds.get(kind, 0) + objects
        for kind, objects in kinds.items():
            raise InvalidInput(
                f"pool {pool_name!r}: field {column.name!r} is {show_type(column)}, and {kind} in "
                f"{counted(objects, 'object')}, which Iceberg does not read as one; a compaction unites the "
                f"objects that it merges (lake compact {pool_name} --strategy full); otherwise leave it out "
                f"(--without {column.name})"
            )


def reads_as(stored: pa.Field, column: pa.Field) -> bool:
    """Whether readers of Iceberg read the stored values as values of the column."""
    if is_json(stored):
        return False
    from_, to = stored.type, column.type
    if pa.types.is_struct(from_) and pa.types.is_struct(to):
        return all(
            from_.get_field_index(member.name) < 0 or reads_as(from_.field(member.name), member)
            for member in to
        )
    if pa.types.is_list(from_) and pa.types.is_list(to):
        return reads_as(from_.value_field, to.value_field)
    if pa.types.is_map(from_) and pa.types.is_map(to):
        return reads_as(from_.key_field, to.key_field) and reads_as(from_.item_field, to.item_field)
    plain, target = plain_type(from_), plain_type(to)
    return plain is not None and target is not None and is_wider(target, plain)


def is_wider(wider: T.IcebergType, kind: T.IcebergType) -> bool:
    """Whether the types are equal, or Iceberg can read a column of type `kind` as one of type `wider`."""
    if isinstance(wider, T.DecimalType) and isinstance(kind, T.DecimalType):
        return wider.scale == kind.scale and wider.precision >= kind.precision
    pairs = ((T.IntegerType, T.LongType), (T.FloatType, T.DoubleType))
    return wider == kind or any(
        isinstance(kind, narrow) and isinstance(wider, wide) for narrow, wide in pairs
    )
