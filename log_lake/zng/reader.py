"""Reads ZNG: a stream of messages that define types and hold values, some of them in compressed blocks.

`read` gives values in groups of about `ROWS_BYTES`, large enough for numpy to be fast, and keeps little more
than one group in memory.  Each length is checked against its limit before memory is allocated.  The bytes may be
several streams in a row; at the end of each, its types are forgotten.
"""

from __future__ import annotations

import bisect
import codecs
import io
from collections.abc import Iterator
from typing import Protocol

import lz4.block
import numpy as np

from lake_core.errors import Corrupt
from log_lake.zng.rows import Rows
from log_lake.zng.slices import Buffer
from log_lake.zng.typedefs import NAMED, RECORD, TypeReader
from log_lake.zng.types import FIRST_TYPEDEF, Record, Type, Union, plain
from log_lake.zng.wire import MAX_VALUE_BYTES, Cursor, corrupt

WIDE_VALUE, COMPRESSED, APPLICATION, END = 0xF5, 0xFD, 0xFE, 0xFF
"""The first bytes of messages.  A smaller first byte is the type id of a value; one between WIDE_VALUE and END
that is none of these begins a typedef."""

ROWS_BYTES = 4 << 20
"""Bytes of one group of values: enough to make the fixed cost of a column small, and few enough for any
memory."""

_READ_BYTES = 1 << 20
_MAX_MESSAGE = 2 * MAX_VALUE_BYTES
"""The most bytes of one message.  A typedef that claims to be longer is damaged."""

_GROUP_NODES = 100_000
"""The most types that the types of one group may contain in all.  Each becomes a column, which takes memory even
if it is empty."""

_LZ4 = 0
_MOST_UNPACKED = 255
"""The most bytes that one byte of LZ4 can expand to."""


class Readable(Protocol):
    """A file that is open for reading."""

    def read(self, size: int, /) -> bytes:
        """Returns at most `size` bytes; an empty result means the end of the file."""


def read(source: Readable, *, name: str, offset: int = 0, rows_bytes: int = ROWS_BYTES) -> Iterator[Rows]:
    """Yields the values of a file in groups.  Errors name the file by `name`; `offset` is where in the file the
    source begins.

    Raises Corrupt with the offset of the damage, after it gave all groups before the damage.
    """
    yield from _Reader(source, name, rows_bytes).groups(offset)


class _Group:
    """The values gathered for the next group."""

    def __init__(self, name: str, rows_bytes: int) -> None:
        self._name = name
        self._rows_bytes = rows_bytes
        self._parts: list[bytes] = []
        self._origins: list[tuple[int, int, str]] = []
        """Where a part begins in the group and in its file or block, and the name of that."""
        self._types: dict[Type, int] = {}
        self.size = 0
        self.nodes = 0
        self.kinds: list[int] = []
        self.starts: list[int] = []
        self.lengths: list[int] = []

    def kind(self, kind: Type) -> int:
        """Returns the index of the type among the group's types; adds the type if it is new."""
        if kind not in self._types:
            self._types[kind] = len(self._types)
            self.nodes += kind.nodes
        return self._types[kind]

    @property
    def is_full(self) -> bool:
        """Whether no more values should be added."""
        return self.size >= self._rows_bytes or self.nodes >= _GROUP_NODES

    def add(self, data: bytes, cursor: Cursor, begun: int) -> None:
        """Adds the bytes of the values that were read since position `begun`."""
        self._origins.append((self.size, cursor.offset + begun, cursor.name))
        self._parts.append(data)
        self.size += len(data)

    def rows(self) -> Rows:
        """Returns the values of the group."""
        origins = self._origins

        def where(position: int, what: str) -> Corrupt:
            begin, offset, name = origins[bisect.bisect_right(origins, position, key=lambda o: o[0]) - 1]
            return corrupt(name, offset + position - begin, what)

        kinds, length = np.array(self.kinds, np.int64), np.array(self.lengths, np.int64)
        cannot_be_empty = np.array([_is_null_if_empty(kind) for kind in self._types], np.bool_)
        length[(length == 0) & cannot_be_empty[kinds]] = -1
        buffer = Buffer(b"".join(self._parts), where)
        return Rows(buffer, list(self._types), kinds, np.array(self.starts, np.int64), length)


def _is_null_if_empty(kind: Type) -> bool:
    plain_kind = plain(kind)
    return isinstance(plain_kind, Union) or (isinstance(plain_kind, Record) and bool(plain_kind.names))


class _Reader:
    def __init__(self, source: Readable, name: str, rows_bytes: int) -> None:
        self._source = source
        self._name = name
        self._rows_bytes = rows_bytes
        self._types = TypeReader()
        self._data = b""
        self._ended = False
        self._block = Cursor(b"", name=name)
        """A compressed block whose values did not all fit into a group."""

    def knows(self, begin: bytes) -> bool:
        """Whether these bytes are valid messages, and at least one defines a type or holds a value."""
        group = _Group("", self._rows_bytes)
        try:
            self._messages(group, Cursor(begin, name=""))
        except Corrupt:
            return False
        return bool(group.kinds) or self._types.type_of(FIRST_TYPEDEF) is not None

    def groups(self, offset: int) -> Iterator[Rows]:
        """Yields the values in groups."""
        group = _Group(self._name, self._rows_bytes)
        size = _READ_BYTES
        while True:  # ends: each round reads more of the file, up to its end
            self._fill(size)
            if not self._data and not self._block.left:
                break
            cursor = Cursor(self._data, name=self._name, offset=offset)
            try:
                self._messages(group, cursor)
            except Corrupt:
                if group.kinds:
                    yield group.rows()
                raise
            size = _READ_BYTES if cursor.position or self._block.left else 2 * len(self._data)
            self._data = self._data[cursor.position :]
            offset += cursor.position
            if group.is_full:
                yield group.rows()
                group = _Group(self._name, self._rows_bytes)
        if group.kinds:
            yield group.rows()

    def _fill(self, least: int) -> None:
        parts, size = [self._data], len(self._data)
        while size < least and not self._ended:  # ends: at the end of the file
            part = self._source.read(least - size)
            self._ended = not part
            parts.append(part)
            size += len(part)
        self._data = b"".join(parts)

    def _messages(self, group: _Group, cursor: Cursor) -> None:
        """Reads whole messages, up to a group's size, and leaves the cursor at the begin of the next
        message."""
        if self._block.left:
            self._of_block(group)
        while cursor.left and not group.is_full:  # ends: a message takes a byte at least
            begun = cursor.position
            try:
                if cursor.data[begun] <= WIDE_VALUE:
                    self._values(group, cursor)
                else:
                    self._message(group, cursor)
            except Corrupt:
                missing = (
                    cursor.short and not self._ended and len(cursor.data) - cursor.position <= _MAX_MESSAGE
                )
                if not missing:
                    raise
                cursor.position = begun if cursor.data[begun] > WIDE_VALUE else cursor.position
                return

    def _message(self, group: _Group, cursor: Cursor) -> None:
        begun = cursor.position
        code = cursor.byte()
        if RECORD <= code <= NAMED:
            self._types.define(code, cursor)
        elif code == COMPRESSED:
            name = f"{self._name}: byte {cursor.offset + begun:,}: a compressed block"
            self._block = Cursor(self._unpacked(cursor), name=name)
            self._of_block(group)
        elif code == APPLICATION:
            cursor.byte()
            cursor.take(_limited(cursor))
        else:
            self._types = TypeReader()

    def _of_block(self, group: _Group) -> None:
        self._values(group, self._block)
        if self._block.left and not group.is_full:
            raise self._block.corrupt("something else than values")

    def _unpacked(self, cursor: Cursor) -> bytes:
        begun = cursor.position
        if (form := cursor.uvarint()) != _LZ4:
            raise cursor.corrupt(f"compression {form} is unknown; only LZ4 (0) is", begun)
        size = _limited(cursor)
        packed = cursor.take(_limited(cursor))
        if size > _MOST_UNPACKED * (len(packed) + 1):
            raise cursor.corrupt(f"a block of {len(packed):,} bytes cannot become {size:,}", begun)
        try:
            block: bytes = lz4.block.decompress(packed, uncompressed_size=size)
        except lz4.block.LZ4BlockError:
            raise cursor.corrupt("a compressed block cannot be unpacked", begun) from None
        if len(block) != size:
            raise cursor.corrupt(f"a compressed block has {len(block):,} bytes, not {size:,}", begun)
        return block

    def _values(self, group: _Group, cursor: Cursor) -> None:
        """Reads values up to the first message of another kind.  If a value is damaged, the values before it are
        kept."""
        data, begun, position = cursor.data, cursor.position, cursor.position
        size = len(data)
        limit = min(size, begun + self._rows_bytes)
        kinds, starts, lengths = group.kinds, group.starts, group.lengths
        shift = group.size - begun
        indexes: dict[int, int] = {}
        try:
            while position < limit:  # ends: a value takes two bytes at least
                code = data[position]
                if code > WIDE_VALUE:
                    break
                body = position + 2
                if (
                    code == WIDE_VALUE
                    or body > size
                    or (length := data[position + 1]) >= 0x80
                    or body + length > size
                ):
                    code, length, body = _header(cursor, position)
                if (kind := indexes.get(code)) is None:
                    defined = self._types.type_of(code)
                    if defined is None:
                        raise cursor.corrupt(f"a value has type {code}, which is not defined", position)
                    kind = indexes[code] = group.kind(defined)
                    if group.is_full:
                        limit = position
                kinds.append(kind)
                starts.append(body + shift)
                lengths.append(length)
                position = body + length
        finally:
            cursor.position = position
            if position > begun:
                group.add(data[begun:position], cursor, begun)


def looks_like_zng(begin: bytes) -> bool:
    """Whether a file begins with ZNG messages that define a type or hold a value.  `begin` may end inside of a
    message.

    Two begins do not count, because text files have them too: a value of a type that needs no definition, and
    the mark of UTF-16.
    """
    if not begin or begin[0] <= WIDE_VALUE or begin.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return False
    return _Reader(io.BytesIO(), "", ROWS_BYTES).knows(begin)


def _header(cursor: Cursor, position: int) -> tuple[int, int, int]:
    """Returns the type id, the length of the body, and its position, for the value at `position`."""
    cursor.position = position
    code = cursor.byte()
    if code == WIDE_VALUE:
        code += cursor.uvarint()
    length = _limited(cursor)
    if length > cursor.left:
        raise cursor.too_short(f"a value of {length:,} bytes, where {cursor.left:,} are left", position)
    return code, length, cursor.position


def _limited(cursor: Cursor) -> int:
    begun = cursor.position
    length = cursor.uvarint()
    if length > MAX_VALUE_BYTES:
        raise cursor.corrupt(f"a length of {length:,} bytes; at most {MAX_VALUE_BYTES:,} are allowed", begun)
    return length
