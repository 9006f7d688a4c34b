"""Writes ZST in one pass: the columns of each super type side by side, flushed so that memory stays bounded.

The bytes equal those of the original program for the same values and thresholds.  In memory are at most
`skew_bytes` of values that wait, and one group of rows from the reader of ZNG.
"""

from __future__ import annotations

from typing import BinaryIO

import numpy as np

from lake_core.errors import InvalidInput
from log_lake.columns.arrays import Ints
from log_lake.zng.columns import RecordColumn, record_sizes
from log_lake.zng.reader import END, WIDE_VALUE
from log_lake.zng.rows import Batch, Rows, by_kind
from log_lake.zng.slices import signed_values
from log_lake.zng.text import type_text
from log_lake.zng.typedefs import TypeWriter
from log_lake.zng.types import Record, Type, plain
from log_lake.zng.wire import Cursor, uvarint
from log_lake.zng.zst.layout import (
    SEGMENT_BYTES,
    SKEW_BYTES,
    Trailer,
    checked_thresholds,
    trailer_bytes,
)
from log_lake.zng.zst.maps import SEGMENTS_TYPE, encoded_map, encoded_segments
from log_lake.zng.zst.streams import Flush, Output, RecordWriter, Stream


class ZstWriter:
    """Writes one ZST file to an open binary file.  `close` ends it with the reassembly section and the trailer.

    Raises InvalidInput for values that ZST cannot express: a top-level value that is null or not a record, and,
    inside of arrays and unions, a null record or a null union.
    """

    def __init__(
        self, output: BinaryIO, *, skew_bytes: int = SKEW_BYTES, segment_bytes: int = SEGMENT_BYTES
    ) -> None:
        checked_thresholds(skew_bytes, segment_bytes)
        self._output = Output(output)
        self._skew_bytes = skew_bytes
        self._segment_bytes = segment_bytes
        self._types: dict[Type, int] = {}
        """The number of each super type of the part that is being written."""
        self._kinds: list[Type] = []
        self._columns: list[RecordWriter] = []
        self._root = Stream(segment_bytes)
        self._unflushed = 0
        self._records = 0
        self._begun = 0
        """Super types of the parts that ended."""

    @property
    def records(self) -> int:
        """The number of written values."""
        return self._records

    @property
    def emptied(self) -> int:
        """The number of null arrays inside arrays and unions that became empty, because the format has no null
        there."""
        return sum(column.emptied() for column in self._columns)

    def write(self, values: Rows | Batch) -> None:
        """Writes values, in their order."""
        if not len(values):
            return
        sizes = _sizes(values) if isinstance(values, Batch) else np.maximum(values.length, 0)
        for kind in values.types:
            if not isinstance(plain(kind), Record):
                raise InvalidInput(
                    f"a value of type <{type_text(kind)}>: ZST holds records; make it a field of one"
                )
        ends = np.cumsum(sizes)
        row, rows, before = 0, len(values), 0
        while row < rows:  # ends: each round takes a row at least
            due = before + self._skew_bytes - self._unflushed
            full = int(np.searchsorted(ends, due, side="left"))
            stop = min(full + 1, rows)
            self._add(values if stop - row == rows else values.part(row, stop))
            self._unflushed += int(ends[stop - 1]) - before
            before, row = int(ends[stop - 1]), stop
            if full < rows:
                self._unflushed = 0
                self._flush(end=False, since=self._begun)

    @property
    def super_types(self) -> int:
        """The number of super types in the file."""
        return len(self._kinds)

    def end_part(self) -> None:
        """Ends all columns.  Values written later get their own super types, so each part can be read alone."""
        self._flush(end=True, since=self._begun)
        self._begun = len(self._kinds)
        self._types = {}
        self._unflushed = 0

    def put(self, data: bytes) -> int:
        """Writes bytes that belong to no column, which readers skip; returns their offset.

        Allowed only between parts.
        """
        begin = self._output.offset
        self._output.write(data)
        return begin

    def end(self, data_bytes: int) -> bytes:
        """Returns the bytes that end a file with `data_bytes` bytes of data: reassembly section and trailer."""
        section = self._reassembly()
        sections = (data_bytes, len(section))
        return section + trailer_bytes(Trailer(self._skew_bytes, self._segment_bytes, sections))

    def close(self) -> None:
        """Ends the file with the reassembly section and the trailer."""
        self._flush(end=True, since=self._begun)
        self._output.write(self.end(self._output.offset))

    def _add(self, values: Rows | Batch) -> None:
        due: list[Flush] = []
        super_ids = self._super_ids(values.types, values.kinds)
        self._root.add(signed_values(super_ids), lambda at: (at, 0), due)
        columns = values.columns if isinstance(values, Batch) else values.columns()
        every = by_kind(values.kinds, len(values.types))
        for kind, column, rows in zip(values.types, columns, every, strict=True):
            if not len(rows):
                continue
            if not column.valid.all():
                raise InvalidInput(f"a top-level null of type <{type_text(kind)}>: ZST has no form for it")
            writer = self._columns[self._types[kind]]
            writer.add(column, lambda at, rows=rows: (int(rows[at]), 1), due)  # type: ignore[misc]
        due.sort(key=lambda flush: flush.at)
        for flush in due:
            flush.stream.written(self._output, flush.data)
        self._records += len(values)

    def _super_ids(self, types: list[Type], kinds: Ints) -> Ints:
        """Returns the super type of each value.  New super types are numbered in the order in which they
        come."""
        ids = np.zeros(len(types), np.int64)
        present, first = np.unique(kinds, return_index=True)
        for number in present[np.argsort(first)].tolist():
            kind = types[number]
            if kind not in self._types:
                self._types[kind] = len(self._kinds)
                self._kinds.append(kind)
                record = plain(kind)
                assert isinstance(record, Record)
                self._columns.append(RecordWriter(record, self._segment_bytes))
            ids[number] = self._types[kind]
        return ids[kinds]

    def _flush(self, *, end: bool, since: int) -> None:
        for writer in self._columns[since:]:
            writer.flush(self._output, end=end)
        self._root.flush(self._output)

    def _reassembly(self) -> bytes:
        context = TypeWriter()
        section = bytearray()
        for kind in self._kinds:
            record = plain(kind)
            assert isinstance(record, Record)
            section += _value(context, kind, bytes(len(record.names)))
        root = encoded_segments(tuple(self._root.segments))
        section += _value(context, Record(("root",), (SEGMENTS_TYPE,)), root)
        for kind, writer in zip(self._kinds, self._columns, strict=True):
            map_type, value = encoded_map(kind, writer.map())
            section += _value(context, map_type, Cursor(value, name="a map").value() or b"")
        return bytes(section) + bytes([END])


def _value(context: TypeWriter, kind: Type, body: bytes) -> bytes:
    typedefs = bytearray()
    type_id = context.id_of(kind, typedefs)
    code = bytes([type_id]) if type_id < WIDE_VALUE else bytes([WIDE_VALUE]) + uvarint(type_id - WIDE_VALUE)
    return bytes(typedefs) + code + uvarint(len(body)) + body


def _sizes(batch: Batch) -> Ints:
    """Returns the size in bytes of each value's body."""
    sizes = np.zeros(len(batch), np.int64)
    every = by_kind(batch.kinds, len(batch.types))
    for kind, column, rows in zip(batch.types, batch.columns, every, strict=True):
        if isinstance(column, RecordColumn):
            sizes[rows[column.valid]] = record_sizes(kind, column)
    return sizes
