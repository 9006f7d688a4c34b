"""The container of an Avro file: its schema, and its blocks without their compression.

fastavro reads the values.  But it needs another package for each codec, and converts logical types to Python's
types, which hold fewer values than Avro's.  So it gets a rewritten file: with the caller's schema, and without
compression. Source: the specification of Avro 1.12, "Object Container Files".
"""

from __future__ import annotations

import bz2
import io
import json
import lzma
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

import pyarrow as pa

from log_lake.loading.expansion import Expansion

_HEADER = {
    "type": "record",
    "name": "header",
    "fields": [
        {"name": "meta", "type": {"type": "map", "values": "bytes"}},
        {"name": "sync", "type": {"type": "fixed", "name": "sync", "size": 16}},
    ],
}
_MAGIC = b"Obj\x01"
_RECORD = 64
"""How many bytes a decoded record counts for, at least; in the file it may take none, because nulls take
none."""
_CHECKSUM = 4
"""Bytes of the CRC-32 after a block of Snappy."""
_PART = 1 << 20
"""How many bytes a stream is asked for at a time. Arrow allocates as much memory as it is asked for."""


class TooLarge(ValueError):
    """Raised if the content has more bytes than the file's size allows; the message says so."""


@dataclass(frozen=True)
class AvroFile:
    """An Avro file whose header was read; its position is the first block."""

    schema: Any
    """The schema of the values, as JSON."""
    codec: str
    metadata: Mapping[str, bytes]
    """The writer's metadata of the file, by name."""
    sync: bytes
    file: BinaryIO

    def with_schema(self, schema: Any, expansion: Expansion) -> BinaryIO:
        """Returns the same values as an uncompressed Avro file with another schema.  By both schemas, the values
        must have the same bytes.

        Each block is unpacked whole.  Reading raises TooLarge if the blocks have more content than `expansion`
        allows.
        """
        return cast(BinaryIO, io.BufferedReader(_Recoded(self._parts(schema, expansion)), 1 << 18))

    def _parts(self, schema: Any, expansion: Expansion) -> Iterator[bytes]:
        from fastavro import schemaless_writer

        header = io.BytesIO()
        meta = {"avro.schema": json.dumps(schema).encode(), "avro.codec": b"null"}
        schemaless_writer(header, _HEADER, {"meta": meta, "sync": self.sync})
        yield _MAGIC + header.getvalue()
        content = 0
        while (count := _read_long(self.file)) is not None:  # bounded by the file
            size = _read_long(self.file)
            if count < 0 or size is None or size < 0:
                raise ValueError("a block's number of values, or its size, is damaged")
            data = _exactly(self.file, size)
            _check(content + _SAID.get(self.codec, len)(data), expansion)
            block = _CODECS[self.codec](data, expansion.allowed - content)
            content += max(len(block), count * _RECORD)
            _check(content, expansion)
            if _exactly(self.file, len(self.sync)) != self.sync:
                raise ValueError("a block does not end with the file's mark")
            yield _long(count) + _long(len(block)) + block + self.sync


def open_container(file: BinaryIO) -> AvroFile:
    """Reads the header of an open Avro file, and returns the file with it.  Raises ValueError and exceptions of
    fastavro if it is damaged."""
    from fastavro import schemaless_reader

    if _exactly(file, len(_MAGIC)) != _MAGIC:  # what follows would be taken for sizes
        raise ValueError("it does not begin as Avro files do")
    header = cast(dict[str, Any], schemaless_reader(file, _HEADER, None))
    codec = header["meta"].get("avro.codec", b"null").decode()
    if codec not in _CODECS:
        raise ValueError(f"codec {codec!r} is unknown; write it with one of {', '.join(_CODECS)}")
    return AvroFile(json.loads(header["meta"]["avro.schema"]), codec, header["meta"], header["sync"], file)


class _Recoded(io.RawIOBase):
    """The parts of a file, joined to one stream."""

    def __init__(self, parts: Iterator[bytes]) -> None:
        self._parts, self._part, self._at = parts, b"", 0
        self._told = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        while self._at == len(self._part):  # bounded by the file
            part = next(self._parts, None)
            if part is None:
                return 0
            self._part, self._at = part, 0
        data = self._part[self._at : self._at + len(buffer)]
        buffer[: len(data)] = data
        self._at += len(data)
        self._told += len(data)
        return len(data)

    def tell(self) -> int:
        return self._told


def _check(content: int, expansion: Expansion) -> None:
    if fault := expansion.fault(content):
        raise TooLarge(fault)


def _inflated(data: bytes, most: int) -> bytes:
    decompressor = zlib.decompressobj(-15)
    plain = decompressor.decompress(data, most + 1)
    if len(plain) <= most and not decompressor.eof:
        raise ValueError("a block's compressed data is cut")
    return plain


def _streams(decompressor: Callable[[], Any]) -> Callable[[bytes, int], bytes]:
    """Makes a function that unpacks streams which follow one another, as Python's `bz2` and `lzma` do; it ignores
    what follows the last one."""

    def unpacked(data: bytes, most: int) -> bytes:
        plain = b""
        while data:  # each round takes a stream
            stream = decompressor()
            try:
                plain += stream.decompress(data, most + 1 - len(plain))
            except (OSError, lzma.LZMAError):
                if not plain:
                    raise
                break
            if len(plain) > most:
                break
            if not stream.eof:
                raise ValueError("a block's compressed data is cut")
            data = stream.unused_data
        return plain

    return unpacked


def _of_snappy(data: bytes, _: int) -> bytes:
    packed, checksum = data[:-_CHECKSUM], data[-_CHECKSUM:]
    plain = _of_arrow("snappy", packed, _SAID["snappy"](packed))
    if zlib.crc32(plain) != int.from_bytes(checksum, "big"):
        raise ValueError("a block's checksum is another one")
    return plain


def _of_zstandard(data: bytes, most: int) -> bytes:
    plain = bytearray()
    with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
        while len(plain) <= most and (part := stream.read(_PART)):  # bounded by `most`
            plain += part
    return bytes(plain)


def _of_lz4(data: bytes, _: int) -> bytes:
    return _of_arrow("lz4_raw", data[4:], _SAID["lz4"](data))


def _of_arrow(codec: str, data: bytes, size: int) -> bytes:
    return cast(bytes, pa.Codec(codec).decompress(data, decompressed_size=size, asbytes=True))


_SAID: dict[str, Callable[[bytes], int]] = {
    "snappy": lambda data: _varint(io.BytesIO(data)) or 0,
    "lz4": lambda data: int.from_bytes(data[:4], "little"),
}
"""For each codec that states it in a block: a function that reads how many bytes the block's content has."""

_CODECS: dict[str, Callable[[bytes, int], bytes]] = {
    "null": lambda data, _: data,
    "deflate": _inflated,
    "snappy": _of_snappy,
    "zstandard": _of_zstandard,
    "bzip2": _streams(bz2.BZ2Decompressor),
    "xz": _streams(lzma.LZMADecompressor),
    "lz4": _of_lz4,
}
"""For each codec: a function that unpacks a block, and stops soon after the content exceeds the given number of
bytes."""


def _exactly(file: BinaryIO, size: int) -> bytes:
    data = file.read(size)
    while len(data) < size:  # bounded by the file
        more = file.read(size - len(data))
        if not more:
            raise ValueError("the file ends within a block")  # fastavro takes EOFError for the end
        data += more
    return data


def _varint(file: BinaryIO | io.BytesIO) -> int | None:
    """Reads an unsigned number of seven bits per byte; None at the end of the file."""
    value = shift = 0
    while shift < 70:
        byte = file.read(1)
        if not byte:
            if shift:
                raise ValueError("the file ends within a number")
            return None
        value |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            return value
        shift += 7
    raise ValueError("a number has more than 64 bits")


def _read_long(file: BinaryIO | io.BytesIO) -> int | None:
    value = _varint(file)
    return None if value is None else (value >> 1) ^ -(value & 1)


def _long(value: int) -> bytes:
    """Returns a number that is not negative in Avro's form."""
    value, data = value << 1, bytearray()
    while value > 0x7F:  # bounded by the number's bits
        data.append(value & 0x7F | 0x80)
        value >>= 7
    data.append(value)
    return bytes(data)


def read_big_decimal(data: bytes) -> tuple[bytes, int]:
    """Returns the unscaled bytes and the scale of a `big-decimal`.  Raises ValueError if `data` is damaged."""
    file = io.BytesIO(data)
    size = _read_long(file)
    unscaled = file.read(max(0, size or 0))
    scale = _read_long(file)
    if size is None or scale is None or len(unscaled) != size:
        raise ValueError("a big-decimal is damaged")
    return unscaled, scale
