"""Top-level values as they stand in a stream: their types, and where their bodies are.

Readers give them in groups of a few megabytes; `Rows.columns` makes a column of those of one type.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lake_core.objects.zng.columns import Column, of_bodies
from lake_core.objects.zng.slices import Buffer, Ints, Slices
from lake_core.objects.zng.types import Type


@dataclass(frozen=True, eq=False)
class Rows:
    """Values in their order: `kinds` says for each which of `types` it has.

    A top-level value has no tag, so a null and an empty value look alike.  A record with fields or a union cannot
    be empty: there it is null, and `length` is -1.
    """

    buffer: Buffer
    types: list[Type]
    kinds: Ints
    start: Ints
    length: Ints

    def __len__(self) -> int:
        return len(self.kinds)

    def part(self, start: int, stop: int) -> Rows:
        """The values from `start` to before `stop`."""
        return Rows(
            self.buffer, self.types, self.kinds[start:stop], self.start[start:stop], self.length[start:stop]
        )

    def body(self, row: int) -> bytes | None:
        """The body of one value; None if it is null."""
        start = int(self.start[row])
        return (
            None
            if self.length[row] < 0
            else self.buffer.data[start : start + int(self.length[row])].tobytes()
        )

    def slices(self, kind: int) -> Slices:
        """The bodies of the values of one type."""
        rows = np.flatnonzero(self.kinds == kind)
        return Slices(self.buffer, self.start[rows], self.length[rows], np.zeros(len(rows), np.int64))

    def column(self, kind: int) -> Column:
        """The values of one type."""
        return of_bodies(self.types[kind], self.slices(kind))


@dataclass(frozen=True, eq=False)
class Batch:
    """Values in their order, as columns: `columns[k]` holds those whose `kinds` is k, of type `types[k]`."""

    types: list[Type]
    kinds: Ints
    columns: list[Column]

    def __len__(self) -> int:
        return len(self.kinds)

    def part(self, start: int, stop: int) -> Batch:
        """The values from `start` to before `stop`."""
        columns = []
        for kind, column in enumerate(self.columns):
            low = int(np.count_nonzero(self.kinds[:start] == kind))
            columns.append(column.part(low, low + int(np.count_nonzero(self.kinds[start:stop] == kind))))
        return Batch(self.types, self.kinds[start:stop], columns)


def batch_of(rows: Rows) -> Batch:
    """The values as columns.  Raises Corrupt if bytes are no values of their type."""
    return Batch(rows.types, rows.kinds, [rows.column(kind) for kind in range(len(rows.types))])
