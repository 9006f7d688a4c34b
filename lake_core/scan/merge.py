"""Merging sorted streams into one sorted stream, in bounded memory.

A stream is opened when the merge reaches its low bound and closed when it is spent, so objects that do not
overlap pass through one after another, as they were decoded.  Where several are open, the merge works in
windows: the smallest of their last buffered keys is a bound that no stream can still fall below; what each
holds up to the bound is brought into order by one stable sort that finds the runs (`keys.columns`).  Records
of equal keys come by sequence and place: those of the stream, or of the record where streams are `mixed`.

Memory: one batch a stream that is open at the same time, and one window.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lake_core.combine.hidden import ORDER
from lake_core.keys import PoolKey
from lake_core.keys.columns import key_at, sort_order

Cut = tuple[bytes, int, int]
"""A place in the merged order: key, sequence, place."""


@dataclass
class Stream:
    """A sorted stream that is not open yet: no key is below `low`.

    All records have `seq` and `place`, unless the stream is `mixed`: then the tables say, in the hidden columns.
    """

    low: bytes
    seq: int
    place: int
    open: Callable[[], Iterator[pa.Table]]
    mixed: bool = False

    @property
    def begin(self) -> Cut:
        """Nothing of the stream comes before this."""
        return self.low, -1 if self.mixed else self.seq, self.place


@dataclass
class _Open:
    stream: Stream
    batches: Iterator[pa.Table]
    key: PoolKey
    buffer: pa.Table = field(init=False)
    first: Cut = (b"", 0, 0)
    last: Cut = (b"", 0, 0)
    _ahead: pa.Table | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._ahead = next(self.batches, None)

    def fill(self) -> bool:
        """Take the next batch into the empty buffer; False where the stream is spent."""
        if self._ahead is None:
            return False
        self.buffer = self._ahead
        self.first = self.at(0)
        self.last = self.at(self.buffer.num_rows - 1)
        self._ahead = next(self.batches, None)
        return True

    @property
    def final(self) -> bool:
        """Whether nothing comes after the buffer."""
        return self._ahead is None

    def at(self, row: int) -> Cut:
        """The place of a buffered record in the merged order."""
        key = key_at(self.buffer, row, self.key)
        if not self.stream.mixed:
            return key, self.stream.seq, self.stream.place
        seq, place = (self.buffer.column(name)[row].as_py() for name in ORDER.names)
        return key, seq, place

    def up_to(self, cut: Cut | None) -> pa.Table:
        """Take the buffered records that nothing still to come can precede: those at or before the cut."""
        rows = self.buffer.num_rows
        if cut is None or self.last <= cut:
            taken, self.buffer = self.buffer, self.buffer.slice(rows)
            return taken
        rows = bisect_right(range(rows), cut, key=self.at)
        taken = self.buffer.slice(0, rows)
        self.buffer = self.buffer.slice(rows)
        self.first = self.at(0)
        return taken


def merge(streams: list[Stream], *, key: PoolKey) -> Iterator[pa.Table]:
    """All records of the streams in key order; tables of the streams' common schema."""
    waiting = sorted(streams, key=lambda s: s.begin, reverse=True)
    mixed = any(s.mixed for s in streams)
    active: list[_Open] = []
    while waiting or active:  # every turn opens a stream or uses up records of a batch
        cuts = [s.last for s in active if not s.final]
        if waiting:
            cuts.append(waiting[-1].begin)
        cut = min(cuts, default=None)
        parts = [s.up_to(cut) for s in active if cut is None or s.first <= cut]
        if not parts:  # the next stream begins before anything that is open
            _activate(active, waiting, key)
            continue
        active = [s for s in active if s.buffer.num_rows or s.fill()]
        yield _in_order(parts, key, mixed=mixed)


def _activate(active: list[_Open], waiting: list[Stream], key: PoolKey) -> None:
    """Open the next streams: all that begin at one key, for a turn each would cost the square of their number."""
    low = waiting[-1].low
    while waiting and waiting[-1].low == low:
        stream = waiting.pop()
        opened = _Open(stream, stream.open(), key)
        if opened.fill():
            active.append(opened)
    active.sort(key=lambda s: (s.stream.seq, s.stream.place))


def _in_order(parts: list[pa.Table], key: PoolKey, *, mixed: bool) -> pa.Table:
    """One table; parts that are not mixed come by age, which the stable sort keeps for equal keys."""
    if len(parts) == 1:
        return parts[0]
    window = pa.concat_tables(parts)
    then = tuple(_unsigned(window, name) for name in ORDER.names) if mixed else ()
    order = sort_order(window, key, then=then)
    return window if order is None else window.take(pa.array(order))


def _unsigned(window: pa.Table, name: str) -> npt.NDArray[np.uint64]:
    return window.column(name).to_numpy().astype(np.uint64)
