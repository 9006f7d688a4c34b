"""Makes columns from segments.  Each reader gives the next values of its column, across segments.

Counts in a file are checked before memory is allocated for them.  A value takes at least one byte, so a column
cannot have more values than bytes.  Only nulls and elements of empty types take no bytes; `MAX_EMPTY` limits
their number.
"""

from __future__ import annotations

import numpy as np

from lake_core.errors import Corrupt
from log_lake.columns.arrays import Ints, Mask
from log_lake.zng.columns import Column, Leaf, ListColumn, RecordColumn, UnionColumn, nulls
from log_lake.zng.slices import Buffer, Slices, chain, interleaved, made
from log_lake.zng.types import Array, Record, Type, Union, plain
from log_lake.zng.wire import corrupt
from log_lake.zng.zst.maps import (
    ColumnMap,
    FieldMap,
    ListMap,
    RecordMap,
    Segments,
    UnionMap,
)
from log_lake.zng.zst.source import SegmentSource

MAX_EMPTY = 8 << 20
"""Array elements that are read at once.  Elements without a value take no bytes, so a damaged file can claim any
number of them."""


class Values:
    """The tagged values of one stream."""

    def __init__(self, segments: Segments, source: SegmentSource) -> None:
        self._segments = list(reversed(segments))
        self._source = source
        self._left: Slices | None = None
        self._unread = sum(segment.length for segment in segments)
        self._at = segments[0].offset if segments else 0

    @property
    def most(self) -> int:
        """Returns an upper bound for the number of values that are left."""
        return self._unread + (0 if self._left is None else len(self._left))

    def take(self, count: int) -> Slices:
        """Returns the next `count` values.  Raises Corrupt if there are fewer."""
        if count > self.most:
            what = f"a column ends after at most {self.most:,} more values, where {count:,} are needed"
            raise corrupt(self._source.name, self._at, what)
        parts: list[Slices] = []
        missing = count
        while missing or not parts:  # ends: each round takes values, or reads a segment
            if self._left is None or not len(self._left):
                if not missing:
                    return parts[0] if parts else nothing()
                self._left = self._next()
            part = self._left[:missing]
            self._left = self._left[missing:]
            parts.append(part)
            missing -= len(part)
        return parts[0] if len(parts) == 1 else _joined(parts)

    def peek(self, count: int) -> Slices:
        """Returns at most `count` of the next values without consuming them.  There may be fewer; at the end there
        are none."""
        if (self._left is None or not len(self._left)) and self._segments:
            self._left = self._next()
        return nothing() if self._left is None else self._left[:count]

    def some(self) -> Slices | None:
        """Returns the values that are left in the current segment, or those of the next segment; None at the
        end."""
        if self._left is not None and len(self._left):
            rest, self._left = self._left, None
            return rest
        return self._next() if self._segments else None

    def _next(self) -> Slices:
        if not self._segments:
            raise corrupt(self._source.name, self._at, "a column ends before its rows do")
        segment = self._segments.pop()
        self._unread -= segment.length
        self._at = segment.offset
        name, offset = self._source.name, segment.offset

        def where(position: int, what: str) -> Corrupt:
            return corrupt(name, offset + position, what)

        return chain(Buffer(self._source.read(segment), where), 0, segment.length)


def nothing() -> Slices:
    """Returns slices without a value."""
    empty = np.zeros(0, np.int64)
    return Slices(made(np.zeros(0, np.uint8)), empty, empty, empty)


def _joined(parts: list[Slices]) -> Slices:
    """Copies the values of several segments into one buffer, which still knows where in the file each value
    was."""
    parts = [part for part in parts if len(part)]
    data = [interleaved([part.tagged()])[0] for part in parts]
    length = np.concatenate([part.length for part in parts])
    tag = np.concatenate([part.tag for part in parts])
    size = tag + np.maximum(length, 0)
    start = np.cumsum(size) - size + tag

    def where(position: int, what: str) -> Corrupt:
        row = max(0, int(np.searchsorted(start, position, side="right")) - 1)
        for part in parts:
            if row < len(part):
                break
            row -= len(part)
        return part.buffer.corrupt(int(part.start[row]), what)

    return Slices(Buffer(np.concatenate(data), where), start, length, tag)


class _Presence:
    """Which values of a field are null."""

    def __init__(self, segments: Segments, source: SegmentSource) -> None:
        self._values = Values(segments, source)
        self._source = source
        self._runs: Ints = np.zeros(0, np.int64)
        self._valid = True
        """Whether the values of the first run are present, that is not null."""
        self._at = segments[0].offset

    def take(self, count: int) -> Mask:
        """Returns for each of the next `count` values whether it is present.  Raises Corrupt if there are
        fewer."""
        while int(self._runs.sum()) < count:  # ends: each round reads a segment
            more = self._values.some()
            if more is None:
                raise corrupt(self._source.name, self._at, "the presence of a field ends before its rows do")
            runs = more.signed()
            if (runs < 0).any():
                raise corrupt(self._source.name, self._at, "a run of presence is negative")
            self._runs = np.concatenate([self._runs, np.minimum(runs, 1 << 40)])
        ends = np.cumsum(self._runs)
        used = int(np.searchsorted(ends, count, side="left")) + 1 if count else 0
        runs = self._runs[:used].copy()
        if used:
            rest = int(ends[used - 1]) - count
            runs[-1] -= rest
            flags = np.arange(used) % 2 == (0 if self._valid else 1)
            self._runs = self._runs[used - 1 :].copy()
            self._runs[0] = rest
            self._valid = bool(flags[-1])
            return np.repeat(flags, runs)
        return np.zeros(0, np.bool_)


class ColumnReader:
    """Gives the values of a column in order."""

    def take(self, count: int) -> Column:
        """Returns the next `count` values.  Raises Corrupt if there are fewer, or if bytes are not valid for the
        type."""
        raise NotImplementedError


def column_reader(kind: Type, column_map: ColumnMap, source: SegmentSource) -> ColumnReader:
    """Returns a reader for a column of the type."""
    match kind := plain(kind):
        case Record():
            assert isinstance(column_map, RecordMap)
            return RecordReader(kind, column_map, source)
        case Array():
            assert isinstance(column_map, ListMap)
            return _ListReader(kind, column_map, source)
        case Union():
            assert isinstance(column_map, UnionMap)
            return _UnionReader(kind, column_map, source)
    assert isinstance(column_map, tuple)
    return _LeafReader(column_map, source)


class _LeafReader(ColumnReader):
    def __init__(self, segments: Segments, source: SegmentSource) -> None:
        self._values = Values(segments, source)

    def take(self, count: int) -> Column:
        return Leaf(self._values.take(count))


class _FieldReader(ColumnReader):
    def __init__(self, kind: Type, field_map: FieldMap, source: SegmentSource) -> None:
        self._kind = kind
        self._column = None if field_map.column is None else column_reader(kind, field_map.column, source)
        self._presence = _Presence(field_map.presence, source) if field_map.presence else None

    def take(self, count: int) -> Column:
        if self._column is None:
            return nulls(self._kind, count)
        if self._presence is None:
            return self._column.take(count)
        valid = self._presence.take(count)
        present = int(np.count_nonzero(valid))
        values = self._column.take(present)
        return values if present == count else values.spread(valid)


class RecordReader(ColumnReader):
    """Reads records, which are never null."""

    def __init__(self, kind: Record, record_map: RecordMap, source: SegmentSource) -> None:
        self._fields = [
            _FieldReader(child, field, source)
            for child, field in zip(kind.children, record_map.fields, strict=True)
        ]

    def take(self, count: int) -> RecordColumn:
        return RecordColumn(np.ones(count, np.bool_), tuple(field.take(count) for field in self._fields))


class _ListReader(ColumnReader):
    def __init__(self, kind: Array, list_map: ListMap, source: SegmentSource) -> None:
        self._values = column_reader(kind.inner, list_map.values, source)
        self._lengths = Values(list_map.lengths, source)
        self._source = source

    def take(self, count: int) -> Column:
        slices = self._lengths.take(count)
        lengths = slices.signed()
        if (lengths < 0).any() or (lengths > MAX_EMPTY).any() or int(lengths.sum()) > MAX_EMPTY:
            what = f"{count:,} arrays claim to have a negative number of elements, or more than {MAX_EMPTY:,}"
            raise slices.buffer.corrupt(0, what)
        return ListColumn(lengths, self._values.take(int(lengths.sum())))


class _UnionReader(ColumnReader):
    def __init__(self, kind: Union, union_map: UnionMap, source: SegmentSource) -> None:
        self._columns = [
            column_reader(child, column, source)
            for child, column in zip(kind.children, union_map.columns, strict=True)
        ]
        self._selector = Values(union_map.selector, source)

    def take(self, count: int) -> Column:
        slices = self._selector.take(count)
        selector = slices.signed()
        wrong = (selector < 0) | (selector >= len(self._columns))
        if wrong.any():
            at = int(np.argmax(wrong))
            what = f"a union of {len(self._columns)} types says that its value has type {selector[at]}"
            raise slices.buffer.corrupt(slices.start[at], what)
        counts = np.bincount(selector, minlength=len(self._columns))
        columns = tuple(column.take(int(rows)) for column, rows in zip(self._columns, counts, strict=True))
        return UnionColumn(selector, columns)
