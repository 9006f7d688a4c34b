"""Finds the rows of a sorted table at which bounds of key ranges lie, by binary search in the columns.

A bound is bytes (`keys.encoding`).  Encoding the key of a record for each step of a search would take longer
than the search.  So the column of the first key field is searched in its own type, if that type holds the bound
exactly.  Called by `deleted`, and by readers of a list of ranges.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lake_core.keys import KeyRange, PoolKey
from lake_core.keys.ranges import parts_within
from log_lake.columns.keys import key_at
from log_lake.reading.merge.bounds import comparison

BEYOND = b"\0"
"""A key with this byte appended is the smallest key above it."""


def places_of(table: pa.Table, bounds: Sequence[bytes], key: PoolKey) -> list[int]:
    """Returns for each bound the number of records with smaller keys."""
    is_searched = _is_searched(table, key)
    comparisons = [comparison(bound, key, table.schema) if is_searched else None for bound in bounds]
    firsts = [
        one.values[0] if one is not None and one.values and one.values[0].is_valid else None
        for one in comparisons
    ]
    searched = pa.array([first for first in firsts if first is not None])
    spans = iter(_spans(table.column(key.names[0]), searched) if len(searched) else ())
    places = []
    for bound, one, first in zip(bounds, comparisons, firsts, strict=True):
        low, high = (0, table.num_rows) if first is None else next(spans)
        if one is not None and first is not None and len(one.values) == 1:
            places.append(high if one.beyond else low)
            continue
        places.append(
            bisect_left(
                range(table.num_rows), bound, lo=low, hi=high, key=lambda row: key_at(table, row, key)
            )
        )
    return places


def _spans(column: pa.ChunkedArray, values: pa.Array) -> list[tuple[int, int]]:
    """Returns for each value its first row in a sorted column, and the row after its last."""
    lows, highs = (pc.search_sorted(column, values, side=side).to_pylist() for side in ("left", "right"))
    return list(zip(lows, highs, strict=True))


def records_in(table: pa.Table, ranges: Sequence[KeyRange], key: PoolKey) -> pa.Table:
    """Returns the records of a sorted table (with at least one record) whose keys lie in the united ranges."""
    first, last = (key_at(table, row, key) for row in (0, table.num_rows - 1))
    parts = parts_within(ranges, KeyRange(first, last + BEYOND))
    bounds = [bound for part in parts for bound in (part.low, part.high) if bound is not None]
    places = places_of(table, bounds, key)
    spans = zip(places[::2], places[1::2], strict=True)
    slices = [table.slice(begin, end - begin) for begin, end in spans if begin < end]
    return pa.concat_tables(slices) if slices else table.slice(0, 0)


def _is_searched(table: pa.Table, key: PoolKey) -> bool:
    """Whether Arrow orders the first key field as keys are ordered."""
    if not key.fields or key.fields[0].descending:
        return False
    kind = table.schema.field(key.names[0]).type
    return not (pa.types.is_floating(kind) or pa.types.is_decimal(kind) or pa.types.is_null(kind))
