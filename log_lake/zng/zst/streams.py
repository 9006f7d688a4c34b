"""Buffers the columns of one super type for a writer, and decides when they are written.

The original program writes a column once it holds `segment_bytes`, value by value.  This module gets thousands
of values at a time.  So it notes for each due write its place (`Flush.at`): the row, then the field or element
inside the row.  The writer sorts the notes of all columns and writes in that order.  The file then equals that
of the original program, which takes one row after another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import BinaryIO, NamedTuple, TypeAlias

import numpy as np

from lake_core.errors import InvalidInput
from log_lake.columns.arrays import Bytes, Ints, Mask
from log_lake.zng.columns import Column, Leaf, ListColumn, RecordColumn, UnionColumn, canonical
from log_lake.zng.slices import Slices, interleaved, signed_values
from log_lake.zng.text import type_text
from log_lake.zng.types import Array, Record, Type, Union, plain
from log_lake.zng.zst.layout import Segment
from log_lake.zng.zst.maps import ColumnMap, FieldMap, ListMap, RecordMap, UnionMap

Place: TypeAlias = tuple[int, ...]
"""The place of a value in the rows; places compare in the order in which the original program writes."""

PlaceOf: TypeAlias = Callable[[int], Place]
"""A function that returns the place of a value, from its position among the values that are added together."""


class Flush(NamedTuple):
    """Bytes of a column that are due to be written."""

    at: Place
    stream: Stream
    data: bytes


@dataclass(eq=False)
class Stream:
    """A stream of tagged values: those that wait to be written, and the segments that were written before."""

    segment_bytes: int
    segments: list[Segment] = field(default_factory=list)
    _waiting: list[Bytes] = field(default_factory=list)
    _bytes: int = 0

    def add(self, values: Slices, place: PlaceOf, due: list[Flush]) -> None:
        """Adds tagged values.  Each segment that becomes full is noted in `due`."""
        if not len(values):
            return
        data, offsets = interleaved([values.tagged()])
        row = 0
        while (
            self._bytes + len(data) - int(offsets[row]) >= self.segment_bytes
        ):  # ends: each round takes values
            needed = self.segment_bytes - self._bytes
            last = int(np.searchsorted(offsets, offsets[row] + needed, side="left"))
            self._take(data[offsets[row] : offsets[last]])
            due.append(Flush(place(last - 1), self, self._emptied()))
            row = last
            if row == len(values):
                return
        self._take(data[offsets[row] :].copy() if row else data)

    def flush(self, output: Output) -> None:
        """Writes the waiting values."""
        if self._bytes:
            self.written(output, self._emptied())

    def written(self, output: Output, data: bytes) -> None:
        """Writes a segment, and notes where it is."""
        self.segments.append(Segment(output.offset, len(data)))
        output.write(data)

    def _take(self, data: Bytes) -> None:
        self._waiting.append(data)
        self._bytes += len(data)

    def _emptied(self) -> bytes:
        data = b"".join(part.data for part in self._waiting)
        self._waiting, self._bytes = [], 0
        return data


@dataclass(eq=False)
class Output:
    """The file, and how many bytes were written to it."""

    file: BinaryIO
    offset: int = 0

    def write(self, data: bytes) -> None:
        """Appends bytes to the file."""
        self.file.write(data)
        self.offset += len(data)


class Presence:
    """Which values of a field are null, as lengths of runs: the first run counts present values, the next one
    nulls, and so on."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self._run = 0
        self._null = False

    def add(self, valid: Mask, place: PlaceOf, due: list[Flush]) -> None:
        """Adds the presence of the next values."""
        null = ~valid
        before = np.concatenate([[self._null], null[:-1]])
        changes = np.flatnonzero(null != before)
        if not len(changes):
            self._run += len(valid)
            return
        runs = np.diff(changes, prepend=0)
        runs[0] += self._run
        self._run = len(valid) - int(changes[-1])
        self._null = bool(null[-1])
        self.stream.add(signed_values(runs), lambda at: place(int(changes[at])), due)

    def finish(self, output: Output) -> None:
        """Ends the last run."""
        due: list[Flush] = []
        self.stream.add(signed_values(np.array([self._run])), lambda _: (), due)
        for flush in due:
            self.stream.written(output, flush.data)


# --- columns


class ColumnWriter:
    """Holds one column; `add` adds values, `flush` writes waiting ones, `map` says where all of them are."""

    def add(self, column: Column, place: PlaceOf, due: list[Flush]) -> None:
        """Adds values to the column.  Each segment that becomes full is noted in `due`."""
        raise NotImplementedError

    def flush(self, output: Output, *, end: bool) -> None:
        """Writes the waiting values; it writes the presence only if `end` is set."""
        raise NotImplementedError

    def map(self) -> ColumnMap:
        """Returns where the segments of the column are."""
        raise NotImplementedError

    def emptied(self) -> int:
        """Returns the number of null arrays that became empty in the file."""
        return 0


def column_writer(kind: Type, segment_bytes: int) -> ColumnWriter:
    """Returns a writer for a column of the type."""
    match kind := plain(kind):
        case Record():
            return RecordWriter(kind, segment_bytes)
        case Array():
            return _ListWriter(kind, segment_bytes)
        case Union():
            return _UnionWriter(kind, segment_bytes)
    return _LeafWriter(segment_bytes)


class _LeafWriter(ColumnWriter):
    def __init__(self, segment_bytes: int) -> None:
        self._stream = Stream(segment_bytes)

    def add(self, column: Column, place: PlaceOf, due: list[Flush]) -> None:
        assert isinstance(column, Leaf)
        self._stream.add(canonical(column.slices), place, due)

    def flush(self, output: Output, *, end: bool) -> None:
        self._stream.flush(output)

    def map(self) -> ColumnMap:
        return tuple(self._stream.segments)


class _FieldWriter:
    def __init__(self, kind: Type, segment_bytes: int) -> None:
        self._column = column_writer(kind, segment_bytes)
        self._presence = Presence(Stream(segment_bytes))
        self._values = 0
        self._nulls = 0

    def add(self, column: Column, place: PlaceOf, due: list[Flush]) -> None:
        valid = column.valid
        values = int(np.count_nonzero(valid))
        self._values += values
        self._nulls += len(valid) - values
        self._presence.add(valid, lambda at: (*place(at), 0), due)
        if values == len(valid):
            self._column.add(column, lambda at: (*place(at), 1), due)
        elif values:
            rows = np.flatnonzero(valid)
            self._column.add(column.present(), lambda at: (*place(int(rows[at])), 1), due)

    def flush(self, output: Output, *, end: bool) -> None:
        self._column.flush(output, end=end)
        if end:
            self._presence.finish(output)
            if self._values and self._nulls:
                self._presence.stream.flush(output)

    def emptied(self) -> int:
        """Returns the number of null arrays of the field's column that became empty."""
        return self._column.emptied()

    def map(self) -> FieldMap:
        column = self._column.map() if self._values else None
        return FieldMap(column, tuple(self._presence.stream.segments))


class RecordWriter(ColumnWriter):
    """Writes records that are not null."""

    def __init__(self, kind: Record, segment_bytes: int) -> None:
        self._kind = kind
        self._fields = [_FieldWriter(child, segment_bytes) for child in kind.children]

    def add(self, column: Column, place: PlaceOf, due: list[Flush]) -> None:
        assert isinstance(column, RecordColumn)
        _refuse_null(self._kind, column)
        for at, (writer, values) in enumerate(zip(self._fields, column.fields, strict=True)):
            writer.add(values, lambda row, at=at: (*place(row), at), due)  # type: ignore[misc]

    def flush(self, output: Output, *, end: bool) -> None:
        for writer in self._fields:
            writer.flush(output, end=end)

    def emptied(self) -> int:
        return sum(field.emptied() for field in self._fields)

    def map(self) -> ColumnMap:
        return RecordMap(tuple(writer.map() for writer in self._fields))


class _ListWriter(ColumnWriter):
    """Writes arrays and sets.  A null array inside another array becomes empty, because the format cannot express
    it."""

    def __init__(self, kind: Array, segment_bytes: int) -> None:
        self._values = column_writer(kind.inner, segment_bytes)
        self._lengths = Stream(segment_bytes)
        self._emptied = 0

    def add(self, column: Column, place: PlaceOf, due: list[Flush]) -> None:
        assert isinstance(column, ListColumn)
        counts = np.maximum(column.lengths, 0)
        self._emptied += int(np.count_nonzero(column.lengths < 0))
        ends = np.cumsum(counts)

        def inside(at: int) -> Place:
            row = int(np.searchsorted(ends, at, side="right"))
            return (*place(row), 0, at - int(ends[row] - counts[row]))

        self._values.add(column.values, inside, due)
        self._lengths.add(signed_values(counts), lambda at: (*place(at), 1), due)

    def flush(self, output: Output, *, end: bool) -> None:
        self._lengths.flush(output)
        self._values.flush(output, end=end)

    def emptied(self) -> int:
        return self._emptied + self._values.emptied()

    def map(self) -> ColumnMap:
        return ListMap(self._values.map(), tuple(self._lengths.segments))


class _UnionWriter(ColumnWriter):
    def __init__(self, kind: Union, segment_bytes: int) -> None:
        self._kind = kind
        self._columns = [column_writer(child, segment_bytes) for child in kind.children]
        self._selector = Stream(segment_bytes)

    def add(self, column: Column, place: PlaceOf, due: list[Flush]) -> None:
        assert isinstance(column, UnionColumn)
        _refuse_null(self._kind, column)
        self._selector.add(signed_values(column.selector), lambda at: (*place(at), 0), due)
        for number, (writer, values) in enumerate(zip(self._columns, column.columns, strict=True)):
            rows: Ints = np.flatnonzero(column.selector == number)
            writer.add(values, lambda at, rows=rows: (*place(int(rows[at])), 1), due)  # type: ignore[misc]

    def flush(self, output: Output, *, end: bool) -> None:
        self._selector.flush(output)
        for writer in self._columns:
            writer.flush(output, end=end)

    def emptied(self) -> int:
        return sum(column.emptied() for column in self._columns)

    def map(self) -> ColumnMap:
        return UnionMap(tuple(writer.map() for writer in self._columns), tuple(self._selector.segments))


def _refuse_null(kind: Type, column: Column) -> None:
    if not column.valid.all():
        raise InvalidInput(
            f"a null of type <{type_text(kind)}> inside of an array or a union: ZST has no form for it; "
            "leave it out, or write ZNG or Parquet"
        )
