"""Applying tombstones to a sorted stream: which records are deleted, and what replaces them.

Reading and compaction apply tombstones to the tables of a merge, before they combine records of equal keys.

In append and aggregate pools a deleted record is dropped.  In upsert pools the newest record of a key decides even
if it is deleted: the key is absent, and older versions do not come back.  So a record that a conditional tombstone
hides becomes a delete marker there.  A record that a tombstone hides by its range alone is dropped, since the
tombstone hides the older versions of the key too.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake_core.conditions import Condition, top_level
from lake_core.history import Reference
from lake_core.history.tombstone import Tombstone
from lake_core.keys import KeyRange, PoolKey
from lake_core.schemas.hidden import SEQ
from log_lake.columns.arrays import Mask
from log_lake.columns.keys import key_at
from log_lake.combine.newest import with_marks
from log_lake.where import alternatives, holds


def fields_of(tombstones: Iterable[Tombstone]) -> tuple[str, ...]:
    """The fields that the tombstones' conditions read, each once."""
    return tuple(dict.fromkeys(f for t in tombstones if t.condition for f in top_level(t.condition)))


def needs_sequences(tombstones: Sequence[Tombstone], cluster: Sequence[Reference]) -> bool:
    """Whether per-record sequence numbers are needed.  If not, range and condition alone decide what is deleted."""
    if len(cluster) > 1:
        return bool(tombstones)
    return any(not t.reaches_all(cluster[0]) for t in tombstones)


def apply_tombstones(
    tables: Iterable[pa.Table],
    tombstones: Sequence[Tombstone],
    *,
    key: PoolKey,
    has_markers: bool,
) -> Iterator[pa.Table]:
    """The records that no tombstone hides, from tables sorted by key.

    If a table has the column `_seq`, it decides which tombstones are newer than a record; otherwise all are
    newer.  With `has_markers` the tables have the column `_deleted`, and a record that a condition hides becomes
    a delete marker.
    """
    by_low = sorted(tombstones, key=lambda t: t.low)
    for table in tables:
        live = _of_table(table, by_low, key=key, has_markers=has_markers)
        if live.num_rows:
            yield live


def _of_table(
    table: pa.Table, tombstones: Sequence[Tombstone], *, key: PoolKey, has_markers: bool
) -> pa.Table:
    rows = table.num_rows
    if not rows:
        return table
    first, last = key_at(table, 0, key), key_at(table, rows - 1, key)
    newest = pc.max(table.column(SEQ)).as_py() if SEQ in table.schema.names else None
    dropped, marked = _Rows(rows), _Rows(rows)
    by_condition = marked if has_markers else dropped
    of_all: list[Condition] = []
    for tombstone in tombstones:
        if tombstone.low > last:
            break
        if tombstone.high is not None and tombstone.high <= first:
            continue
        begin, end = _rows_in(table, tombstone.key_range, key)
        reaches_all = newest is None or (newest < tombstone.seq and tombstone.exactly is None)
        if reaches_all and (begin, end) == (0, rows) and tombstone.condition is not None:
            of_all.append(tombstone.condition)
        elif begin < end:
            target = dropped if tombstone.condition is None else by_condition
            target.add(
                begin, _deleted_mask(table.slice(begin, end - begin), tombstone, by_age=not reaches_all)
            )
    for condition in _alternatives(tuple(of_all)):
        by_condition.add(0, _fulfils(condition, table))
    if marked.mask is not None:
        table = with_marks(table, marked.mask)
    if dropped.mask is None:
        return table
    return table.slice(0, 0) if dropped.mask.all() else table.filter(pa.array(~dropped.mask))


@dataclass
class _Rows:
    """A set of records of a table with `count` records; `mask` is None while it is empty."""

    count: int
    mask: Mask | None = None

    def add(self, begin: int, mask: Mask) -> None:
        """Add the records of a mask that begins at record `begin`."""
        if mask.any():
            self.mask = np.zeros(self.count, np.bool_) if self.mask is None else self.mask
            self.mask[begin : begin + len(mask)] |= mask


@lru_cache(maxsize=16)
def _alternatives(conditions: tuple[Condition, ...]) -> tuple[Condition, ...]:
    """Cached, since a scan asks for the same conditions at every batch."""
    return alternatives(conditions)


def _rows_in(table: pa.Table, key_range: KeyRange, key: PoolKey) -> tuple[int, int]:
    rows = range(table.num_rows)
    begin = bisect_left(rows, key_range.low, key=lambda row: key_at(table, row, key)) if key_range.low else 0
    if key_range.high is None:
        return begin, len(rows)
    return begin, bisect_left(rows, key_range.high, lo=begin, key=lambda row: key_at(table, row, key))


def _deleted_mask(records: pa.Table, tombstone: Tombstone, *, by_age: bool) -> Mask:
    """Which of the records, all in the tombstone's range, it hides."""
    mask = np.ones(records.num_rows, np.bool_)
    if by_age:
        seqs = records.column(SEQ).to_numpy()
        if tombstone.exactly is None:
            mask = seqs < tombstone.seq
        else:
            first, last = tombstone.exactly
            mask = (seqs >= first) & (seqs <= last)
    if tombstone.condition is not None and mask.any():
        mask &= _fulfils(tombstone.condition, records)
    return mask


def _fulfils(condition: Condition, records: pa.Table) -> Mask:
    return np.asarray(holds(condition, records).to_numpy(zero_copy_only=False))
