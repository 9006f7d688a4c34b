"""Few records over many: what a compacted pool and the loads since then usually are.

A merge brings every record into order.  Where most of them lie in references that follow each other (the `base`)
and all others are newer and few, the base stays as it is decoded: each of the few is put behind the records of its
key, which are found by search, and a table of the base that none of them falls into is passed through untouched.
In upsert pools they take the place of what they supersede by the same copy.

`split` decides by the references alone whether it is so; `overlay` does it.  Caller: `reading.scan.merged`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake_core.history import Reference
from lake_core.keys import PoolKey
from lake_core.keys.columns import insertion_points, key_at
from lake_core.objects.read import rows_below
from lake_core.objects.weight import Sizes

AFTER_KEY = b"\0"
"""Appended to a key it is the smallest key above it."""


def split_bulk_and_delta(
    cluster: Sequence[Reference], *, min_bulk_ratio: int
) -> tuple[list[Reference], list[Reference]] | None:
    """The base in order of the key, and the few; None where it is not so.

    The base holds at least `min_bulk_ratio` times the records of the few.
    """
    most = sum(r.records for r in cluster) // (min_bulk_ratio + 1)
    bulk: list[Reference] = []  # by low bound; they share no key, so by high bound too
    delta: list[Reference] = []
    for reference in sorted(cluster, key=lambda r: r.records, reverse=True):
        place = bisect_right(bulk, reference.low, key=lambda b: b.high)
        if place < len(bulk) and bulk[place].low < reference.high:
            delta.append(reference)
            most -= reference.records
            if most < 0:
                return None
        else:
            bulk.insert(place, reference)
    if not delta or min(r.first_seq for r in delta) <= max(b.seq for b in bulk):
        return None
    return bulk, delta


def insert_delta(
    bulk: Iterable[pa.Table], delta: Iterable[pa.Table], *, key: PoolKey, newest: bool, most_bytes: int
) -> Iterator[pa.Table]:
    """Both streams in one, by key and age; `newest`: of each key, which each stream has once, the newest alone.

    About `most_bytes` of the few are gathered at a time: one table of the base may span many of them.
    """
    coming = _Coming(delta, key)
    for table in (t for t in bulk if t.num_rows):
        while True:  # every turn but the last uses up some of the few
            # where a key may go on in the next table, what is newer has to wait for it
            over, reach = coming.up_to(
                key_at(table, table.num_rows - 1, key), inclusive=newest, most_bytes=most_bytes
            )
            if over is None:
                yield table
                break
            if reach is None:
                yield _laid(table, over, key, newest=newest)
                break
            rows = rows_below(table, reach + AFTER_KEY, key)
            yield _laid(table.slice(0, rows), over, key, newest=newest) if rows else over
            table = table.slice(rows)
            if not table.num_rows:
                break
    yield from coming.rest()


def _laid(table: pa.Table, over: pa.Table, key: PoolKey, *, newest: bool) -> pa.Table:
    places, same = insertion_points(table, over, key)
    rows = table.num_rows
    order = np.insert(np.arange(rows), places, np.arange(rows, rows + over.num_rows))
    if newest and same.any():
        superseded = np.zeros(rows + over.num_rows, np.bool_)
        superseded[places[same] - 1] = True
        order = order[~superseded[order]]
    both = pa.concat_tables([table, over]).combine_chunks()
    return pc.take(both, pa.array(order), boundscheck=False)


class _Coming:
    """The few, of which those up to a key are taken at a time."""

    def __init__(self, tables: Iterable[pa.Table], key: PoolKey) -> None:
        self._tables = iter(tables)
        self._key = key
        self._held = next(self._tables, None)
        self._sizes = Sizes(0, ()) if self._held is None else Sizes.of(self._held.schema)

    def up_to(
        self, bound: bytes, *, inclusive: bool, most_bytes: int
    ) -> tuple[pa.Table | None, bytes | None]:
        """Those up to the bound; or, if they are more than so many bytes, the first of them and their last key."""
        taken, size = [], 0
        limit = bound + AFTER_KEY if inclusive else bound
        while (held := self._held) is not None:  # every turn uses up a table, but for the last
            below = rows_below(held, limit, self._key)
            rows = min(below, max(1, int((most_bytes - size) / self._sizes.record(held))))
            if rows:
                taken.append(held.slice(0, rows))
                size += self._sizes.size(taken[-1])
            self._held = held.slice(rows) if rows < held.num_rows else next(self._tables, None)
            if rows < below or size > most_bytes:
                return pa.concat_tables(taken), key_at(held, rows - 1, self._key)
            if rows < held.num_rows:
                break
        return pa.concat_tables(taken) if taken else None, None

    def rest(self) -> Iterator[pa.Table]:
        if self._held is not None:
            yield self._held
        yield from self._tables
