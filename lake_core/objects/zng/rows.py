"""Top-level values as they stand in a stream: their types, and where their bodies are.

Readers give them in groups of a few megabytes; `Rows.columns` makes a column of those of one type.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from lake_core.errors import Corrupt
from lake_core.objects.zng.columns import Column, of_bodies
from lake_core.objects.zng.slices import Buffer, Ints, Slices
from lake_core.objects.zng.text import value_text
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

    def text(self, row: int) -> str:
        """One value as readable text.  Raises Corrupt if its bytes are no value of its type."""
        kind = self.types[int(self.kinds[row])]
        try:
            return value_text(kind, self.body(row))
        except Corrupt:
            raise self.buffer.corrupt(
                int(self.start[row]), f"bytes that are no value of type {kind!r}"
            ) from None

    def columns(self) -> list[Column]:
        """The values of each type.  Raises Corrupt if bytes are no values of their type."""
        columns = []
        for kind, rows in zip(self.types, by_kind(self.kinds, len(self.types)), strict=True):
            tag = np.zeros(len(rows), np.int64)
            columns.append(of_bodies(kind, Slices(self.buffer, self.start[rows], self.length[rows], tag)))
        return columns


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
        lows = np.bincount(self.kinds[:start], minlength=len(self.types))
        counts = np.bincount(self.kinds[start:stop], minlength=len(self.types))
        columns = [
            column.part(low, low + count)
            for column, low, count in zip(self.columns, lows.tolist(), counts.tolist(), strict=True)
        ]
        return Batch(self.types, self.kinds[start:stop], columns)


def batch_of(rows: Rows) -> Batch:
    """The values as columns.  Raises Corrupt if bytes are no values of their type."""
    return Batch(rows.types, rows.kinds, rows.columns())


def by_kind(kinds: Ints, count: int) -> list[Ints]:
    """The rows of each kind, in their order."""
    order = np.argsort(kinds, kind="stable")
    bounds = np.searchsorted(kinds[order], np.arange(count + 1))
    return [order[low:high] for low, high in pairwise(bounds.tolist())]
