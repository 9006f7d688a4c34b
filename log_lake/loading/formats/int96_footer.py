"""Changes a Parquet footer so that Arrow gives the bytes of INT96 instead of times.

Arrow converts INT96 to nanoseconds of 64 bits.  They wrap around, and do not show whether the nanoseconds of
the day were negative.  But INT96 is stored as any value of 12 bytes is.  So the changed footer calls the
columns FIXED_LEN_BYTE_ARRAY, and Arrow decodes the same pages to bytes.  The footer is Thrift in its compact
protocol; only bytes that name the type change.  Called by `int96`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise

import pyarrow as pa
import pyarrow.parquet as pq

WIDTH = 12
"""The bytes of one value of INT96."""

_MAGIC = b"PAR1"
_TRUE, _FALSE, _BYTE = 1, 2, 3
_INT96, _FIXED = b"\x06", b"\x0e"
"""The types 3 and 7 of Parquet, as Thrift writes them."""
_LENGTH_12 = b"\x15\x18"
"""The next field of a Thrift struct, an integer with the value 12: the length of a value in bytes."""

_Step = Callable[[int], None]


def bytes_metadata(source: pa.NativeFile) -> pq.FileMetaData:
    """Returns the metadata of a Parquet file that Arrow has opened, with the type of 12 bytes in place of each
    INT96."""
    size = source.size()
    source.seek(size - 8)
    length = int.from_bytes(source.read(4), "little")
    source.seek(size - 8 - length)
    footer = _Footer(source.read(length)).changed()
    whole = _MAGIC + footer + len(footer).to_bytes(4, "little") + _MAGIC
    return pq.read_metadata(pa.BufferReader(whole))


class _Footer:
    """Walks through the footer and collects edits: (first byte, byte after the last, new bytes)."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0
        self._edits: list[tuple[int, int, bytes]] = []

    def changed(self) -> bytes:
        """Returns the bytes of the footer with FIXED_LEN_BYTE_ARRAY in place of INT96."""
        self._struct(
            {2: self._each({1: self._schema_type}), 4: self._each({1: self._each({3: self._column})})}
        )
        edits = [(0, 0, b""), *self._edits, (len(self._data), len(self._data), b"")]
        parts = [self._data[one[1] : two[0]] + two[2] for one, two in pairwise(edits)]
        return b"".join(parts)

    def _schema_type(self, kind: int) -> None:
        """Changes the type of an element of the schema, and adds its length as the next field."""
        if self._data[self._at : self._at + 1] == _INT96:
            after = self._data[self._at + 1]  # how much greater the number of the next field is, and its type
            one_less = after - 0x10 if after >> 4 else after
            self._edits.append((self._at, self._at + 2, _FIXED + _LENGTH_12 + bytes([one_less])))
        self._skip(kind)

    def _column(self, kind: int) -> None:
        """Walks through the metadata of a column in a row group."""
        self._struct({1: self._column_type})

    def _column_type(self, kind: int) -> None:
        if self._data[self._at : self._at + 1] == _INT96:
            self._edits.append((self._at, self._at + 1, _FIXED))
        self._skip(kind)

    def _each(self, steps: Mapping[int, _Step]) -> _Step:
        """Returns the step that walks into each struct of a list."""

        def step(kind: int) -> None:
            for _ in range(self._count()[0]):
                self._struct(steps)

        return step

    def _struct(self, steps: Mapping[int, _Step]) -> None:
        """Walks through a struct: runs the step of each field that has one, by number, and skips the other
        fields."""
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._varint() >> 1
            steps.get(number, self._skip)(head & 15)

    def _skip(self, kind: int) -> None:
        match kind:
            case 1 | 2:  # a boolean is in its type
                pass
            case 3:
                self._at += 1
            case 4 | 5 | 6:
                self._varint()
            case 7:
                self._at += 8
            case 8:
                size = self._varint()
                self._at += size
            case 9 | 10:
                count, of = self._count()
                for _ in range(count):
                    self._item(of)
            case 11:
                count = self._varint()
                kinds = self._byte() if count else 0
                for _ in range(count):
                    self._item(kinds >> 4)
                    self._item(kinds & 15)
            case _:
                self._struct({})

    def _item(self, kind: int) -> None:
        """Skips an item of a list or a map, where a boolean has a byte of its own."""
        self._skip(_BYTE if kind in (_TRUE, _FALSE) else kind)

    def _count(self) -> tuple[int, int]:
        """Returns the number of a list's items, and their type."""
        head = self._byte()
        return (head >> 4 if head >> 4 < 15 else self._varint()), head & 15

    def _byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _varint(self) -> int:
        result = shift = 0
        while (byte := self._byte()) >= 0x80:
            result |= (byte & 0x7F) << shift
            shift += 7
        return result | byte << shift
