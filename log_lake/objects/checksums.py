"""Checksums of a data object: of its blocks while it is written, and of its tail at the end.

Parquet has checksums of its pages but not of its footer, and DataFusion does not check pages.  So an object
stores in its metadata the CRC-32 of each block of its data.  A separate pair (`lake.crc32`) has the CRC-32 of
its tail (page index and footer), computed with eight zeros in place of that number.  A reader checks the tail
when it opens the object, and Arrow checks each page that it decodes.  For DataFusion a thread checks the blocks
(decision 32).

Objects from before there were checksums have neither; they are read unchecked.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

import pyarrow as pa

from lake_core.errors import Corrupt
from log_lake.objects.failures import reading

KEY = b"lake.crc32"
NOTHING_YET = b"00000000"
BLOCK = 1 << 20
"""Bytes of a block.  To check a range, a reader reads up to a block more at each end.  Larger blocks would make
this expensive; smaller ones would need more checksums, which now take 1/100,000 of an object (decision 32)."""

_PLACE = KEY + b"\x18\x08"
"""The bytes of the pair `lake.crc32` in Thrift's form, up to its value of eight bytes."""


class SummedFile:
    """A file that is being written, and the checksums of the bytes written to it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._size = 0
        self._gathered = bytearray()
        self._blocks: list[int] = []
        self._part_sum: int | None = None
        self._tail: list[bytes] | None = None

    def write(self, data: Any) -> int:
        """Buffers bytes, and writes them to the file a block at a time, because each call of a store's file has a
        cost.

        After `begin_tail`, the bytes stay in memory until `end_tail`.
        """
        view = memoryview(data).cast("B")
        self._size += view.nbytes
        if self._part_sum is not None:
            self._part_sum = zlib.crc32(view, self._part_sum)
        if self._tail is not None:
            self._tail.append(bytes(view))
            return view.nbytes
        self._gathered += view
        while len(self._gathered) >= BLOCK:  # bounded by what was written
            self._put(self._gathered[:BLOCK])
            del self._gathered[:BLOCK]
        return view.nbytes

    def _put(self, block: bytearray) -> None:
        if block:
            self._file.write(block)
            self._blocks.append(zlib.crc32(block))

    def take_sum(self) -> int:
        """Returns the checksum of the bytes written since the last call.  The first call starts the sum and
        returns 0."""
        taken, self._part_sum = self._part_sum, 0
        return taken or 0

    def begin_tail(self) -> tuple[int, tuple[int, ...]]:
        """Returns the position at which the data end, and the checksum of each block of the data."""
        self._put(self._gathered)
        self._gathered = bytearray()
        self._tail = []
        return self._size, tuple(self._blocks)

    def end_tail(self) -> None:
        """Writes the tail, with its checksum in place of the eight zeros."""
        assert self._tail is not None
        tail = b"".join(self._tail)
        position = tail.rindex(_PLACE + NOTHING_YET) + len(_PLACE)
        self._file.write(tail[:position] + _text(zlib.crc32(tail)) + tail[position + len(NOTHING_YET) :])

    def end_plain_tail(self) -> None:
        """Writes the tail unchanged, for formats whose tail has its own checksum."""
        assert self._tail is not None
        self._file.write(b"".join(self._tail))

    def tell(self) -> int:
        return self._size

    def flush(self) -> None:
        self._file.flush()

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    @property
    def closed(self) -> bool:
        return False

    def close(self) -> None:
        """Does nothing: the store closes its file."""


def check_tail(file: pa.NativeFile, pairs: Mapping[bytes, bytes], data_end: int, *, name: str) -> None:
    """Raises Corrupt if the page index or the footer differ from the bytes that were written.

    Two places show whether an object has checksums. If only one of them does, it is damaged.
    """
    written = pairs.get(KEY)
    if written is None and not data_end:
        return  # an object from before there were checksums
    size = file.size()
    if written is None or not 0 < data_end < size:
        raise Corrupt(f"{name}: the footer is damaged: it has one of its two checksums only")
    file.seek(data_end)
    tail = file.read(size - data_end)
    position = tail.rfind(_PLACE + written)
    if position < 0 or len(written) != len(NOTHING_YET):
        raise Corrupt(f"{name}: the footer is damaged: its checksum is missing")
    position += len(_PLACE)
    computed = _text(zlib.crc32(tail[:position] + NOTHING_YET + tail[position + len(NOTHING_YET) :]))
    if computed != written:
        raise Corrupt(
            f"{name}: the footer is damaged: its checksum is {computed.decode()}, and should be {written!r}"
        )


@dataclass(frozen=True)
class Sums:
    """The checksums of an object's blocks, to check the bytes from `begin` (inclusive) to `end` (exclusive).

    `blocks` is empty for an object that was written before objects had checksums.
    """

    blocks: tuple[int, ...]
    data_end: int
    begin: int
    end: int

    @property
    def size(self) -> int:
        """The number of bytes that a check reads."""
        return self.end - self.begin if self.blocks else 0

    def check(self, path: str, *, name: str) -> None:
        """Raises Corrupt if a block in the range differs from the bytes that were written, and Unavailable.

        `path` leads to the object; `name` is its name in errors.
        """
        if not self.blocks:
            return
        with reading(name), open(path, "rb") as file:
            self.check_open(file, name=name)

    def check_open(self, file: Any, *, name: str) -> None:
        """Does what `check` does, for a file that is already open."""
        for number in range(self.begin // BLOCK, min(len(self.blocks), -(-self.end // BLOCK))):
            at = number * BLOCK
            file.seek(at)
            if zlib.crc32(file.read(min(BLOCK, self.data_end - at))) != self.blocks[number]:
                upto = min(at + BLOCK, self.data_end)
                raise Corrupt(f"{name}: damaged between the bytes {at} and {upto}")


def _text(crc: int) -> bytes:
    return f"{crc:08x}".encode()
