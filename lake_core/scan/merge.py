"""Merging sorted streams into one sorted stream, in bounded memory.

A stream is opened when the merge reaches its low bound and closed when it is spent, so objects that do not
overlap pass through one after another, as they were decoded.  Where several are open, the merge works in
windows: the smallest of their last buffered keys is a bound that no stream can still fall below; what each
holds up to the bound is brought into order by one stable sort that finds the runs (`keys.columns`).  Records
of equal keys come in the order of the streams' arrival.

Memory: one batch a stream that is open at the same time, and one window.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from lake_core.keys import PoolKey
from lake_core.keys.columns import key_at, sort_order
from lake_core.objects.read import rows_below, rows_up_to

Cut = tuple[bytes, tuple[int, int]]
"""A place in the merged order: a key, and the arrival of the stream that holds it."""


@dataclass
class Stream:
    """A sorted stream that is not open yet: no key is below `low`; `arrival` orders equal keys."""

    low: bytes
    arrival: tuple[int, int]
    open: Callable[[], Iterator[pa.Table]]


@dataclass
class _Open:
    arrival: tuple[int, int]
    batches: Iterator[pa.Table]
    key: PoolKey
    buffer: pa.Table = field(init=False)
    last: bytes = b""
    _ahead: pa.Table | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._ahead = next(self.batches, None)

    def fill(self) -> bool:
        """Take the next batch into the empty buffer; False where the stream is spent."""
        if self._ahead is None:
            return False
        self.buffer = self._ahead
        self.last = key_at(self.buffer, self.buffer.num_rows - 1, self.key)
        self._ahead = next(self.batches, None)
        return True

    @property
    def final(self) -> bool:
        """Whether nothing comes after the buffer."""
        return self._ahead is None

    def take(self, rows: int) -> pa.Table:
        taken = self.buffer.slice(0, rows)
        self.buffer = self.buffer.slice(rows)
        return taken


def merge(streams: list[Stream], *, key: PoolKey) -> Iterator[pa.Table]:
    """All records of the streams in key order; tables of the streams' common schema."""
    waiting = sorted(streams, key=lambda s: (s.low, s.arrival), reverse=True)
    active: list[_Open] = []
    while waiting or active:  # every turn opens a stream or uses up records of a batch
        cuts = [(s.last, s.arrival) for s in active if not s.final]
        if waiting:
            cuts.append((waiting[-1].low, waiting[-1].arrival))
        cut = min(cuts, default=None)
        parts = [part for s in active if (part := _take(s, cut, key)).num_rows]
        if not parts:  # the next stream begins before anything that is open
            _activate(active, waiting, key)
            continue
        active = [s for s in active if s.buffer.num_rows or s.fill()]
        yield _in_order(parts, key)


def _activate(active: list[_Open], waiting: list[Stream], key: PoolKey) -> None:
    stream = waiting.pop()
    opened = _Open(stream.arrival, stream.open(), key)
    if opened.fill():
        active.append(opened)
        active.sort(key=lambda s: s.arrival)


def _take(stream: _Open, cut: Cut | None, key: PoolKey) -> pa.Table:
    """The stream's buffered records that nothing still to come can precede.

    Those are the records with (key, arrival of the stream) at or below the cut: a record with the cut's own
    key waits where an earlier stream may still hold more of that key.
    """
    rows = stream.buffer.num_rows
    if cut is not None:
        bound, arrival = cut
        inclusive = stream.arrival <= arrival
        if stream.last > bound or (stream.last == bound and not inclusive):
            rows = (rows_up_to if inclusive else rows_below)(stream.buffer, bound, key)
    return stream.take(rows)


def _in_order(parts: list[pa.Table], key: PoolKey) -> pa.Table:
    if len(parts) == 1:
        return parts[0]
    window = pa.concat_tables(parts)
    order = sort_order(window, key)
    return window if order is None else window.take(pa.array(order))
