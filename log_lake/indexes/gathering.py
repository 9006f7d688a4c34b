"""Gathers the values of one field of a data object while its records pass: one class for each kind of index.

`add` takes records and the sizes of their row groups; `body` returns the number of distinct values (for a
sketch: of records) and the body of the index object, None if the object has no index of this kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isnan
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake_core.keys import PoolKey
from lake_core.records.conditions import Path
from log_lake.columns.keys import keys_at
from log_lake.indexes.bloom import Numbers, filter_of
from log_lake.indexes.hashes import numbers_of, values_at
from log_lake.indexes.row_groups import MOST_DISTINCT, body_of
from log_lake.indexes.rule import BLOOM, SKETCH, VALUES
from log_lake.indexes.sketch import (
    EXACT,
    RUNS,
    RankedRuns,
    Registers,
    Sketch,
    encoded_sketch,
    registers_of,
    run_ends,
    united_ranks,
)

MOST_VALUES = 8_000_000
"""Distinct values of an object that a bloom filter has; an object with more has none.  Each takes 16 bytes of
memory while the object is written, and the index of so many has 11 MB."""

_GATHERED = 1 << 20
"""Numbers, or values, that are gathered before they are made fewer."""

_FINE_RUNS = 4 * RUNS
"""Runs of each part of an object's values, if there are several, before all parts become one."""

_LONGEST = 1 << 10
"""Bytes of the least and the greatest value in a sketch; longer ones are not known."""

_KEY = PoolKey.parse("v")


def distinct_of(numbers: Numbers) -> Numbers:
    """The distinct numbers, ascending.  NumPy's `unique` takes four times as long."""
    numbers = np.sort(numbers)
    repeated = numbers[1:] == numbers[:-1]
    return numbers[np.concatenate(([True], ~repeated))] if repeated.any() else numbers


class GatheredIndex(Protocol):
    """Gathers from one field what its index is made of."""

    def add(self, table: pa.Table, groups: Sequence[int]) -> None:
        """Adds records, which are row groups of these sizes."""

    def body(self) -> tuple[int, bytes] | None:
        """The number in the header of the index object, and its body."""


@dataclass
class DistinctNumbers:
    """The distinct numbers of a field, for a bloom filter."""

    path: Path
    field: pa.Field
    parts: list[Numbers] = field(default_factory=list)
    size: int = 0
    few: int = _GATHERED
    is_over: bool = False

    def add(self, table: pa.Table, groups: Sequence[int]) -> None:
        if self.is_over:
            return
        numbers = numbers_of(table, self.path, self.field)
        self.parts.append(numbers)
        self.size += len(numbers)
        if self.size > self.few:
            self.distinct()
        if self.size > MOST_VALUES and len(self.distinct()) > MOST_VALUES:
            self.parts, self.is_over = [], True

    def distinct(self) -> Numbers:
        """The distinct numbers so far, ascending."""
        numbers = distinct_of(np.concatenate(self.parts))
        self.parts, self.size = [numbers], len(numbers)
        self.few = max(_GATHERED, 2 * self.size)
        return numbers

    def body(self) -> tuple[int, bytes] | None:
        if self.is_over:
            return None
        numbers = self.distinct()
        return len(numbers), filter_of(numbers)


@dataclass
class GroupNumbers:
    """The distinct numbers of each row group, as long as they are few."""

    path: Path
    field: pa.Field
    groups: list[Numbers] = field(default_factory=list)
    all: Numbers = field(default_factory=lambda: np.zeros(0, np.uint64))

    def add(self, table: pa.Table, groups: Sequence[int]) -> None:
        if len(self.all) > MOST_DISTINCT:
            return
        at = 0
        for rows in groups:
            own = distinct_of(numbers_of(table.slice(at, rows), self.path, self.field))
            self.groups.append(own)
            at += rows
            self.all = distinct_of(np.concatenate((self.all, own)))
            if len(self.all) > MOST_DISTINCT:
                self.groups = []
                return

    def body(self) -> tuple[int, bytes] | None:
        body = b"" if len(self.all) > MOST_DISTINCT else body_of(self.groups)
        return len(self.all), body


@dataclass
class SketchedValues:
    """Gathers the values of a field for a sketch."""

    path: Path
    field: pa.Field
    records: int = 0
    nulls: int = 0
    low: bytes = b""
    high: bytes = b""
    numbers: Numbers = field(default_factory=lambda: np.zeros(0, np.uint64))
    registers: Registers | None = None
    values: list[pa.Array] = field(default_factory=list)
    waiting: int = 0
    ranks: list[RankedRuns] = field(default_factory=list)

    def add(self, table: pa.Table, groups: Sequence[int]) -> None:
        self.records += table.num_rows
        column = values_at(table, self.path)
        self.nulls += column.null_count
        low, high = _bounds(column)
        self.low = min(self.low or low, low or self.low)
        self.high = max(self.high, high)
        self._count(numbers_of(table, self.path, self.field))
        if _has_quantiles(self.field.type):
            self.values += [chunk.drop_null() for chunk in column.chunks]
            self.waiting += len(column) - column.null_count
            if self.waiting >= _GATHERED:
                self._rank(_FINE_RUNS)

    def _count(self, numbers: Numbers) -> None:
        if self.registers is None:
            self.numbers = distinct_of(np.concatenate((self.numbers, numbers)))
            if len(self.numbers) > EXACT:
                self.registers, self.numbers = registers_of(self.numbers), self.numbers[:0]
        else:
            np.maximum(self.registers, registers_of(numbers), out=self.registers)

    def _rank(self, runs: int) -> None:
        """Turns the waiting values into ranks."""
        array = pa.chunked_array(self.values, self.field.type).combine_chunks()
        if isinstance(array, pa.ChunkedArray):
            array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], self.field.type)
        self.values, self.waiting = [], 0
        if not len(array):
            return
        ends = run_ends(len(array), runs)
        order = pc.array_sort_indices(array)
        last = array.take(order.take(pa.array([end - 1 for end in ends])))
        encoded = keys_at(pa.table({"v": last}), list(range(len(ends))), _KEY)
        lengths = tuple(int(length) for length in np.diff([0, *ends]))
        self.ranks.append(RankedRuns(tuple(encoded), lengths, max(lengths) - 1))

    def sketch(self) -> Sketch:
        """The sketch of all values so far."""
        self._rank(_FINE_RUNS if self.ranks else RUNS)
        ranks = united_ranks(self.ranks, most=RUNS)
        return Sketch(
            self.records,
            self.nulls,
            self.numbers.astype("<u8").tobytes(),
            b"" if self.registers is None else self.registers.tobytes(),
            _short(self.low or b"".join(ranks.values[:1])),
            _short(self.high or b"".join(ranks.values[-1:])),
            ranks.values,
            ranks.lengths,
            ranks.off,
        )

    def body(self) -> tuple[int, bytes] | None:
        return self.records, encoded_sketch(self.sketch())


def _bounds(column: pa.ChunkedArray) -> tuple[bytes, bytes]:
    """The least and the greatest value, encoded, without nulls and NaN; b"" if there is none."""
    try:
        ends = pc.min_max(column)
    except pa.ArrowNotImplementedError:  # of durations: their ranks have both ends
        return b"", b""
    low, high = ends["min"], ends["max"]
    if not low.is_valid or (pa.types.is_floating(column.type) and isnan(low.as_py())):
        return b"", b""
    both = pa.table({"v": pa.array([low, high], column.type)})
    least, most = keys_at(both, [0, 1], _KEY)
    return least, most


def _short(bound: bytes) -> bytes:
    """The bound; b"" if it is too long."""
    return bound if len(bound) <= _LONGEST else b""


def _has_quantiles(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_temporal(kind)
    )


KINDS: dict[str, type[DistinctNumbers | GroupNumbers | SketchedValues]] = {
    BLOOM: DistinctNumbers,
    VALUES: GroupNumbers,
    SKETCH: SketchedValues,
}
"""What is gathered for each kind of index."""
