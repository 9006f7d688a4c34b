"""Opens files to load: their bytes unchanged, unpacked, or as UTF-8 text.

`open_bytes` counts the bytes for the progress, and turns exceptions of a store's client into errors of the
lake.  `open_text` unpacks, and converts other encodings to UTF-8.  `open_seekable` is for formats that are not
read from front to back.  `detect` recognizes formats by `first_bytes`.  Called by the readers of formats.
"""

from __future__ import annotations

import codecs
import io
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any, BinaryIO, cast

import fsspec
import numpy as np

from lake_core.errors import InvalidInput, LakeError, Unavailable
from lake_core.store import Address
from log_lake.loading.block import Reading
from log_lake.loading.compression import compression_of, naming, unpacked
from log_lake.loading.failures import unopened
from log_lake.loading.own_machine import http_client
from log_lake.stores.credentials import open_filesystem
from log_lake.stores.patience import Waiting, of_sources

STDIN = "-"
"""The name of standard input on the command line."""

FIRST = 64 << 10
"""How many bytes of a file's beginning are examined for its format, encoding and delimiter."""

_MARKS = (  # UTF-32's little-endian mark begins with that of UTF-16
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


@contextmanager
def open_bytes(reading: Reading, *, count: float = 1.0) -> Iterator[BinaryIO]:
    """Opens a file, and gives its bytes unchanged.  Each byte read adds `count` to the progress.

    Raises NotFound, Unavailable, and InvalidInput if no file can have this name.
    """
    path = reading.path or reading.file
    try:
        file = _opened(path, reading.access)
    except Exception as error:  # clients of stores raise classes of many families
        raise unopened(f"file {reading.file!r}", error) from error
    with file:
        counted = _Counted(file, reading, count)
        reading.expansion.size = counted.seek(0, io.SEEK_END)
        counted.seek(0)
        yield cast(BinaryIO, counted)


CLOUDS = {"s3": "s3", "s3a": "s3", "gs": "gs", "gcs": "gs"}
"""By the scheme of a URI: the kind of store that it names."""


def remote(uri: str, access: Address | None = None) -> tuple[Any, str]:
    """Returns the file system of a URI, and the path in it; listings are not cached.  Raises InvalidInput,
    Unavailable.

    `access` is the address of the lake's store: its options, such as credentials, are also used for files in
    the same kind of store.  Without it, only this machine's own credentials are used.
    """
    scheme = uri.partition("://")[0]
    if scheme in CLOUDS:
        is_same = access is not None and CLOUDS.get(access.uri.partition("://")[0]) == CLOUDS[scheme]
        options = dict(access.options) if access is not None and is_same else {}
        for name in ("lock", "timeout"):  # of the lake alone
            options.pop(name, None)
        fs = open_filesystem(uri, options)
        return fs, fs._strip_protocol(uri)
    other: dict[str, Any] = {} if scheme == "memory" else {"use_listings_cache": False}
    if scheme in ("http", "https"):
        other["get_client"] = http_client
    opened: tuple[Any, str] = fsspec.url_to_fs(uri, **other)
    return opened


def _opened(path: str, access: Address | None) -> BinaryIO:
    if "://" not in path:
        return open(path, "rb")
    with waiting(path):
        fs, inside = remote(path, access)
        return cast(BinaryIO, fs.open(inside, "rb"))


def waiting(path: str) -> AbstractContextManager[object]:
    """Returns a context that fails if a file's store does not answer for too long."""
    return Waiting(of_sources(), path) if path.partition("://")[0] in CLOUDS else nullcontext()


class _Counted:
    """A file that counts the bytes read, and turns its failures into errors of the lake."""

    def __init__(self, file: BinaryIO, reading: Reading, count: float) -> None:
        self._file, self._reading, self._count = file, reading, count
        self.closed = False

    def _waiting(self) -> AbstractContextManager[object]:
        return waiting(self._reading.path or self._reading.file)

    def read(self, size: int = -1) -> bytes:
        if size < -1:  # from a damaged file; the store is well
            raise ValueError(f"a length of {size:,} bytes")
        try:
            with self._waiting():
                data = self._file.read(min(size, self._reading.expansion.size) if size > FIRST else size)
        except LakeError:
            raise
        except Exception as error:  # botocore's are no OSError
            raise Unavailable(f"file {self._reading.file!r}: reading failed: {error}") from error
        if self._count:
            self._reading.progress(self._reading.file, self._count * len(data))
        return data

    def readline(self, size: int = -1) -> bytes:
        try:
            with self._waiting():
                data = self._file.readline(size)
        except LakeError:
            raise
        except Exception as error:  # botocore's are no OSError
            raise Unavailable(f"file {self._reading.file!r}: reading failed: {error}") from error
        if self._count:
            self._reading.progress(self._reading.file, self._count * len(data))
        return data

    def seek(self, offset: int, whence: int = 0) -> int:
        try:
            with self._waiting():
                return self._file.seek(offset, whence)
        except LakeError:
            raise
        except Exception as error:  # seeking may read
            raise Unavailable(f"file {self._reading.file!r}: reading failed: {error}") from error

    def tell(self) -> int:
        return self._file.tell()

    def flush(self) -> None:
        """Does nothing, because the file is only read."""

    def close(self) -> None:
        """Does nothing, because the context that opened the file closes it."""

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return True


def _peek(file: BinaryIO) -> bytes:
    begin = file.read(16)
    file.seek(0)
    return begin


@contextmanager
def open_unpacked(reading: Reading, *, count: float = 1.0) -> Iterator[BinaryIO]:
    """Opens the file's unpacked content as a stream.  Raises NotFound, Unavailable, and InvalidInput for a damaged
    file."""
    with open_bytes(reading, count=count) as file:
        compression = compression_of(_peek(file))
        if not compression:
            yield file
            return
        yield cast(BinaryIO, _Unpacked(file, reading, compression))


class _Unpacked:
    """An unpacked stream, limited in length, whose errors name the file."""

    def __init__(self, file: BinaryIO, reading: Reading, compression: str) -> None:
        self._file, self._reading, self._compression = unpacked(file, compression), reading, compression
        self._length = 0

    def read(self, size: int = -1) -> bytes:
        with naming(self._reading.file, self._compression):
            data = self._file.read(size)
        return self._within(data)

    def readline(self, size: int = -1) -> bytes:
        with naming(self._reading.file, self._compression):
            data = self._file.readline(size)
        return self._within(data)

    def _within(self, data: bytes) -> bytes:
        self._length += len(data)
        if fault := self._reading.expansion.fault(self._length):
            self._reading.unreadable(0, fault)
        return data


@contextmanager
def open_text(reading: Reading, *, encoding: str = "", count: float = 1.0) -> Iterator[BinaryIO]:
    """Opens the file's content as UTF-8 text without a byte order mark.

    A byte order mark in the file shows its encoding; `encoding` is for files without one.  Raises what
    `open_unpacked` raises.
    """
    with open_unpacked(reading, count=count) as stream:
        begin = stream.read(4)
        mark, marked = next(((m, name) for m, name in _MARKS if begin.startswith(m)), (b"", ""))
        file = cast(BinaryIO, _Rest(begin[len(mark) :], stream))
        used = marked or encoding or "utf-8"
        if marked and marked != "utf-8":
            reading.tell(f"encoding {marked}, by its mark")
        if used in ("utf-8", "utf_8", "utf-8-sig"):
            yield file
        else:
            recoded = _Recoded(file, used, reading, marked=bool(marked))
            yield cast(BinaryIO, io.BufferedReader(recoded, 1 << 20))


class _Rest:
    """A stream that first gives the few bytes that were already read from the file."""

    def __init__(self, begin: bytes, file: BinaryIO) -> None:
        self._begin, self._file = begin, file

    def read(self, size: int = -1) -> bytes:
        begin, self._begin = self._begin, b""
        if not begin:
            return self._file.read(size)
        return begin + self._file.read(size if size < 0 else max(0, size - len(begin)))

    def readline(self, size: int = -1) -> bytes:
        begin, self._begin = self._begin, b""
        if not begin:
            return self._file.readline(size)
        line, newline, self._begin = begin.partition(b"\n")
        return line + newline if newline else line + self._file.readline(size)


class _Recoded(io.RawIOBase):
    """A stream that converts text of another encoding to UTF-8."""

    def __init__(self, file: BinaryIO, encoding: str, reading: Reading, *, marked: bool) -> None:
        self._file, self._encoding, self._reading, self._marked = file, encoding, reading, marked
        self._decoder = codecs.getincrementaldecoder(encoding)("strict")
        self._left = b""
        self._read = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        while not self._left:  # bounded by the file
            data = self._file.read(256 << 10)
            try:
                self._left = self._decoder.decode(data, final=not data).encode()
            except UnicodeError as error:
                where = f"bytes {self._read:,} to {self._read + len(data):,}"
                remedy = (
                    "the file is cut or damaged: its first bytes say that encoding"
                    if self._marked
                    else "say another csv.encoding"
                )
                raise InvalidInput(
                    f"{self._reading.file}: {where} are not all {self._encoding} ({error.args[-1]}); {remedy}"
                ) from error
            self._read += len(data)
            if not data:
                break
        part, self._left = self._left[: len(buffer)], self._left[len(buffer) :]
        buffer[: len(part)] = part
        return len(part)


@contextmanager
def open_seekable(reading: Reading, *, count: float = 1.0) -> Iterator[BinaryIO]:
    """Opens the file's content for reading in any order; a compressed file is unpacked into a temporary one.

    Raises NotFound, Unavailable, and InvalidInput if a compressed file is truncated or damaged.
    """
    with open_bytes(reading, count=count) as file:
        compression = compression_of(_peek(file))
        if not compression:
            yield file
            return
        with tempfile.TemporaryFile() as whole:
            shutil.copyfileobj(_Unpacked(file, reading, compression), whole, 1 << 20)
            whole.seek(0)
            yield cast(BinaryIO, whole)


def first_bytes(reading: Reading) -> bytes:
    """Returns the first bytes of the file's unpacked content.  Raises what `open_unpacked` raises."""
    with open_unpacked(reading, count=0) as file:
        return file.read(FIRST)


def last_bytes(reading: Reading, size: int) -> bytes:
    """Returns the last `size` bytes of the file's unpacked content, or all of a smaller one.  Raises what
    `open_seekable` raises."""
    with open_seekable(reading, count=0) as file:
        file.seek(max(0, file.seek(0, io.SEEK_END) - size))
        return file.read(size)


def is_stream(path: str) -> bool:
    """Whether the path can be read only once: standard input or a FIFO."""
    if path == STDIN:
        return True
    try:
        return stat.S_ISFIFO(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


@contextmanager
def kept_streams(files: list[str]) -> Iterator[dict[str, str]]:
    """Copies each file that can be read only once; yields the paths of the copies by file.  The copies are removed
    when the block ends.

    Raises Unavailable if a stream cannot be read or copied.
    """
    with ExitStack() as stack:
        copies: dict[str, str] = {}
        folder = ""
        for number, file in enumerate(files):
            if file in copies or not is_stream(file):
                continue
            folder = folder or stack.enter_context(tempfile.TemporaryDirectory(prefix="lake-"))
            copies[file] = os.path.join(folder, str(number))
            try:
                with open(copies[file], "wb") as copy:
                    if file == STDIN:
                        shutil.copyfileobj(sys.stdin.buffer, copy, 1 << 20)
                    else:
                        with open(file, "rb") as stream:
                            shutil.copyfileobj(stream, copy, 1 << 20)
            except OSError as error:
                raise Unavailable(f"file {file!r}: reading failed: {error}") from error
        yield copies


LONGEST_LINE = 64 << 20


def pieces(file: BinaryIO, reading: Reading, *, begin: bytes) -> Iterator[tuple[int, bytes]]:
    """Yields the rest of the file in pieces of `block_bytes`, each with the number of the line in which it begins,
    from 1.

    `begin`: the bytes that were already read from the file; the first piece begins with them.
    """
    line, piece = 1, begin
    while piece:  # bounded by the file
        yield line, piece
        line += count_of(piece, _LINE_END)
        piece = file.read(reading.block_bytes)


def line_blocks(file: BinaryIO, reading: Reading, *, begin: bytes = b"") -> Iterator[tuple[int, bytes]]:
    """Yields blocks of whole lines, about `block_bytes` each, with the number of their first line, from 1.

    `begin`: the bytes that were already read from the file.  Raises InvalidInput if a line is longer than
    LONGEST_LINE.
    """
    line = 1
    while True:  # bounded by the file
        block, begin = begin or file.read(reading.block_bytes), b""
        if block and not block.endswith(b"\n"):
            rest = file.readline(LONGEST_LINE)
            if len(rest) == LONGEST_LINE and not rest.endswith(b"\n"):
                number = line + block.count(b"\n")
                reading.unreadable(number, f"the line is longer than {LONGEST_LINE >> 20} MiB")
            block += rest
        if not block:
            return
        yield line, block
        line += count_of(block, _LINE_END)


_SCANNED = 256 << 10
"""How many bytes a scan takes at a time, so that they stay in the processor's caches."""

_LINE_END = ord("\n")


def count_of(text: bytes, byte: int) -> int:
    """Returns how often the byte occurs in the text; for a frequent byte, four times as fast as
    `bytes.count`."""
    data = np.frombuffer(text, np.uint8)
    return sum(
        int(np.count_nonzero(data[begin : begin + _SCANNED] == byte))
        for begin in range(0, len(data), _SCANNED)
    )
