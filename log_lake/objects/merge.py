"""Merges sorted streams into one sorted stream, in bounded memory.

A stream is opened when the merge reaches its low bound and closed when it is used up, so the records of objects
that do not overlap are passed on one object after another, as they were decoded.  If several streams are open,
the merge works in windows.  The smallest of their last buffered keys is a bound: no stream can still deliver a
key below it.  All buffered records up to the bound are ordered by one stable sort, which finds the runs
(`columns.keys`).  Records of equal keys are ordered by sequence and ordinal: those of the stream, or with
`has_sequence` those of each record.

A few threads read one batch ahead for every stream.  A stream's buffer is refilled as soon as it has less than
half a batch, so each window takes at least half a batch of every stream.  If streams were refilled only when
they are empty, each would need a window of its own.

Memory: one window, and two or three batches of each open stream.  The streams decide how large a batch is.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lake_core.keys import PoolKey
from lake_core.schemas.hidden import ORDER
from log_lake.columns.cast import Mixed, cast_table
from log_lake.columns.keys import key_at, sort_order
from log_lake.objects.weight import least_width

READERS = 4
"""How many threads read and decode batches ahead, and bring columns into order."""

COLUMN_TASKS = 64
"""The most tasks that sort the columns of a window: a task costs as much as copying a few values."""

Cut = tuple[bytes, int, int]
"""A position in the merged order: key, sequence, ordinal."""


@dataclass
class ClosedStream:
    """A sorted stream that is not open yet; none of its keys is below `low`.

    With `has_sequence` the hidden columns of its tables order records of equal keys.  Otherwise all of its
    records have the sequence `seq` and the ordinal `ordinal`.
    """

    low: bytes
    seq: int
    ordinal: int
    open: Callable[[], Iterator[pa.Table]]
    has_sequence: bool = False

    @property
    def begin(self) -> Cut:
        """The position in the merged order before which the stream has no record."""
        return self.low, -1 if self.has_sequence else self.seq, self.ordinal


@dataclass
class _Open:
    stream: ClosedStream
    key: PoolKey
    readers: Executor
    buffer: pa.Table | None = field(default=None, init=False)
    first: Cut = (b"", 0, 0)
    last: Cut = (b"", 0, 0)
    _batches: Iterator[pa.Table] = field(init=False)
    _ahead: Future[pa.Table | None] | None = field(init=False)
    _batch_rows: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._batches = self.stream.open()
        self._ahead = self._next()

    def _next(self) -> Future[pa.Table | None]:
        return self.readers.submit(next, self._batches, None)

    def fill(self) -> bool:
        """Refills a buffer that is empty or nearly so.  Returns False if the stream is used up."""
        buffered = self.rows
        if self._ahead is not None and (buffered == 0 or buffered < self._batch_rows // 2):
            batch = self._ahead.result()
            self._ahead = None if batch is None else self._next()
            if batch is not None:
                self._batch_rows = batch.num_rows
                self.buffer = pa.concat_tables([self.buffer, batch]) if buffered else batch
                self.first = self.at(0)
                self.last = self.at(self.rows - 1)
        return self.rows > 0

    @property
    def rows(self) -> int:
        """The number of buffered records."""
        return self.buffer.num_rows if self.buffer is not None else 0

    @property
    def final(self) -> bool:
        """Whether the buffer has all remaining records of the stream."""
        if self._ahead is not None and self._ahead.result() is None:
            self._ahead = None
        return self._ahead is None

    def at(self, row: int) -> Cut:
        """Returns the position of a buffered record in the merged order."""
        assert self.buffer is not None
        key = key_at(self.buffer, row, self.key)
        if not self.stream.has_sequence:
            return key, self.stream.seq, self.stream.ordinal
        seq, ordinal = (self.buffer.column(name)[row].as_py() for name in ORDER.names)
        return key, seq, ordinal

    def up_to(self, cut: Cut | None) -> pa.Table:
        """Removes and returns the buffered records at or before the cut: no record still to come can precede
        these."""
        buffered, rows = self.buffer, self.rows
        assert buffered is not None
        if cut is not None and self.last > cut:
            rows = bisect_right(range(rows), cut, key=self.at)
        self.buffer = buffered.slice(rows)
        if self.rows:
            self.first = self.at(0)
        return buffered.slice(0, rows)


def _threads() -> Executor:
    return ThreadPoolExecutor(READERS)


def merge(
    streams: list[ClosedStream],
    *,
    key: PoolKey,
    schema: pa.Schema | None = None,
    most_bytes: int = 8 << 20,
    threads: Callable[[], Executor] = _threads,
) -> Generator[pa.Table]:
    """Yields all records of the streams in key order, in a united schema; a stream's tables may lack fields of it.

    Without `schema`, all tables must have the same schema.  Missing fields are added to a window after it is
    ordered, in tables of about `most_bytes`.  If they were added before, with a hundred objects that have
    fields of their own, each stream would hold and sort a hundred times as many columns.
    """
    waiting = sorted(streams, key=lambda s: s.begin, reverse=True)
    has_sequence = any(s.has_sequence for s in streams)
    active: list[_Open] = []
    readers = threads()
    try:
        while waiting or active:  # every turn opens a stream or uses up records of a batch
            cuts = [s.last for s in active if not s.final]
            if waiting:
                cuts.append(waiting[-1].begin)
            cut = min(cuts, default=None)
            parts = [s.up_to(cut) for s in active if cut is None or s.first <= cut]
            if not parts:  # the next stream begins before anything that is open
                active += _next_streams(waiting, key, readers)
                active.sort(key=lambda s: (s.stream.seq, s.stream.ordinal))
            active = [s for s in active if s.fill()]  # and reads ahead while the window is brought into order
            if parts:
                yield from in_order(parts, key, readers, schema, most_bytes, has_sequence=has_sequence)
    finally:  # if the reader stops early too: batches that were not begun are not read
        readers.shutdown(cancel_futures=True)


def _next_streams(waiting: list[ClosedStream], key: PoolKey, readers: Executor) -> list[_Open]:
    """Opens the next streams: all that begin at the same key, because one step per stream would take quadratic
    time."""
    low, opened = waiting[-1].low, []
    while waiting and waiting[-1].low == low:
        opened.append(_Open(waiting.pop(), key, readers))
    return opened


def in_order(
    parts: list[pa.Table],
    key: PoolKey,
    threads: Executor,
    schema: pa.Schema | None,
    most_bytes: int,
    *,
    has_sequence: bool,
) -> Iterator[pa.Table]:
    """Yields the records of the parts, which are tables of a window, in order.  Parts without sequences must be
    given by age; the stable sort keeps this order for equal keys."""
    fields = [*key.names, *(ORDER.names if has_sequence else ())]
    if schema is not None and any(part.schema.names != schema.names for part in parts):
        keys = pa.concat_tables([part.select(fields) for part in parts]) if fields else None
        order = None if keys is None else _order(keys, key, has_sequence=has_sequence)
        yield from _united(parts, order, schema, most_bytes)
        return
    if len(parts) == 1:
        yield parts[0]
        return
    window = pa.concat_tables(parts)
    order = _order(window, key, has_sequence=has_sequence)
    if order is None:
        yield window
        return
    indices = pa.array(order)
    every = max(1, -(-window.num_columns // COLUMN_TASKS))
    columns = window.columns
    parts_of = [columns[at : at + every] for at in range(0, len(columns), every)]
    taken = threads.map(lambda part: [pc.take(c, indices, boundscheck=False) for c in part], parts_of)
    yield pa.Table.from_arrays(list(chain.from_iterable(taken)), schema=window.schema)


def _order(window: pa.Table, key: PoolKey, *, has_sequence: bool) -> npt.NDArray[np.int64] | None:
    then = tuple(_unsigned(window, name) for name in ORDER.names) if has_sequence else ()
    return sort_order(window, key, then=then)


_MERGE = "the merge"


def _united(
    parts: list[pa.Table], order: npt.NDArray[np.int64] | None, schema: pa.Schema, most_bytes: int
) -> Iterator[pa.Table]:
    """Yields the records of parts with different fields, a few at a time, in this `order`; None means as
    they are."""
    count = sum(part.num_rows for part in parts)
    width = least_width(schema) + sum(part.nbytes for part in parts) / count
    rows = max(1, int(most_bytes / width))
    if len(parts) == 1:
        yield from (cast_table(parts[0].slice(at, rows), schema, what=_MERGE) for at in range(0, count, rows))
        return
    mixed = Mixed(parts, schema, what=_MERGE)
    order = np.arange(count) if order is None else order
    for begin in range(0, count, rows):
        yield mixed.taken(order[begin : begin + rows])


def _unsigned(window: pa.Table, name: str) -> npt.NDArray[np.uint64]:
    return window.column(name).to_numpy().astype(np.uint64)
