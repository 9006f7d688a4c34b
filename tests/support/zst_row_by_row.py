"""Writes ZST one value after another, as the format page describes it: slowly, but easy to read."""

from __future__ import annotations

from collections.abc import Callable

from log_lake.zng.types import Array, Record, Type, Union, plain
from log_lake.zng.wire import Cursor, as_signed, primitive, signed
from log_lake.zng.zst.layout import Segment


class _Stream:
    def __init__(self, file: RowByRow) -> None:
        self.file = file
        self.data = b""
        self.segments: list[Segment] = []

    def write(self, body: bytes | None) -> None:
        self.data += primitive(body)
        if len(self.data) >= self.file.segment_bytes:
            self.flush()

    def flush(self) -> None:
        if self.data:
            self.segments.append(Segment(len(self.file.data), len(self.data)))
            self.file.data += self.data
            self.data = b""


class _Presence(_Stream):
    def __init__(self, file: RowByRow) -> None:
        super().__init__(file)
        self.run, self.null = 0, False

    def touch(self, *, null: bool) -> None:
        if null == self.null:
            self.run += 1
        else:
            self.write(signed(self.run))
            self.run, self.null = 1, null


Column = tuple[Callable[[bytes | None], None], Callable[[bool], None], Callable[[], list[Segment]]]
"""Functions of a column: one writes a value; one flushes, at the end or before; one returns all segments."""


def _column(kind: Type, file: RowByRow) -> Column:
    match kind := plain(kind):
        case Record():
            return _record(kind, file)
        case Array():
            values, lengths = _column(kind.inner, file), _Stream(file)

            def write(body: bytes | None) -> None:
                elements = list(Cursor(body or b"", name="reference").values())
                for element in elements:
                    values[0](element)
                lengths.write(signed(len(elements)))

            return (
                write,
                lambda end: (lengths.flush(), values[1](end))[0],
                lambda: lengths.segments + values[2](),
            )
        case Union():
            columns, selector = [_column(child, file) for child in kind.children], _Stream(file)

            def write_union(body: bytes | None) -> None:
                chosen, inner = Cursor(body or b"", name="reference").values()
                selector.write(chosen)
                columns[as_signed(chosen or b"")][0](inner)

            def flush_union(end: bool) -> None:
                selector.flush()
                for column in columns:
                    column[1](end)

            return write_union, flush_union, lambda: selector.segments + [s for c in columns for s in c[2]()]
    stream = _Stream(file)
    return stream.write, lambda end: stream.flush(), lambda: stream.segments


def _record(kind: Record, file: RowByRow) -> Column:
    fields = [(_column(child, file), _Presence(file), [0, 0]) for child in kind.children]

    def write(body: bytes | None) -> None:
        for (column, presence, counts), value in zip(
            fields, Cursor(body or b"", name="reference").values(), strict=True
        ):
            counts[value is None] += 1
            presence.touch(null=value is None)
            if value is not None:
                column[0](value)

    def flush(end: bool) -> None:
        for column, presence, counts in fields:
            column[1](end)
            if end:
                presence.write(signed(presence.run))
                if all(counts):
                    presence.flush()

    def segments() -> list[Segment]:
        # a column without a value is left out of the maps, whatever presence was written below it
        return [
            s
            for column, presence, (some, _) in fields
            for s in (column[2]() if some else []) + presence.segments
        ]

    return write, flush, segments


class RowByRow:
    """Makes the data section of a file, and the segments of all its columns."""

    def __init__(self, values: list[tuple[Type, bytes]], *, skew_bytes: int, segment_bytes: int) -> None:
        self.segment_bytes = segment_bytes
        self.data = b""
        root = _Stream(self)
        columns: dict[Type, Column] = {}
        unflushed = 0
        for kind, body in values:
            if kind not in columns:
                columns[kind] = _column(kind, self)
            root.write(signed(list(columns).index(kind)))
            columns[kind][0](body)
            unflushed += len(body)
            if unflushed >= skew_bytes:
                unflushed = 0
                self._flush(columns, root, end=False)
        self._flush(columns, root, end=True)
        self.segments = sorted(root.segments + [s for column in columns.values() for s in column[2]()])

    def _flush(self, columns: dict[Type, Column], root: _Stream, *, end: bool) -> None:
        for column in columns.values():
            column[1](end)
        root.flush()
