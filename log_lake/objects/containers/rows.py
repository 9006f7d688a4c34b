"""Keeps original records beside the fields that queries see: converts between ZNG rows and the columns
`hidden.ROW` of a table.

A typed format (ZNG, ZST) stores a record as one value of its own type.  Above the containers such a record is a
row of a table, like a record of Parquet: the table has the united fields of all types, and in `ROW` the digest
of the record's type and its bytes.  Merges, filters and sorts carry `ROW` along and never look into it.  A
record without `ROW` came from another format, or was changed on its way, for example by a declared type, by an
aggregate, or when a delete marker was emptied.  The type of such a record follows from its fields.

The digest is computed from the type itself, so tables of several objects agree on it. A process remembers each
type that it has read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake_core.errors import InvalidInput
from lake_core.schemas.hidden import BODY, ROW, TYPE, beside, user_fields
from log_lake.columns.arrays import Ints, Mask
from log_lake.columns.cast import cast_table, mixed_table
from log_lake.objects.normalize import normalized
from log_lake.zng.columns import Column, RecordColumn
from log_lake.zng.from_arrow import batch_of_tables
from log_lake.zng.rows import Batch, Rows, batch_of, rows_of
from log_lake.zng.slices import Buffer, Slices, binary_array, made
from log_lake.zng.to_arrow import record_batch
from log_lake.zng.type_values import type_value
from log_lake.zng.types import Record, Type, plain

MAX_TYPES = 100_000
"""How many types a process remembers; data with more types than this have no types in any useful sense."""

_BY_DIGEST: dict[bytes, Type] = {}
_DIGESTS: dict[Type, bytes] = {}


def digest_of(kind: Type) -> bytes:
    """Returns the digest that names the type, and remembers the type.  Raises InvalidInput if there are too many
    types."""
    digest = _DIGESTS.get(kind)
    if digest is None:
        if len(_DIGESTS) >= MAX_TYPES:
            raise InvalidInput(
                f"this process met more than {MAX_TYPES:,} types of records; begin another one, and load data of "
                "so many types into a pool with format=parquet"
            )
        digest = hashlib.sha256(type_value(kind)).digest()[:16]
        _BY_DIGEST[digest] = kind
        _DIGESTS[kind] = digest
    return digest


def type_of(digest: bytes) -> Type:
    """Returns the type with this digest, which this process remembers since it read a record of the type."""
    return _BY_DIGEST[digest]


def row_columns(values: Rows | Batch) -> pa.Table:
    """Returns the hidden columns `ROW` of the values: the ZNG type and the ZNG bytes of each record."""
    return pa.table([type_column(values), body_column(values)], schema=ROW)


def type_column(values: Rows | Batch) -> pa.Array:
    """Returns the column `TYPE` of the values: the digest of each value's type, also after a projection."""
    types = (values.told if isinstance(values, Batch) else None) or values.types
    digests = pa.array([digest_of(kind) for kind in types], pa.binary())
    return digests.take(pa.array(values.kinds))


def body_column(values: Rows | Batch) -> pa.Array:
    """Returns the column `BODY` of the values: the stored bytes of each value, without its type."""
    rows = rows_of(values) if isinstance(values, Batch) else values
    slices = Slices(rows.buffer, rows.start, np.maximum(rows.length, 0), np.zeros(len(rows), np.int64))
    return binary_array(slices, pa.binary())


def table_of(values: Rows | Batch, schema: pa.Schema, *, what: str) -> pa.Table:
    """Returns the records in the columns of the schema; other fields are not decoded.

    Raises Corrupt if bytes are not valid for their type.
    """
    if not len(schema):
        return pa.Table.from_batches(
            [pa.RecordBatch.from_struct_array(pa.array([{}] * len(values), pa.struct([])))]
        )
    batch = _projected(values if isinstance(values, Batch) else batch_of(values), set(schema.names))
    tables = []
    for kind, column in zip(batch.types, batch.columns, strict=True):
        records = pa.Table.from_batches([record_batch(kind, column)])
        tables.append(normalized(records, marks_hold=True) if records.num_columns else records)
    if len(tables) <= 1:
        return cast_table(tables[0], schema, what=what) if tables else schema.empty_table()
    return mixed_table(tables, schema, batch.order, what=what)


def _projected(batch: Batch, names: set[str]) -> Batch:
    """Returns the values of the types that occur, with only the fields of these names."""
    present = np.unique(batch.kinds)
    types: list[Type] = []
    columns: list[Column] = []
    for at in present.tolist():
        kind, column = batch.types[at], batch.columns[at]
        record = plain(kind)
        assert isinstance(record, Record)
        assert isinstance(column, RecordColumn)
        chosen = [number for number, name in enumerate(record.names) if name in names]
        if len(chosen) < len(record.names):
            kind = Record(
                tuple(record.names[number] for number in chosen),
                tuple(record.children[number] for number in chosen),
            )
            column = RecordColumn(column.valid, tuple(column.fields[number] for number in chosen))
        types.append(kind)
        columns.append(column)
    return Batch(types, np.searchsorted(present, batch.kinds), columns)


def rows_of_table(table: pa.Table) -> Rows:
    """Returns the records of a table as ZNG rows: the original rows where `ROW` has them, otherwise rows made from
    the fields.

    Raises InvalidInput for a type or value that ZNG cannot hold.
    """
    if TYPE not in table.schema.names:
        return _of_fields(table)
    digests = table.column(TYPE).combine_chunks()
    exact = np.asarray(digests.is_valid())
    if exact.all():
        return _exact(digests, table.column(BODY).combine_chunks())
    if not exact.any():
        return _of_fields(table)
    mask = pa.array(exact)
    parts = [
        _exact(digests.filter(mask), table.column(BODY).filter(mask).combine_chunks()),
        _of_fields(table.filter(pc.invert(mask))),
    ]
    return _together(parts, exact)


def with_rows_of_fields(table: pa.Table) -> pa.Table:
    """Returns the table with columns `ROW` that are made from its fields; for records that have no original
    form."""
    return beside(table, row_columns(_of_fields(table)))


def _exact(digests: pa.Array, bodies: pa.Array) -> Rows:
    coded = digests.dictionary_encode()
    types = [type_of(digest) for digest in coded.dictionary.to_pylist()]
    offsets = np.frombuffer(bodies.buffers()[1], np.int32, len(bodies) + 1, offset=4 * bodies.offset)
    data = np.frombuffer(bodies.buffers()[2] or b"", np.uint8)
    start = offsets[:-1].astype(np.int64)
    buffer = made(data[int(offsets[0]) : int(offsets[-1])])
    return Rows(
        buffer,
        types,
        np.asarray(coded.indices).astype(np.int64),
        start - int(offsets[0]),
        np.diff(offsets).astype(np.int64),
    )


def _of_fields(table: pa.Table) -> Rows:
    """Makes records from fields: all have one type, with the fields that at least one of them has."""
    names = [
        name
        for name in user_fields(table.schema).names
        if table.column(name).null_count < table.num_rows or not table.num_rows
    ]
    records = table.select(names).combine_chunks()
    if not names:
        batch = pa.RecordBatch.from_struct_array(pa.array([{}] * table.num_rows, pa.struct([])))
        return rows_of(batch_of_tables([batch]))
    return rows_of(batch_of_tables(records.to_batches()))


def _together(parts: Sequence[Rows], first: Mask) -> Rows:
    """Merges two lists of values: those of the first one go where `first` is set, the others elsewhere."""
    kinds, start, length = (np.zeros(len(first), np.int64) for _ in range(3))
    begun = types = 0
    every: list[Type] = []
    for rows, mask in zip(parts, (first, ~first), strict=True):
        kinds[mask], start[mask], length[mask] = rows.kinds + types, rows.start + begun, rows.length
        begun += rows.buffer.size
        types += len(rows.types)
        every += rows.types
    data = np.concatenate([rows.buffer.data[: rows.buffer.size] for rows in parts])
    numbers = _numbers(every)
    return Rows(
        Buffer(data, parts[0].buffer.where), list(dict.fromkeys(every)), numbers[kinds], start, length
    )


def _numbers(types: Sequence[Type]) -> Ints:
    """Returns for each type its index among the distinct types."""
    numbers = {kind: number for number, kind in enumerate(dict.fromkeys(types))}
    return np.array([numbers[kind] for kind in types], np.int64)
