"""Inserts a small delta into a bulk: a compacted pool, and the loads since then.

An ordinary merge sorts every record.  Often most records lie in references that do not overlap (the bulk), and
all others are newer and few (the delta).  Then the bulk stays as it is decoded: a search finds the place of
each delta record, after the bulk's records of the same key.  A table of the bulk without delta records is
passed through unchanged.  In upsert pools the same copy leaves out the superseded records.

`split_bulk_and_delta` decides from the references alone; `insert_delta` does the work.  Called by
`reading.scan.merged`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake_core.history import Reference
from lake_core.keys import PoolKey
from log_lake.columns.keys import insertion_points, key_at
from log_lake.objects.read import rows_below
from log_lake.objects.weight import Sizes

AFTER_KEY = b"\0"
"""A key with this byte appended is the smallest key above it."""


def split_bulk_and_delta(
    cluster: Sequence[Reference], *, min_bulk_ratio: int
) -> tuple[list[Reference], list[Reference]] | None:
    """Returns the bulk in key order, and the delta; None if the references cannot be divided into such parts.

    The bulk has at least `min_bulk_ratio` times as many records as the delta.
    """
    most = sum(r.records for r in cluster) // (min_bulk_ratio + 1)
    bulk: list[Reference] = []  # by low bound; they share no key, so by high bound too
    delta: list[Reference] = []
    for reference in sorted(cluster, key=lambda r: r.records, reverse=True):
        index = bisect_right(bulk, reference.low, key=lambda b: b.high)
        if index < len(bulk) and bulk[index].low < reference.high:
            delta.append(reference)
            most -= reference.records
            if most < 0:
                return None
        else:
            bulk.insert(index, reference)
    if not delta or min(r.first_seq for r in delta) <= max(b.seq for b in bulk):
        return None
    return bulk, delta


def insert_delta(
    bulk: Iterable[pa.Table], delta: Iterable[pa.Table], *, key: PoolKey, newest: bool, most_bytes: int
) -> Iterator[pa.Table]:
    """Yields the records of both streams by key and age.

    With `newest`, it yields only the newest record of each key; then neither stream may have a key twice.
    About `most_bytes` of the delta are in memory at a time, because one table of the bulk may span much of it.
    """
    remaining = _Delta(delta, key)
    for table in (t for t in bulk if t.num_rows):
        while True:  # every turn but the last uses up some of the delta
            # a key may go on in the next table of the bulk: then its newer records have to wait for that table
            part, reach = remaining.up_to(
                key_at(table, table.num_rows - 1, key), inclusive=newest, most_bytes=most_bytes
            )
            if part is None:
                yield table
                break
            if reach is None:
                yield _inserted(table, part, key, newest=newest)
                break
            rows = rows_below(table, reach + AFTER_KEY, key)
            yield _inserted(table.slice(0, rows), part, key, newest=newest) if rows else part
            table = table.slice(rows)
            if not table.num_rows:
                break
    yield from remaining.rest()


def _inserted(table: pa.Table, over: pa.Table, key: PoolKey, *, newest: bool) -> pa.Table:
    positions, same = insertion_points(table, over, key)
    rows = table.num_rows
    order = np.insert(np.arange(rows), positions, np.arange(rows, rows + over.num_rows))
    if newest and same.any():
        superseded = np.zeros(rows + over.num_rows, np.bool_)
        superseded[positions[same] - 1] = True
        order = order[~superseded[order]]
    both = pa.concat_tables([table, over]).combine_chunks()
    return pc.take(both, pa.array(order), boundscheck=False)


class _Delta:
    """The delta, taken a part at a time: the records up to a key."""

    def __init__(self, tables: Iterable[pa.Table], key: PoolKey) -> None:
        self._tables = iter(tables)
        self._key = key
        self._held = next(self._tables, None)
        self._sizes = Sizes(0, ()) if self._held is None else Sizes.of(self._held.schema)

    def up_to(
        self, bound: bytes, *, inclusive: bool, most_bytes: int
    ) -> tuple[pa.Table | None, bytes | None]:
        """Returns the delta's records up to the bound, and None.  If these records exceed `most_bytes`, returns
        only the first of them and the last key among these."""
        taken, size = [], 0
        limit = bound + AFTER_KEY if inclusive else bound
        while (table := self._held) is not None:  # every turn except the last uses up a table
            below = rows_below(table, limit, self._key)
            rows = min(below, max(1, int((most_bytes - size) / self._sizes.record(table))))
            if rows:
                taken.append(table.slice(0, rows))
                size += self._sizes.size(taken[-1])
            self._held = table.slice(rows) if rows < table.num_rows else next(self._tables, None)
            if rows < below or size > most_bytes:
                return pa.concat_tables(taken), key_at(table, rows - 1, self._key)
            if rows < table.num_rows:
                break
        return pa.concat_tables(taken) if taken else None, None

    def rest(self) -> Iterator[pa.Table]:
        if self._held is not None:
            yield self._held
        yield from self._tables
