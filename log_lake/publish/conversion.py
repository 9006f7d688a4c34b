"""Columns of a published table that Iceberg has no type for, and the files that hold them (`publish.types=text`).

| in the lake | in the table |
|---|---|
| unsigned integers of 8 and 16, 32, 64 bits | int, long, decimal(20,0) |
| timestamps and times of day in seconds or milliseconds | in microseconds |
| timestamps and times of day in nanoseconds; durations; decimals of more than 38 digits | text |
| values of several kinds; records, lists and maps with one of the above inside | JSON as text |

An object that readers of Iceberg could not read as the table's columns is copied beside the table, without hidden
records.  The others are shown as they are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.manifest import DataFile

from lake_core.errors import InvalidInput
from lake_core.schemas.hidden import user_fields
from lake_core.values.types import is_json, show_type
from log_lake.columns.json_text import shown
from log_lake.lake.view import View
from log_lake.publish.data_files import copy_description
from log_lake.publish.fields import fault_of, reads_as
from log_lake.publish.names import TableNames
from log_lake.publish.place import Place
from log_lake.reading.plan import ScanPlan

_NEAREST: dict[pa.DataType, pa.DataType] = {
    pa.uint8(): pa.int32(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.time32("s"): pa.time64("us"),
    pa.time32("ms"): pa.time64("us"),
}


def as_text(schema: pa.Schema) -> pa.Schema:
    """Returns the fields as the table has them: a field that Iceberg cannot express gets the type that replaces it
    there."""
    return pa.schema([_of_table(column) for column in schema])


def _of_table(column: pa.Field) -> pa.Field:
    kind = column.type
    if pa.types.is_null(kind) or not fault_of(column):
        return column
    if pa.types.is_timestamp(kind) and kind.unit in ("s", "ms"):
        return pa.field(column.name, pa.timestamp("us", kind.tz))
    return pa.field(column.name, _NEAREST.get(kind, pa.string()))


def texts_of(schema: pa.Schema, columns: pa.Schema) -> frozenset[str]:
    """Returns the columns that are text only in the table.  As text their values have another order than in the
    pool."""
    return frozenset(column.name for column in columns if _is_text_of(schema.field(column.name), column))


def _is_text_of(field: pa.Field, column: pa.Field) -> bool:
    return pa.types.is_string(column.type) and (is_json(field) or not pa.types.is_string(field.type))


def must_be_copied(stored: pa.Schema, columns: pa.Schema, texts: Collection[str]) -> bool:
    """Whether readers of Iceberg could not read an object as the table's columns.

    `texts` are the columns that are text only in the table.  Readers open no object that has a field of a type
    that they do not know, even if the table leaves the field out.  If a field is text in this object and has
    other types in other objects, its texts are JSON in the table.
    """
    return any(
        fault_of(field)
        or field.name in texts
        or (field.name in columns.names and not reads_as(field, columns.field(field.name)))
        for field in user_fields(stored)
    )


def copied_file(
    plan: ScanPlan, view: View, columns: pa.Schema, names: TableNames, place: Place, *, location: str
) -> DataFile | None:
    """Writes what the table shows of an object as a file at the location; returns None if it shows no record of
    it.

    `plan` reads these columns, which have stored names, of the references to one object.  Raises InvalidInput for
    a value that its column cannot have, ObjectMissing, Corrupt, Unavailable.
    """
    schema = names.stored(columns)
    records = 0
    with place.store.open_output(place.name_of(location)) as output:
        with pq.ParquetWriter(output, schema, compression="zstd") as writer:
            for table in _tables(view.run(plan), columns, pool_name=view.config.name):
                records += table.num_rows
                writer.write_table(table.rename_columns(schema.names))
        size = output.tell()
    return copy_description(location=location, size=size, records=records) if records else None


def _tables(tables: Iterator[pa.Table], columns: pa.Schema, *, pool_name: str) -> Iterator[pa.Table]:
    for table in tables:
        converted = [
            _converted(values, field, column, pool_name)
            for values, field, column in zip(table.columns, table.schema, columns, strict=True)
        ]
        yield pa.table(converted, schema=columns)


def _converted(values: pa.ChunkedArray, field: pa.Field, column: pa.Field, pool_name: str) -> pa.ChunkedArray:
    """Returns the values of a field, converted to the type of the table's column."""
    if _is_text_of(field, column):
        texts = shown(values, field)
        if is_json(field) or pa.types.is_nested(field.type):
            return texts
        bare = pc.utf8_slice_codeunits(texts, 1, stop=-1)
        return pc.if_else(pc.starts_with(texts, '"'), bare, texts)
    try:
        return values.cast(column.type)
    except pa.ArrowInvalid as error:
        raise InvalidInput(
            f"pool {pool_name!r}: field {field.name!r} is {show_type(field)}, and a value of it does not fit "
            f"{show_type(column)}; leave it out (--without {field.name})"
        ) from error
