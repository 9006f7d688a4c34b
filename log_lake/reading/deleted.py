"""Applies tombstones to a sorted stream: decides which records are deleted, and what replaces them.

Reading and compaction apply tombstones to the tables of a merge, before they combine records of equal keys.

In append and aggregate pools a deleted record is dropped.  In upsert pools the newest record of a key decides
even if it is deleted: the key is absent, and older versions do not come back.  So a record that a conditional
tombstone hides becomes a delete marker there.  A record that a tombstone hides by its range alone is dropped,
because the tombstone hides the older versions of the key too.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lake_core.conditions import Condition, top_level
from lake_core.history import Reference
from lake_core.history.tombstone import Tombstone
from lake_core.keys import PoolKey
from lake_core.schemas.hidden import SEQ
from log_lake.columns.arrays import Mask
from log_lake.columns.keys import key_at
from log_lake.combine.newest import with_marks
from log_lake.reading.places import places_of
from log_lake.where import Many, holds
from log_lake.where.many import Marks
from log_lake.where.segments import segments
from log_lake.where.shapes import Paired

NARROW = 1024
"""The most records in a tombstone's range that are compared together with those of other tombstones."""

MOST_NARROW = 256
"""The most tombstones that are compared together, so that the records of their ranges have a bound."""

Took = Callable[[pa.Table], None]
"""A function that is called with the records that are taken out of a stream."""


def fields_of(tombstones: Iterable[Tombstone]) -> tuple[str, ...]:
    """Returns the fields that the tombstones' conditions read, each once."""
    return tuple(dict.fromkeys(f for t in tombstones if t.condition for f in top_level(t.condition)))


def needs_sequences(tombstones: Sequence[Tombstone], cluster: Sequence[Reference]) -> bool:
    """Whether the sequence of each record is needed to decide which records are deleted.  If not, range and
    condition alone decide that."""
    if len(cluster) > 1:
        return bool(tombstones)
    return any(not t.reaches_all(cluster[0]) for t in tombstones)


def apply_tombstones(
    tables: Iterable[pa.Table],
    tombstones: Sequence[Tombstone],
    *,
    key: PoolKey,
    has_markers: bool,
    took: Took | None = None,
) -> Iterator[pa.Table]:
    """Yields the records that no tombstone hides, from tables sorted by key.

    If a table has the column `_seq`, a tombstone hides only records with a smaller sequence; otherwise all
    tombstones count as newer.  `took` gets the records that are dropped.  With `has_markers` the tables have
    the column `_deleted`, and a record that a condition hides becomes a delete marker.
    """
    hiding = Hiding(tombstones, key=key, has_markers=has_markers)
    for table in tables:
        live = hiding.left(table, took)
        if live.num_rows:
            yield live


class Hiding:
    """Tombstones, arranged once for all tables of a stream.

    Ranges without a condition are segments of keys.  Tombstones with a condition that cover a whole table are
    evaluated together (`where.Many`), and so are those whose ranges hold few of its records, each with its own
    records (`where.shapes`).  Tombstones that hide exact sequences are few, and applied one by one.
    """

    def __init__(self, tombstones: Sequence[Tombstone], *, key: PoolKey, has_markers: bool) -> None:
        self._key, self._has_markers = key, has_markers
        by_age = [t for t in tombstones if t.exactly is None]
        self._bounds, self._seqs = segments((t.low, t.high, t.seq) for t in by_age if t.condition is None)
        self._conditional = sorted((t for t in by_age if t.condition is not None), key=lambda t: t.low)
        self._lows = [t.low for t in self._conditional]
        self._exact = [t for t in tombstones if t.exactly is not None]
        self._many = lru_cache(maxsize=16)(self._together)

    def left(self, table: pa.Table, took: Took | None = None) -> pa.Table:
        """Returns the records of a table that no tombstone hides; `took` gets the records that are dropped."""
        if not table.num_rows:
            return table
        seqs = table.column(SEQ).to_numpy() if SEQ in table.schema.names else None
        dropped, marked = _Rows(table.num_rows, seqs), _Rows(table.num_rows, seqs)
        by_condition = marked if self._has_markers else dropped
        span = _Span(table, self._key)
        self._drop_ranges(span, dropped)
        self._hide_by_condition(span, by_condition)
        for tombstone in self._exact:
            begin, end = span.rows_in(tombstone.low, tombstone.high)
            if begin < end:
                target = dropped if tombstone.condition is None else by_condition
                records = table.slice(begin, end - begin)
                target.add(begin, _exactly_deleted(records, tombstone, by_age=seqs is not None))
        mask = marked.mask()
        if mask is not None:
            table = with_marks(table, mask)
        mask = dropped.mask()
        if mask is None:
            return table
        if took is not None:
            took(table.filter(pa.array(mask)))
        return table.slice(0, 0) if mask.all() else table.filter(pa.array(~mask))

    def _drop_ranges(self, span: _Span, dropped: _Rows) -> None:
        first = max(0, bisect_right(self._bounds, span.first) - 1)
        end = bisect_right(self._bounds, span.last)
        edges = span.places(self._bounds[first + 1 : end])
        begins = [span.place(self._bounds[first])] if first < end else []
        for seq, (begin, until) in zip(
            self._seqs[first:end], pairwise([*begins, *edges, span.rows]), strict=True
        ):
            if seq and begin < until:
                dropped.hide(begin, until, seq)

    def _hide_by_condition(self, span: _Span, hidden: _Rows) -> None:
        reached = range(bisect_right(self._lows, span.last))
        whole, parts = [], []
        for place in reached:
            tombstone = self._conditional[place]
            if tombstone.high is not None and tombstone.high <= span.first:
                continue
            if tombstone.low <= span.first and (tombstone.high is None or tombstone.high > span.last):
                whole.append(place)
            else:
                parts.append(tombstone)
        if whole:
            hidden.hide_up_to(0, self._of(tuple(whole), span.table, hidden.newest))
        bounds = sorted({b for one in parts for b in (one.low, one.high) if b is not None})
        places = dict(zip(bounds, span.places(bounds), strict=True))
        narrow: list[tuple[int, int, Tombstone]] = []
        for tombstone in parts:
            begin = places[tombstone.low]
            end = span.rows if tombstone.high is None else places[tombstone.high]
            if begin < end <= begin + NARROW:
                narrow.append((begin, end, tombstone))
            elif begin < end and tombstone.condition is not None:
                mask = _fulfils(tombstone.condition, span.table.slice(begin, end - begin))
                hidden.hide_up_to(begin, mask * np.int64(tombstone.seq))
        for at in range(0, len(narrow), MOST_NARROW):
            hidden.hide_up_to(0, _newest_of(narrow[at : at + MOST_NARROW], span.table))

    def _of(self, places: tuple[int, ...], table: pa.Table, newest: int | None) -> Marks:
        """Returns for each record the greatest sequence of a tombstone whose condition it fulfils, or 0.

        If all these tombstones are newer than the records, the greatest of their sequences is used for each of
        them.
        """
        seqs = [self._conditional[place].seq for place in places]
        if newest is None or newest < min(seqs):
            return self._many(places, max(seqs)).newest(table)
        return self._many(places, 0).newest(table)

    def _together(self, places: tuple[int, ...], seq: int) -> Many:
        tombstones = (self._conditional[place] for place in places)
        return Many((t.condition, seq or t.seq) for t in tombstones if t.condition is not None)


@dataclass
class _Span:
    """A table that has records, and the keys of its first and its last one."""

    table: pa.Table
    key: PoolKey

    def __post_init__(self) -> None:
        self.rows = self.table.num_rows
        self.first, self.last = (key_at(self.table, row, self.key) for row in (0, self.rows - 1))

    def place(self, bound: bytes) -> int:
        """Returns how many records of the table have keys below the bound."""
        return self.places([bound])[0]

    def places(self, bounds: list[bytes]) -> list[int]:
        """Returns for each bound how many records of the table have keys below it."""
        inside = [bound for bound in bounds if self.first < bound <= self.last]
        rows = dict(zip(inside, places_of(self.table, inside, self.key), strict=True))
        return [rows.get(b, 0 if b <= self.first else self.rows) for b in bounds]

    def rows_in(self, low: bytes, high: bytes | None) -> tuple[int, int]:
        """Returns the rows with a key from `low` (inclusive) to `high` (exclusive): the first of them, and the one
        after the last."""
        return self.place(low), self.rows if high is None else self.place(high)


class _Rows:
    """Which of the `count` records of a table are hidden. `seqs` are the records' sequences; None means that they
    were written before all deletes."""

    def __init__(self, count: int, seqs: npt.NDArray[np.int64] | None) -> None:
        self._count, self._seqs = count, seqs
        self._hidden: Mask | None = None
        self._below: Marks | None = None
        """For each record the sequence below which it is hidden."""
        self.newest = None if seqs is None else int(seqs.max())
        """The greatest sequence of a record; None if all were written before all deletes."""

    def add(self, begin: int, mask: Mask) -> None:
        """Hides the records that are set in a mask, whose first value is for record `begin`."""
        if mask.any():
            self._hidden = np.zeros(self._count, np.bool_) if self._hidden is None else self._hidden
            self._hidden[begin : begin + len(mask)] |= mask

    def hide(self, begin: int, end: int, seq: int) -> None:
        """Hides the records from row `begin` (inclusive) to `end` (exclusive) that were written before the
        sequence `seq`."""
        self.hide_up_to(begin, np.full(end - begin, seq, np.int64))

    def hide_up_to(self, begin: int, below: Marks) -> None:
        """Hides each record that was written before its sequence in `below`, whose first value is for record
        `begin`."""
        if below.any():
            self._below = np.zeros(self._count, np.int64) if self._below is None else self._below
            part = self._below[begin : begin + len(below)]
            np.maximum(part, below, out=part)

    def mask(self) -> Mask | None:
        """Returns for each record whether it is hidden; None if no record is."""
        hidden = self._hidden
        if self._below is not None:
            older = self._below > 0 if self._seqs is None else self._seqs < self._below
            hidden = older if hidden is None else hidden | older
        return hidden if hidden is not None and hidden.any() else None


def _exactly_deleted(records: pa.Table, tombstone: Tombstone, *, by_age: bool) -> Mask:
    """Returns which of the records (all in the tombstone's range) the tombstone hides by their exact
    sequences."""
    mask = np.ones(records.num_rows, np.bool_)
    if by_age and tombstone.exactly is not None:
        seqs = records.column(SEQ).to_numpy()
        first, last = tombstone.exactly
        mask = (seqs >= first) & (seqs <= last)
    if tombstone.condition is not None and mask.any():
        mask &= _fulfils(tombstone.condition, records)
    return mask


def _newest_of(narrow: Sequence[tuple[int, int, Tombstone]], table: pa.Table) -> Marks:
    """Returns for each record the greatest sequence of a tombstone that hides it, or 0.  Each tombstone is compared
    with the records from its first row (inclusive) to its second (exclusive)."""
    paired = Paired.of([t.condition for _, _, t in narrow if t.condition is not None], table.schema)
    rows = np.concatenate([np.arange(begin, end) for begin, end, _ in narrow])
    which = np.repeat(np.arange(len(narrow)), [end - begin for begin, end, _ in narrow])
    hides = paired.holding(table, rows, which)
    newest = np.zeros(table.num_rows, np.int64)
    np.maximum.at(newest, rows[hides], np.array([t.seq for _, _, t in narrow], np.int64)[which[hides]])
    return newest


def _fulfils(condition: Condition, records: pa.Table) -> Mask:
    return np.asarray(holds(condition, records).to_numpy(zero_copy_only=False))
