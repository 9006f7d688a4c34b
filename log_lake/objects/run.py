"""Writes one sorted run as objects that share no key: the run is cut at a size, and at the pool's split points.

A large load and a bulk import write their records this way, once these are in order.  No key is in two objects
of a run, however many records have it.  Called by `loading.builder`.
"""

from __future__ import annotations

import logging
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from lake_core.errors import CannotHold
from lake_core.keys import PoolKey
from log_lake.columns.keys import key_at
from log_lake.objects.weight import Sizes
from log_lake.objects.write import ObjectWriter, WrittenObject, plainer_of

log = logging.getLogger(__name__)

SLICE_BYTES = 4 << 20
SLICE_ROWS = 65_536
"""Decoded bytes and records that are written at once; the size of the object is checked after each slice."""

Tables = Callable[[], Iterator[pa.Table]]
"""The sorted records; every call gives all of them, from the first one on, in the same order."""


@dataclass(frozen=True)
class Cuts:
    """Where a run of `records` records is cut: at about `size` stored bytes, and before each of the `points`.

    The points are encoded keys in ascending order.  Objects become about equally large: a run of 1.2 times the
    size is one object, one of 2.6 times is three objects.
    """

    size: int
    records: int
    points: tuple[bytes, ...] = ()

    def limit(self, *, size: int, records: int) -> float:
        """Returns how many bytes an object may have, if the first `records` records of the run took `size`
        bytes."""
        if not records:
            return float(self.size)
        whole = size * max(1.0, self.records / records)
        return whole / max(1, round(whole / self.size))

    def point_above(self, key: bytes) -> bytes | None:
        """Returns the first split point above a key; None if no point is above it."""
        place = bisect_right(self.points, key)
        return self.points[place] if place < len(self.points) else None


def write_run(
    tables: Tables, cuts: Cuts, new_writer: Callable[[int], ObjectWriter], *, key: PoolKey
) -> list[WrittenObject]:
    """Writes the records as objects; `new_writer` gets the number of an object in the run, from 0.

    If a record does not fit the format, that object and the rest of the run are written in the next plainer one.
    Raises what `ObjectWriter` and `tables` raise.
    """
    written: list[WrittenObject] = []
    position, plainer = _Position(tables(), cuts, key), 0
    while True:  # every turn but the last writes an object, or goes to a plainer format
        writer = new_writer(len(written))
        for _ in range(plainer):
            writer = replace(writer, object_id=plainer_of(writer.object_id))
        try:
            with writer:
                for table in position.next_object(writer):
                    writer.write(table)
        except CannotHold as error:
            plainer += 1
            log.info("%s: %s; the rest of the run is written in a plainer format", writer.object_id, error)
            begun, position = position, _Position(tables(), cuts, key)
            position.skip(begun.done, size=begun.size)
            continue
        if not writer.records:
            return written
        written.append(writer.written)
        position.end_object(written[-1])


class _Position:
    """The position in a run: `done` records are in finished objects, which have `size` bytes."""

    def __init__(self, tables: Iterator[pa.Table], cuts: Cuts, key: PoolKey) -> None:
        self.done = self.size = 0
        self._tables = (part for table in tables for part in _slices(table))
        self._cuts, self._key = cuts, key
        self._waiting: list[pa.Table] = []

    def skip(self, records: int, *, size: int) -> None:
        """Counts this many records as written: finished objects hold them, `size` bytes in all."""
        self.done, self.size = records, size
        while records and (table := self._next()) is not None:
            self._waiting += [table.slice(records)] if table.num_rows > records else []
            records -= min(records, table.num_rows)

    def end_object(self, written: WrittenObject) -> None:
        """Counts the records of an object that was written; `next_object` has yielded them."""
        self.done += written.action.records
        self.size += written.action.size

    def next_object(self, writer: ObjectWriter) -> Iterator[pa.Table]:
        """Yields the tables of the next object; `writer` writes each before it asks for the next."""
        point: bytes | None = None
        last: bytes | None = None
        while (table := self._next()) is not None:
            if last is None:
                point = self._cuts.point_above(key_at(table, 0, self._key))
                rows = table.num_rows
            elif self._is_full(writer):  # only what has the key of the last record
                rows = self._rows(table, last, bisect_right)
            else:
                rows = table.num_rows
            if point is not None:
                rows = min(rows, self._rows(table, point, bisect_left))
            if rows:
                last = key_at(table, rows - 1, self._key)
                yield table.slice(0, rows)
            if rows < table.num_rows:
                self._waiting.append(table.slice(rows))
                return

    def _is_full(self, writer: ObjectWriter) -> bool:
        size, records = self.size + writer.size, self.done + writer.records
        return writer.size >= self._cuts.limit(size=size, records=records)

    def _rows(self, table: pa.Table, bound: bytes, side: Callable[..., int]) -> int:
        """Returns the number of records of the table before the bound."""
        return side(range(table.num_rows), bound, key=lambda row: key_at(table, row, self._key))

    def _next(self) -> pa.Table | None:
        return self._waiting.pop() if self._waiting else next(self._tables, None)


def _slices(table: pa.Table) -> Iterator[pa.Table]:
    rows = table.num_rows
    each = max(1, min(SLICE_ROWS, int(SLICE_BYTES // Sizes.of(table.schema).record(table)))) if rows else 1
    for at in range(0, rows, each):
        yield table.slice(at, each)
