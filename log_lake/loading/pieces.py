"""Pieces of a bulk import: sorted records on their way from the worker that read them to the worker of their key
range.

A `PieceBuilder` takes blocks, as every builder of a load does.  Instead of objects it makes pieces: records in
the order of the key, all between two neighbouring bounds.  Another worker gets the pieces of its range in their
order of arrival, and builds the run from them (`run_of`).  Nothing is combined before that, so records of equal
keys get the same result as in an ordinary load.  Records without the key, and rejected ones, need no order: the
first worker writes their objects.

Called by `lake.bulk`, for files and for data frames.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from lake_core.keys import PoolKey
from lake_core.schemas import APPEND
from log_lake.columns.keys import key_at, keys_at
from log_lake.loading.block import Block
from log_lake.loading.builder import ObjectBuilder, groups
from log_lake.objects.weight import Sizes
from log_lake.objects.write import WrittenObject, sorted_table
from log_lake.workers import SortedPiece

PIECE_BYTES = 1 << 20
"""About how many decoded bytes a piece has; it is examined and sent as a whole."""

SAMPLED = 8
"""A piece is divided into this many equal parts, and states the keys at their ends. Bounds are chosen among these
keys."""


@dataclass
class PieceBuilder(ObjectBuilder):
    """Sorts the records that it gathers, and cuts them into pieces at the `bounds`: encoded keys in ascending
    order.

    Call `pieces` after each block, and after `finish`, which returns the objects of sub-pools.
    """

    bounds: tuple[bytes, ...] = ()
    _ordered: list[pa.Table] = field(default_factory=list)
    _number: int = 0

    def pieces(self) -> Iterator[SortedPiece]:
        """Yields the pieces of all records that were sorted since the last call, in their order of arrival."""
        while self._ordered:
            for part, table in cut(self._ordered.pop(0), self.bounds, self.key):
                yield piece_of(table, self.key, part=part, number=self._number)
                self._number += 1

    def _sort_on_disk(self) -> None:
        self._sort()

    def _write(self, sub_pool: str) -> None:
        if sub_pool:
            super()._write(sub_pool)
        else:
            self._sort()

    def _sort(self) -> None:
        for alike in groups(self._taken("")):
            table = [self._united(alike, self.key)]
            alike.clear()
            self._ordered.append(sorted_table(table, self.key, APPEND))


def cut(table: pa.Table, bounds: Sequence[bytes], key: PoolKey) -> Iterator[tuple[int, pa.Table]]:
    """Yields sorted records as slices of at most `PIECE_BYTES` bytes, each with the number of its range.  No slice
    crosses a bound."""
    width = Sizes.of(table.schema).record(table) if table.num_rows else 1
    most = max(1, int(PIECE_BYTES // max(1, width)))
    for part, share in shares(table, bounds, key):
        for at in range(0, share.num_rows, most):
            yield part, share.slice(at, most)


def shares(table: pa.Table, bounds: Sequence[bytes], key: PoolKey) -> Iterator[tuple[int, pa.Table]]:
    """Divides sorted records at the bounds.  Yields one slice per range that has records, with the range's
    number."""
    begin, rows = 0, table.num_rows
    while begin < rows:  # every turn takes records
        part = bisect_right(bounds, key_at(table, begin, key))
        end = rows
        if part < len(bounds):
            end = bisect_left(range(rows), bounds[part], lo=begin, key=lambda row: key_at(table, row, key))
        yield part, table.slice(begin, end - begin)
        begin = end


def piece_of(table: pa.Table, key: PoolKey, *, part: int, number: int) -> SortedPiece:
    """Returns sorted records as a piece of the range `part`; there must be at least one record.  `number` gives
    the order of arrival."""
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_stream(sink, table.schema, options=options) as stream:
        stream.write_table(table)
    last, data = table.num_rows - 1, sink.getvalue().to_pybytes()
    keys = keys_at(table, [last * step // SAMPLED for step in range(SAMPLED + 1)], key)
    return SortedPiece(part, number, tuple(keys), table.num_rows, len(data), data)


def records_of(data: bytes) -> pa.Table:
    """Returns the records that the bytes of a piece hold."""
    return pa.ipc.open_stream(data).read_all()


def cut_again(piece: SortedPiece, bounds: Sequence[bytes], key: PoolKey) -> Iterator[SortedPiece]:
    """Cuts a piece at bounds that were not known when it was made.

    Each slice has the number of the piece, so each range gets at most one slice of it: two pieces with one
    number would have no order.
    """
    part = bisect_right(bounds, piece.keys[0])
    if part == len(bounds) or piece.keys[-1] < bounds[part]:
        yield piece.of_part(part)
        return
    for part, table in shares(records_of(piece.data), bounds, key):
        yield piece_of(table, key, part=part, number=piece.number)


def pieces_of(building: PieceBuilder, blocks: Iterable[Block]) -> Iterator[SortedPiece | list[WrittenObject]]:
    """Yields the pieces of the blocks, then the objects of sub-pools.  Raises what `ObjectBuilder.add`
    raises."""
    with building:
        for block in blocks:
            building.add(block)
            yield from building.pieces()
        written = building.finish()
        yield from building.pieces()
    yield written


def run_of(building: ObjectBuilder, pieces: Iterable[bytes]) -> list[WrittenObject]:
    """Builds and returns the objects of a range, from the bytes of its pieces in their order of arrival."""
    with building:
        for data in pieces:
            building.add_keyed(records_of(data))
        return building.finish()
