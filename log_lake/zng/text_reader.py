"""Reads values from readable text, in groups as `reader.read` yields those of ZNG.

The text is cut at each line end outside of brackets, so a value may have several lines, and a line several
values.  Text that is not a value is reported to the caller with its first line, and reading continues with the
next lines.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from lake_core.errors import Corrupt, InvalidInput
from log_lake.columns.arrays import Ints
from log_lake.zng.reader import ROWS_BYTES
from log_lake.zng.rows import Rows
from log_lake.zng.slices import Buffer
from log_lake.zng.text_parser import Malformed, Names, ValueParser
from log_lake.zng.text_values import type_of, value_of
from log_lake.zng.types import Type, fault_of
from log_lake.zng.wire import MAX_VALUE_BYTES

MAX_TEXT_BYTES = 64 << 20
"""The most bytes that the lines of one value may have.  A byte of a value takes at most ten bytes of text, mostly
one."""

_GROUP_NODES = 100_000
"""The most types that the types of one group may contain in all, as in `reader`."""

_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"')
_OPENING, _CLOSING = (b"{", b"[", b"("), (b"}", b"]", b")")

Bad = Callable[[int, str, bytes], None]
"""A function that is called with text that is not a value: its first line, the reason, and the text."""


def read_text(lines: Iterable[bytes], *, name: str, bad: Bad) -> Iterator[tuple[Rows, Ints]]:
    """Yields the values of the lines in groups, each value with the number of the line in which it begins, from 1.

    Raises InvalidInput for a value that is not closed, or that exceeds the limits.
    """
    names = Names()
    group = _Group(name)
    for number, text in _frames(lines, name):
        values, fault = _parsed(text, names)
        for kind, body, offset in values:
            group.add(kind, body, number + text.count(b"\n", 0, offset))
        if fault:
            bad(number, fault, text)
        if group.is_full:
            yield group.rows()
            group = _Group(name)
    if group.kinds:
        yield group.rows()


def _frames(lines: Iterable[bytes], name: str) -> Iterator[tuple[int, bytes]]:
    """Yields groups of lines in which every bracket is closed, with the number of the first line.

    If a line is not closed and the next one is a whole record, the line was cut; it is a group of its own.
    """
    parts: list[bytes] = []
    size = begun = depth = 0
    for number, line in enumerate(lines, 1):
        opened = _opened(line)
        if len(parts) == 1 and _was_cut(parts[0], line, opened):
            yield begun, parts[0]
            parts, size, depth = [], 0, 0
        if not parts:
            if not line.strip():
                continue
            begun = number
        parts.append(line)
        size, depth = size + len(line), depth + opened
        if depth <= 0:
            yield begun, b"".join(parts)
            parts, size, depth = [], 0, 0
        elif size > MAX_TEXT_BYTES:
            most = f"{MAX_TEXT_BYTES >> 20} MiB"
            raise InvalidInput(f"{name}, line {begun}: what begins here is not closed within {most}")
    if len(parts) > 1:
        raise InvalidInput(f"{name}, line {begun}: what begins here is not closed")
    if parts:
        yield begun, parts[0]


def _opened(line: bytes) -> int:
    """Returns the number of brackets that a line opens and does not close.  A string never continues in the next
    line."""
    without = _STRING.sub(b"", line) if b'"' in line else line
    return sum(map(without.count, _OPENING)) - sum(map(without.count, _CLOSING))


def _was_cut(before: bytes, line: bytes, opened: int) -> bool:
    is_record = not opened and line.startswith(b"{") and line.rstrip().endswith((b"}", b")"))
    return is_record and not before.rstrip().endswith((b"{", b"[", b"(", b":"))


def _parsed(text: bytes, names: Names) -> tuple[list[tuple[Type, bytes | None, int]], str]:
    """Returns the values of a frame with their positions, and the reason why the rest is not a value ("" if there
    is no rest)."""
    decoded = text.decode(errors="surrogateescape")
    parser = ValueParser(decoded, names, type_of)
    values: list[tuple[Type, bytes | None, int]] = []
    try:
        while (node := parser.next()) is not None:  # ends: each round takes a character at least
            kind, body = value_of(node)
            if fault := fault_of(kind):
                raise Malformed(node.position, fault)
            if len(body or b"") > MAX_VALUE_BYTES:
                raise Malformed(node.position, f"a value of more than {MAX_VALUE_BYTES:,} bytes")
            at = len(decoded[: node.position].encode(errors="surrogateescape")) if values else 0
            values.append((kind, body, at))
    except Malformed as error:
        return [], str(error)
    return values, ""


class _Group:
    """The values gathered for the next group."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._types: dict[Type, int] = {}
        self._nodes = self._size = 0
        self._parts: list[bytes] = []
        self._starts: list[int] = []
        self._lengths: list[int] = []
        self._lines: list[int] = []
        self.kinds: list[int] = []

    @property
    def is_full(self) -> bool:
        """Whether no more values should be added."""
        return self._size >= ROWS_BYTES or self._nodes >= _GROUP_NODES or len(self.kinds) >= ROWS_BYTES // 64

    def add(self, kind: Type, body: bytes | None, line: int) -> None:
        """Adds a value that begins in `line`."""
        if kind not in self._types:
            self._types[kind] = len(self._types)
            self._nodes += kind.nodes
        self.kinds.append(self._types[kind])
        self._starts.append(self._size)
        self._lengths.append(-1 if body is None else len(body))
        self._lines.append(line)
        self._parts.append(body or b"")
        self._size += len(body or b"")

    def rows(self) -> tuple[Rows, Ints]:
        """Returns the values of the group, and the line of each."""
        starts, lines = np.array(self._starts, np.int64), self._lines

        def where(position: int, what: str) -> Corrupt:
            at = max(int(np.searchsorted(starts, position, side="right")) - 1, 0)
            return Corrupt(f"{self._name}: line {lines[at]:,}: {what}")

        rows = Rows(
            Buffer(b"".join(self._parts), where),
            list(self._types),
            np.array(self.kinds, np.int64),
            starts,
            np.array(self._lengths, np.int64),
        )
        return rows, np.array(lines, np.int64)
