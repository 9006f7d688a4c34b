"""Upsert: the last record of each key, in a table sorted by key and age."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake_core.combine.groups import Mask
from lake_core.combine.hidden import DELETED


def newest(table: pa.Table, ends: Mask) -> pa.Table:
    """The last record of each key, delete markers included; `ends` marks it."""
    return table if bool(np.all(ends)) else table.filter(pa.array(ends))


def without_markers(table: pa.Table) -> pa.Table:
    """The records without the delete markers."""
    if DELETED not in table.schema.names:
        return table
    markers = are_markers(table)
    return table.filter(pc.invert(markers)) if pc.any(markers).as_py() else table


def are_markers(table: pa.Table) -> pa.ChunkedArray:
    """Whether each record is a delete marker; the table has the column `_deleted`."""
    return pc.fill_null(table.column(DELETED).cast(pa.bool_()), False)
