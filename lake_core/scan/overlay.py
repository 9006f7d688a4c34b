"""Few records over many: what a compacted pool and the loads since then usually are.

A merge brings every record into order.  Where most of them lie in references that follow each other (the `base`)
and all others are newer and few, the base stays as it is decoded: each of the few is put behind the records of its
key, which are found by search, and a table of the base that none of them falls into is passed through untouched.
In upsert pools they take the place of what they supersede by the same copy.

`split` decides by the references alone whether it is so; `overlay` does it.  Caller: `scan.merged`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake_core.commits import Reference
from lake_core.keys import PoolKey
from lake_core.keys.columns import insertion_points, key_at
from lake_core.objects.read import rows_below

FEW = 8
"""The base holds so many times as many records as all else: where there are more, merging costs no more."""


def split(cluster: Sequence[Reference]) -> tuple[list[Reference], list[Reference]] | None:
    """The base in order of the key, and the few; None where it is not so."""
    most = sum(r.records for r in cluster) // (FEW + 1)
    base: list[Reference] = []  # by low bound; they share no key, so by high bound too
    few: list[Reference] = []
    for reference in sorted(cluster, key=lambda r: r.records, reverse=True):
        place = bisect_right(base, reference.low, key=lambda b: b.high)
        if place < len(base) and base[place].low < reference.high:
            few.append(reference)
            most -= reference.records
            if most < 0:
                return None
        else:
            base.insert(place, reference)
    if not few or min(r.first_seq for r in few) <= max(b.seq for b in base):
        return None
    return base, few


def overlay(
    base: Iterable[pa.Table], few: Iterable[pa.Table], *, key: PoolKey, newest: bool
) -> Iterator[pa.Table]:
    """Both streams in one, by key and age; `newest`: of each key, which each stream has once, the newest alone."""
    coming = _Coming(few, key)
    for table in base:
        if table.num_rows:
            # where a key may go on in the next table, what is newer has to wait for it
            over = coming.up_to(key_at(table, table.num_rows - 1, key), inclusive=newest)
            yield _laid(table, over, key, newest=newest) if over is not None else table
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

    def up_to(self, bound: bytes, *, inclusive: bool) -> pa.Table | None:
        taken = []
        limit = bound + b"\0" if inclusive else bound  # the next of all keys
        while (held := self._held) is not None:  # every turn uses up a table, but for the last
            rows = rows_below(held, limit, self._key)
            if rows:
                taken.append(held.slice(0, rows))
            if rows < held.num_rows:
                self._held = held.slice(rows)
                break
            self._held = next(self._tables, None)
        return pa.concat_tables(taken) if taken else None

    def rest(self) -> Iterator[pa.Table]:
        if self._held is not None:
            yield self._held
        yield from self._tables
