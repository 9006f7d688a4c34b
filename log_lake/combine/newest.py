"""Upsert pools: finds the last record of each key in a table sorted by key and age, and handles delete markers.

Compaction and erasure remove everything but the key from a delete marker.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake_core.schemas.hidden import DELETED, ORDER, ROW
from log_lake.columns.arrays import Mask


def newest(table: pa.Table, ends: Mask) -> pa.Table:
    """Returns the last record of each key, even if it is a delete marker; `ends` marks these records."""
    return table if bool(np.all(ends)) else table.filter(pa.array(ends))


def without_markers(table: pa.Table) -> pa.Table:
    """Returns the records without the delete markers."""
    if DELETED not in table.schema.names:
        return table
    markers = are_markers(table)
    return table.filter(pc.invert(markers)) if pc.any(markers).as_py() else table


def are_markers(table: pa.Table) -> pa.ChunkedArray:
    """Returns for each record whether it is a delete marker; the table must have the column `_deleted`."""
    return pc.fill_null(table.column(DELETED).cast(pa.bool_()), False)


def bare_markers(table: pa.Table, key: Sequence[str]) -> Mask:
    """Returns for each record whether it is a delete marker that has only its key; `key` names the key
    fields."""
    if DELETED not in table.schema.names:
        return np.zeros(table.num_rows, np.bool_)
    bare = truth(are_markers(table))
    for name, column in zip(table.schema.names, table.columns, strict=True):
        if bare.any() and name not in (*key, DELETED, *ORDER.names):
            bare = bare & truth(pc.is_null(column))
    return bare


def with_marks(table: pa.Table, mask: Mask) -> pa.Table:
    """Returns the table with `_deleted` set to true for the records that `mask` marks, and without their own types
    (`ROW`).

    If such a record kept its own type, an object would still hold it in the form before its delete.  Other
    records keep their `_deleted`, even if it is null: a format that keeps records in their original form can
    store no other value.
    """
    marked = pa.array(mask)
    place = table.schema.get_field_index(DELETED)
    field = table.schema.field(place)
    markers = pc.if_else(marked, True, table.column(place).cast(pa.bool_()))
    table = table.set_column(place, field, markers.cast(field.type))
    for name in ROW.names:
        if (place := table.schema.get_field_index(name)) >= 0:
            kept = pc.if_else(marked, pa.scalar(None, table.schema.field(place).type), table.column(place))
            table = table.set_column(place, table.schema.field(place), kept)
    return table


def as_markers(table: pa.Table, mask: Mask, key: Sequence[str]) -> pa.Table:
    """Returns the table with delete markers, which have only their key, in place of the records that `mask`
    marks."""
    kept = pa.array(np.arange(table.num_rows), mask=mask)
    for place, field in enumerate(table.schema):
        if field.name not in (*key, DELETED, *ORDER.names, *ROW.names):
            table = table.set_column(place, field, table.column(place).take(kept))
    return with_marks(table, mask)


def emptied(table: pa.Table, key: Sequence[str]) -> pa.Table:
    """Returns the table after removing from every delete marker all fields except its key."""
    if DELETED not in table.schema.names:
        return table
    markers = truth(are_markers(table))
    return as_markers(table, markers, key) if markers.any() else table


def truth(column: pa.Array | pa.ChunkedArray) -> Mask:
    """Returns a boolean column without nulls as a NumPy mask."""
    if isinstance(column, pa.ChunkedArray):
        return np.asarray(column.to_numpy())
    return np.asarray(column.to_numpy(zero_copy_only=False))
