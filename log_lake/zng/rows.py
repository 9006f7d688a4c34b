"""Top-level values as a stream contains them: their types, and the positions of their bodies.

Readers give them in groups of a few megabytes; `Rows.columns` makes a column for each type.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from lake_core.errors import Corrupt
from log_lake.columns.arrays import Bytes, Ints
from log_lake.zng.columns import Column, RecordColumn, encoded, of_bodies, record_bodies
from log_lake.zng.slices import Buffer, Slices, interleaved
from log_lake.zng.text import type_text, value_text
from log_lake.zng.types import Type


@dataclass(frozen=True, eq=False)
class Rows:
    """Values in their order; `kinds` has for each value the index of its type in `types`.

    A top-level value has no tag, so null and an empty value have the same bytes.  A record with fields, or a
    union, is never empty.  So an empty body of such a type means null, and its `length` is -1.
    """

    buffer: Buffer
    types: list[Type]
    kinds: Ints
    start: Ints
    length: Ints

    def __len__(self) -> int:
        return len(self.kinds)

    def part(self, start: int, stop: int) -> Rows:
        """Returns the values from `start` to before `stop`."""
        return Rows(
            self.buffer, self.types, self.kinds[start:stop], self.start[start:stop], self.length[start:stop]
        )

    def chosen(self, rows: Ints) -> Rows:
        """Returns the values of these rows."""
        return Rows(self.buffer, self.types, self.kinds[rows], self.start[rows], self.length[rows])

    def body(self, row: int) -> bytes | None:
        """Returns the body of one value; None if it is null."""
        start = int(self.start[row])
        return (
            None
            if self.length[row] < 0
            else self.buffer.data[start : start + int(self.length[row])].tobytes()
        )

    def text(self, row: int) -> str:
        """One value as readable text.  Raises Corrupt if its bytes are not valid for its type."""
        kind = self.types[int(self.kinds[row])]
        try:
            return value_text(kind, self.body(row))
        except Corrupt:
            raise self.buffer.corrupt(
                int(self.start[row]), f"bytes that are no value of type <{type_text(kind)}>"
            ) from None

    def columns(self) -> list[Column]:
        """Returns one column per type, with the values of that type.  Raises Corrupt if bytes are not valid for
        their type."""
        columns = []
        for kind, rows in zip(self.types, by_kind(self.kinds, len(self.types)), strict=True):
            tag = np.zeros(len(rows), np.int64)
            columns.append(of_bodies(kind, Slices(self.buffer, self.start[rows], self.length[rows], tag)))
        return columns


@dataclass(frozen=True, eq=False)
class Batch:
    """Values in their order, as columns: `columns[k]` has the values whose `kinds` is k, of type `types[k]`.

    After a projection `types` have only the chosen fields, and `told` has the full types, as the stream defines
    them.
    """

    types: list[Type]
    kinds: Ints
    columns: list[Column]
    told: list[Type] | None = None

    def __len__(self) -> int:
        return len(self.kinds)

    @property
    def order(self) -> Ints:
        """Returns the position that each value gets when the values are grouped by type."""
        return np.argsort(np.argsort(self.kinds, kind="stable"))

    def part(self, start: int, stop: int) -> Batch:
        """Returns the values from `start` to before `stop`."""
        lows = np.bincount(self.kinds[:start], minlength=len(self.types))
        counts = np.bincount(self.kinds[start:stop], minlength=len(self.types))
        columns = [
            column.part(low, low + count)
            for column, low, count in zip(self.columns, lows.tolist(), counts.tolist(), strict=True)
        ]
        return Batch(self.types, self.kinds[start:stop], columns, self.told)


def batch_of(rows: Rows) -> Batch:
    """Returns the values as columns.  Raises Corrupt if bytes are not valid for their type."""
    return Batch(rows.types, rows.kinds, rows.columns())


def rows_of(batch: Batch) -> Rows:
    """Returns the values as bodies.  In the buffer the bodies of one type follow those of another, whatever the
    order of the values."""
    start, length = np.zeros(len(batch), np.int64), np.full(len(batch), -1)
    parts: list[Bytes] = []
    begun = 0
    every = by_kind(batch.kinds, len(batch.types))
    for kind, column, rows in zip(batch.types, batch.columns, every, strict=True):
        if isinstance(column, RecordColumn):
            pieces = record_bodies(kind, column)
        else:
            pieces = encoded(kind, column).bodies()
        data, offsets = interleaved([pieces])
        sizes = np.diff(offsets)
        if isinstance(column, RecordColumn):
            rows = rows[column.valid]
        else:
            sizes[~column.valid] = -1
        start[rows], length[rows] = offsets[:-1] + begun, sizes
        parts.append(data)
        begun += len(data)
    buffer = Buffer(np.concatenate([np.zeros(0, np.uint8), *parts]), lambda _, what: Corrupt(what))
    return Rows(buffer, batch.types, batch.kinds, start, length)


def by_kind(kinds: Ints, count: int) -> list[Ints]:
    """Returns, for each index below `count`, the rows whose kind it is, in their order."""
    order = np.argsort(kinds, kind="stable")
    bounds = np.searchsorted(kinds[order], np.arange(count + 1))
    return [order[low:high] for low, high in pairwise(bounds.tolist())]
