"""Aggregate pools: combines the records of each key into one, field by field.

    sum, min, max       of the values; null if all are null; min and max ignore NaN
    count               the number of records: a load writes 1 into each (`rule.prepared`)
    first, last         the oldest and the newest value that is not null
    any_value           some value that is not null: here the oldest

Every function is associative: some records of a key may be combined first, and the result with the others
later.  Sums of doubles are then the same up to rounding.  Sums of integers and decimals are exact: they have 38
digits, and `rule.prepared` and `history.rebase` refuse values that would need more (decision 53).  A combined
record counts as written with the newest of its records.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lake_core.keys import PoolKey
from lake_core.schemas.hidden import ORDER
from lake_core.schemas.rule import Rule
from log_lake.columns.arrays import Ints, Mask


def aggregate(table: pa.Table, ends: Mask, *, key: PoolKey, rule: Rule) -> pa.Table:
    """Returns one record for each key of a table sorted by key and age; `ends` marks the last record of each
    key."""
    if bool(np.all(ends)):
        return table
    last = np.flatnonzero(ends)
    first = np.concatenate(([0], last[:-1] + 1))
    columns = []
    for field, column in zip(table.schema, table.columns, strict=True):
        if field.name in key.names or field.name in ORDER.names:
            columns.append(column.take(pa.array(last)))
            continue
        match rule.function(field.name):
            case "sum" | "count":  # `rule.prepared` made room
                columns.append(_grouped(column, first, last, "sum"))
            case "min" | "max" as function:
                columns.append(_grouped(column, first, last, function))
            case "last":
                columns.append(_last_valid(column, first))
            case _:
                columns.append(_first_valid(column, first))
    return pa.table(columns, schema=table.schema)


def _grouped(column: pa.ChunkedArray, first: Ints, last: Ints, function: str) -> pa.ChunkedArray:
    """Combines each run's values by one of Arrow's own functions; null if a run has no value."""
    if pa.types.is_null(column.type):
        return column.slice(0, len(first))
    if pa.types.is_duration(column.type):  # Arrow has no kernel for these
        ticks = _grouped(column.cast(pa.int64()), first, last, function)
        return ticks.cast(column.type)
    runs = np.repeat(np.arange(len(first)), last - first + 1)
    grouped = pa.table({"run": pa.array(runs), "value": column}).group_by("run", use_threads=False)
    return grouped.aggregate([("value", function)]).column(f"value_{function}").cast(column.type)


def _first_valid(column: pa.ChunkedArray, first: Ints) -> pa.ChunkedArray:
    if not column.null_count:
        return column.take(pa.array(first))
    rows = len(column)
    places = np.where(np.asarray(column.is_valid()), np.arange(rows), rows)
    return _take_known(column, np.minimum.reduceat(places, first), rows)


def _last_valid(column: pa.ChunkedArray, first: Ints) -> pa.ChunkedArray:
    rows = len(column)
    places = np.where(np.asarray(column.is_valid()), np.arange(rows), -1)
    return _take_known(column, np.maximum.reduceat(places, first), -1)


def _take_known(column: pa.ChunkedArray, places: Ints, unknown: int) -> pa.ChunkedArray:
    return column.take(pa.array(places, mask=places == unknown))
