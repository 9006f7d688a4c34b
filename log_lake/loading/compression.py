"""Compressed files: recognizes them by their first bytes, and gives their content.

If several members or frames follow one another, they are one stream.  A file that ends in the middle of a member
is refused; the message names the file.  Called by `opening`.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, cast

import pyarrow as pa

from lake_core.errors import InvalidInput

_ZSTD = b"\x28\xb5\x2f\xfd"
_SKIPPABLE = tuple(bytes([b]) + b"\x2a\x4d\x18" for b in range(0x50, 0x60))

_PACKED = 256 << 10

_XZ_MEMORY = 256 << 20
"""The most memory that a file may make the decompressor of xz use; `xz -9` needs 65 MiB."""

DAMAGED = (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError, pa.ArrowInvalid, OSError)
"""The exceptions of the decompressors for a damaged or truncated file."""


def compression_of(begin: bytes) -> str:
    """Returns the name of the compression that the first bytes of a file show; "" if it is not compressed."""
    if begin.startswith(b"\x1f\x8b"):
        return "gzip"
    if begin.startswith((_ZSTD, *_SKIPPABLE)):
        return "zstd"
    if begin[:3] == b"BZh" and begin[4:10] in (b"\x31\x41\x59\x26\x53\x59", b"\x17\x72\x45\x38\x50\x90"):
        return "bz2"
    return "xz" if begin.startswith(b"\xfd7zXZ\x00") else ""


def unpacked(file: BinaryIO, compression: str) -> BinaryIO:
    """Returns the unpacked content of the file.  Reading it raises an exception in DAMAGED if the file is
    damaged."""
    opened: dict[str, Callable[[], object]] = {
        "gzip": lambda: gzip.GzipFile(fileobj=file, mode="rb"),
        "bz2": lambda: io.BufferedReader(_Members(file, bz2.BZ2Decompressor), 1 << 20),
        "xz": lambda: io.BufferedReader(
            _Members(file, lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)), 1 << 20
        ),
        "zstd": lambda: io.BufferedReader(_Zstd(file), 1 << 20),
    }
    return cast(BinaryIO, opened[compression]())


class _Zstd(io.RawIOBase):
    """Arrow's zstd reader as a raw stream."""

    def __init__(self, file: BinaryIO) -> None:
        self._stream = pa.CompressedInputStream(pa.PythonFile(file, mode="r"), "zstd")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


class _Members(io.RawIOBase):
    """Compressed streams that follow one another.  Python's own readers ignore a damaged one after the
    first."""

    def __init__(self, file: BinaryIO, member: Callable[[], Any]) -> None:
        self._file, self._member = file, member
        self._decompressor = member()
        self._begun = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        while True:  # bounded by the file
            packed = b""
            if self._decompressor.eof:
                packed = (self._decompressor.unused_data or self._file.read(_PACKED)).lstrip(b"\0")
                self._decompressor, self._begun = self._member(), False
            elif self._decompressor.needs_input:
                packed = self._file.read(_PACKED)
                if not packed and self._begun:
                    raise EOFError("the file ends before its end mark")
            if not packed and not self._begun:
                packed = self._file.read(_PACKED).lstrip(b"\0")  # zeros may stand between streams
                if not packed:
                    return 0
            self._begun = True
            data = self._decompressor.decompress(packed, len(buffer))
            if data:
                buffer[: len(data)] = data
                return len(data)


@contextmanager
def naming(file: str, compression: str) -> Iterator[None]:
    """Returns a context in which an exception of a decompressor becomes InvalidInput that names the file."""
    try:
        yield
    except DAMAGED as error:
        raise InvalidInput(f"{file}: the {compression} file is damaged or truncated: {error}") from error
