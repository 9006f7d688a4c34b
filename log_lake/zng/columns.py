"""Values of one type as columns: the common form between rows (ZNG), segments (ZST) and Arrow.

| type | column | holds |
|---|---|---|
| primitive, enum, map | `Leaf` | the position of each tagged body |
| record | `RecordColumn` | which records are null; for each field a column of the records that are not null |
| array, set | `ListColumn` | the number of elements of each array, -1 for null; one column of all elements |
| union | `UnionColumn` | the type of each value, -1 for null; for each type a column of its values |

Names of types do not change the column.  A map stays one body; only the conversion to Arrow reads its entries.
`of_bodies` makes every column from bodies, and `encoded` writes a column as tagged values.  Neither makes one
Python object per value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from log_lake.columns.arrays import Ints, Mask
from log_lake.zng.slices import (
    Buffer,
    Pieces,
    Slices,
    at_cursors,
    body_values,
    chain,
    interleaved,
    made,
    signed_values,
    tags,
    uvarint_sizes,
)
from log_lake.zng.types import Array, Map, Record, Type, Union, plain
from log_lake.zng.wire import primitive, signed

_SHORT_BYTES = 4_096
"""Bytes.  Arrays up to this size are read together, one element of each per step; a longer array is read
alone."""

_FEW_ROWS = 8
"""With at most this many arrays left, plain Python is faster than another step of numpy."""


@dataclass(frozen=True, eq=False)
class Leaf:
    """A column in which each value is one body (the bytes of a value, without its type)."""

    slices: Slices

    def __len__(self) -> int:
        return len(self.slices)

    @property
    def valid(self) -> Mask:
        """For each value, whether it is not null."""
        return self.slices.valid

    def present(self) -> Leaf:
        """Returns the values that are not null."""
        return self if self.valid.all() else Leaf(self.slices[self.valid])

    def spread(self, valid: Mask) -> Leaf:
        """Returns a column with the values where `valid` is set, and null elsewhere."""
        slices = self.slices
        start, length, tag = (np.zeros(len(valid), np.int64) for _ in range(3))
        start[valid], length[valid], tag[valid] = slices.start, slices.length, slices.tag
        length[~valid] = -1
        return Leaf(Slices(slices.buffer, start, length, tag))

    def part(self, start: int, stop: int) -> Leaf:
        """Returns the values from `start` to before `stop`."""
        return Leaf(self.slices[start:stop])


@dataclass(frozen=True, eq=False)
class RecordColumn:
    """A column of records; the columns of its fields leave out null records."""

    valid: Mask
    fields: tuple[Column, ...]

    def __len__(self) -> int:
        return len(self.valid)

    def present(self) -> RecordColumn:
        """Returns the values that are not null."""
        return RecordColumn(self.valid[self.valid], self.fields)

    def spread(self, valid: Mask) -> RecordColumn:
        """Returns a column with the values where `valid` is set, and null elsewhere."""
        mask = valid.copy()
        mask[valid] = self.valid
        return RecordColumn(mask, self.fields)

    def part(self, start: int, stop: int) -> RecordColumn:
        """Returns the values from `start` to before `stop`."""
        low = int(np.count_nonzero(self.valid[:start]))
        high = low + int(np.count_nonzero(self.valid[start:stop]))
        return RecordColumn(self.valid[start:stop], tuple(field.part(low, high) for field in self.fields))


@dataclass(frozen=True, eq=False)
class ListColumn:
    """A column of arrays or sets; a length of -1 means null."""

    lengths: Ints
    values: Column

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def valid(self) -> Mask:
        """For each value, whether it is not null."""
        return self.lengths >= 0

    def present(self) -> ListColumn:
        """Returns the values that are not null."""
        return ListColumn(self.lengths[self.valid], self.values)

    def spread(self, valid: Mask) -> ListColumn:
        """Returns a column with the values where `valid` is set, and null elsewhere."""
        lengths = np.full(len(valid), -1)
        lengths[valid] = self.lengths
        return ListColumn(lengths, self.values)

    def part(self, start: int, stop: int) -> ListColumn:
        """Returns the values from `start` to before `stop`."""
        counts = np.maximum(self.lengths, 0)
        low = int(counts[:start].sum())
        high = low + int(counts[start:stop].sum())
        return ListColumn(self.lengths[start:stop], self.values.part(low, high))


@dataclass(frozen=True, eq=False)
class UnionColumn:
    """A column of values of several types; -1 is a null union, which has none of these types."""

    selector: Ints
    columns: tuple[Column, ...]

    def __len__(self) -> int:
        return len(self.selector)

    @property
    def valid(self) -> Mask:
        """For each value, whether it is not null."""
        return self.selector >= 0

    def present(self) -> UnionColumn:
        """Returns the values that are not null."""
        return UnionColumn(self.selector[self.valid], self.columns)

    def spread(self, valid: Mask) -> UnionColumn:
        """Returns a column with the values where `valid` is set, and null elsewhere."""
        selector = np.full(len(valid), -1)
        selector[valid] = self.selector
        return UnionColumn(selector, self.columns)

    def part(self, start: int, stop: int) -> UnionColumn:
        """Returns the values from `start` to before `stop`."""
        parts = []
        for at, column in enumerate(self.columns):
            chosen = self.selector == at
            low = int(np.count_nonzero(chosen[:start]))
            parts.append(column.part(low, low + int(np.count_nonzero(chosen[start:stop]))))
        return UnionColumn(self.selector[start:stop], tuple(parts))


Column: TypeAlias = Leaf | RecordColumn | ListColumn | UnionColumn


def nulls(kind: Type, rows: int) -> Column:
    """Returns a column of `rows` nulls."""
    kind = plain(kind)
    empty = np.zeros(0, np.int64)
    match kind:
        case Record():
            return RecordColumn(np.zeros(rows, np.bool_), tuple(nulls(child, 0) for child in kind.children))
        case Array():
            return ListColumn(np.full(rows, -1), nulls(kind.inner, 0))
        case Union():
            return UnionColumn(np.full(rows, -1), tuple(nulls(child, 0) for child in kind.children))
    return Leaf(Slices(made(empty.astype(np.uint8)), empty, empty, empty)).spread(np.zeros(rows, np.bool_))


# --- bodies to columns


def of_bodies(kind: Type, slices: Slices) -> Column:
    """Returns the column of values that have these bodies.  Raises Corrupt if bytes are not valid for the
    type."""
    match kind := plain(kind):
        case Record():
            return _records(kind, slices)
        case Array():
            return _lists(kind, slices)
        case Union():
            return _unions(kind, slices)
    return Leaf(slices)


def _records(kind: Record, slices: Slices) -> RecordColumn:
    inside = slices if slices.valid.all() else slices[slices.valid]
    cursor, stop = inside.start, inside.stop
    fields = []
    for child in kind.children:
        values = at_cursors(inside.buffer, cursor, stop)
        fields.append(of_bodies(child, values))
        cursor = values.stop
    _ended(inside.buffer, cursor, stop, "a record has more values than its type has fields")
    return RecordColumn(slices.valid, tuple(fields))


def _ended(buffer: Buffer, cursor: Ints, stop: Ints, what: str) -> None:
    left = cursor != stop
    if left.any():
        raise buffer.corrupt(cursor[int(np.argmax(left))], what)


def _lists(kind: Array, slices: Slices) -> ListColumn:
    counts, elements = _elements(slices)
    return ListColumn(np.where(slices.valid, counts, -1), of_bodies(kind.inner, elements))


def _elements(slices: Slices) -> tuple[Ints, Slices]:
    """Returns the number of values in each container, and all values in order."""
    buffer, stop = slices.buffer, slices.stop
    cursor = slices.start.copy()
    counts = np.zeros(len(slices), np.int64)
    size = stop - cursor
    active = np.flatnonzero((size > 0) & (size <= _SHORT_BYTES))
    steps: list[tuple[Ints, Ints, Slices]] = []
    while len(active) > _FEW_ROWS:  # ends: every step reads a value in each container that is left
        values = at_cursors(buffer, cursor[active], stop[active])
        steps.append((active, counts[active], values))
        counts[active] += 1
        cursor[active] = values.stop
        active = active[cursor[active] < stop[active]]
    for row in [*active.tolist(), *np.flatnonzero(size > _SHORT_BYTES).tolist()]:
        values_of_row = chain(buffer, int(cursor[row]), int(stop[row]))
        number = np.arange(len(values_of_row)) + counts[row]
        steps.append((np.full(len(values_of_row), row), number, values_of_row))
        counts[row] += len(values_of_row)
    begins = np.cumsum(counts) - counts
    total = int(counts.sum())
    start, length, tag = (np.zeros(total, np.int64) for _ in range(3))
    for rows, number, values in steps:
        at = begins[rows] + number
        start[at], length[at], tag[at] = values.start, values.length, values.tag
    return counts, Slices(buffer, start, length, tag)


def _unions(kind: Union, slices: Slices) -> UnionColumn:
    inside = slices if slices.valid.all() else slices[slices.valid]
    selectors = at_cursors(inside.buffer, inside.start, inside.stop)
    chosen = np.where(selectors.valid, selectors.signed(), -1)
    wrong = (chosen < 0) | (chosen >= len(kind.children))
    if wrong.any():
        at = int(np.argmax(wrong))
        what = f"a union of {len(kind.children)} types says that its value has type {chosen[at]}"
        raise inside.buffer.corrupt(selectors.start[at], what)
    values = at_cursors(inside.buffer, selectors.stop, inside.stop)
    _ended(inside.buffer, values.stop, inside.stop, "a union holds more than one value")
    columns = tuple(of_bodies(child, values[chosen == at]) for at, child in enumerate(kind.children))
    selector = np.full(len(slices), -1)
    selector[slices.valid] = chosen
    return UnionColumn(selector, columns)


def map_entries(slices: Slices) -> tuple[Ints, Slices, Slices]:
    """Returns the number of entries of each map, all keys, and all values.  Raises Corrupt for a key without a
    value."""
    counts, elements = _elements(slices)
    odd = counts % 2 == 1
    if odd.any():
        raise slices.buffer.corrupt(slices.start[int(np.argmax(odd))], "a map has a key without a value")
    return counts // 2, elements[0::2], elements[1::2]


# --- columns to tagged values


def encoded(kind: Type, column: Column) -> Slices:
    """Returns the values with their tags, as a container stores them."""
    kind = plain(kind)
    match column:
        case Leaf():
            slices = column.slices
            if isinstance(kind, Map):
                return body_values(slices.bodies(), slices.valid, container=True)
            return canonical(slices)
        case RecordColumn():
            return _tagged(record_bodies(kind, column), column.valid)
        case ListColumn():
            values = encoded(kind.children[0], column.values)
            data, offsets = interleaved([values.tagged()])
            counts = np.maximum(column.lengths, 0)
            ends = np.cumsum(counts)
            begins = offsets[ends - counts]
            return _tagged((made(data), begins, offsets[ends] - begins), column.valid, dense=False)
        case UnionColumn():
            return _tagged(_union_bodies(kind, column), column.valid)


def canonical(slices: Slices) -> Slices:
    """Returns the values, each with a primitive tag of as few bytes as possible; most values already have such
    tags."""
    if slices.is_canonical:
        return slices
    least = tags(np.maximum(slices.length, 0), null=~slices.valid)
    if not slices.tag.all():  # nulls that no byte stands for
        return body_values(slices.bodies(), slices.valid)
    _, start, _ = slices.tagged()
    data = slices.buffer.data
    same = bool((least.length == slices.tag).all()) and bool(
        (data[start] == least.buffer.data[least.start]).all()
    )
    return slices if same else body_values(slices.bodies(), slices.valid)


def record_bodies(kind: Type, column: RecordColumn) -> Pieces:
    """Returns the bodies of the records that are not null."""
    kind = plain(kind)
    present = int(np.count_nonzero(column.valid))
    if not column.fields:
        return made(np.zeros(0, np.uint8)), np.zeros(present, np.int64), np.zeros(present, np.int64)
    fields = [
        encoded(child, field).tagged() for child, field in zip(kind.children, column.fields, strict=True)
    ]
    data, offsets = interleaved(fields)
    return made(data), offsets[:-1], np.diff(offsets)


def record_sizes(kind: Type, column: RecordColumn) -> Ints:
    """Returns the size in bytes of each body of a record that is not null, without making the bodies."""
    present = int(np.count_nonzero(column.valid))
    sizes = (
        _tagged_sizes(child, field) for child, field in zip(plain(kind).children, column.fields, strict=True)
    )
    return sum(sizes, np.zeros(present, np.int64))


def _tagged_sizes(kind: Type, column: Column) -> Ints:
    """Bytes of each value with its tag."""
    kind = plain(kind)
    match column:
        case Leaf():
            bodies = np.maximum(column.slices.length, 0)
        case RecordColumn():
            bodies = np.zeros(len(column), np.int64)
            bodies[column.valid] = record_sizes(kind, column)
        case ListColumn():
            ends = np.concatenate([[0], np.cumsum(_tagged_sizes(kind.children[0], column.values))])
            stops = np.cumsum(np.maximum(column.lengths, 0))
            bodies = ends[stops] - ends[stops - np.maximum(column.lengths, 0)]
        case UnionColumn():
            bodies = np.zeros(len(column), np.int64)
            for at, (child, values) in enumerate(zip(kind.children, column.columns, strict=True)):
                rows = column.selector == at
                bodies[rows] = _tagged_sizes(child, values) + len(primitive(signed(at)))
    return bodies + np.where(column.valid, uvarint_sizes(2 * bodies + 2), 1)


def _union_bodies(kind: Type, column: UnionColumn) -> Pieces:
    """Returns the bodies of the unions that are not null: for each the selector, then the value."""
    chosen = column.selector[column.valid]
    parts = [encoded(child, values) for child, values in zip(kind.children, column.columns, strict=True)]
    packed = [interleaved([part.tagged()]) for part in parts]
    begins = np.cumsum([0, *(len(data) for data, _ in packed)])
    start, length = np.zeros(len(chosen), np.int64), np.zeros(len(chosen), np.int64)
    for at, (_, offsets) in enumerate(packed):
        rows = chosen == at
        start[rows] = offsets[:-1] + begins[at]
        length[rows] = np.diff(offsets)
    values = made(np.concatenate([data for data, _ in packed]))
    data, offsets = interleaved([signed_values(chosen).tagged(), (values, start, length)])
    return made(data), offsets[:-1], np.diff(offsets)


def _tagged(bodies: Pieces, valid: Mask, *, dense: bool = True) -> Slices:
    """Returns the bodies as container-tagged values.  With `dense`, `bodies` has no entry for a null."""
    buffer, start, length = bodies
    if dense and not valid.all():
        at = np.cumsum(valid) - 1
        if not len(start):
            start, length = np.zeros(1, np.int64), np.zeros(1, np.int64)
        start, length = start[np.maximum(at, 0)], np.where(valid, length[np.maximum(at, 0)], 0)
    return body_values((buffer, start, length), valid, container=True)


def arrow_values(kind: Type, column: Column) -> int:
    """Returns the number of Arrow values for the column, missing ones included: a null record has all its fields.

    Raises Corrupt if a map has a key without a value.
    """
    kind, rows = plain(kind), len(column)
    match column:
        case RecordColumn():
            fields = zip(kind.children, column.fields, strict=True)
            return rows + sum(max(rows * child.nodes, arrow_values(child, field)) for child, field in fields)
        case ListColumn():
            return rows + arrow_values(kind.children[0], column.values)
        case UnionColumn():
            children = zip(kind.children, column.columns, strict=True)
            return rows + sum(arrow_values(child, one) for child, one in children)
    if isinstance(kind, Map):
        _, keys, values = map_entries(column.slices)
        entries = zip(kind.children, (keys, values), strict=True)
        return rows + sum(arrow_values(child, of_bodies(child, part)) for child, part in entries)
    return rows
