"""The container of an Avro file: its schema, and its blocks without their compression.

fastavro reads the values (`avro_values`).  But it needs another package for each codec, so the blocks are unpacked
here.  Source: the specification of Avro 1.12, "Object Container Files".
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
"""How many bytes a stream is asked for at a time: Arrow and Python allocate as much as they are asked for."""


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

    def blocks(self, expansion: Expansion) -> Iterator[tuple[int, bytes]]:
        """Yields for each block the number of its values, and their bytes.

        Each block is unpacked whole.  Raises TooLarge if the blocks have more content than `expansion` allows, and
        ValueError and exceptions of the decompressors if a block is damaged.
        """
        content = 0
        while (count := _read_long(self.file)) is not None:  # bounded by the file
            size = _read_long(self.file)
            if count < 0 or size is None or size < 0:
                raise ValueError("its number of values, or its size, is damaged")
            data = _exactly(self.file, size)
            _check(content + _SAID.get(self.codec, len)(data), expansion)
            block = _CODECS[self.codec](data, expansion.allowed - content)
            content += max(len(block), count * _RECORD)
            _check(content, expansion)
            if _exactly(self.file, len(self.sync)) != self.sync:
                raise ValueError("it does not end with the file's mark")
            yield count, block

    def uncompressed(self, expansion: Expansion) -> bytes:
        """Returns the same values as an Avro file without compression.  Raises as `blocks` does."""
        from fastavro import schemaless_writer

        header = io.BytesIO()
        meta = {"avro.schema": json.dumps(self.schema).encode(), "avro.codec": b"null"}
        schemaless_writer(header, _HEADER, {"meta": meta, "sync": self.sync})
        parts = [_MAGIC + header.getvalue()]
        for count, block in self.blocks(expansion):
            parts.append(_long(count) + _long(len(block)) + block + self.sync)
        return b"".join(parts)


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


def _check(content: int, expansion: Expansion) -> None:
    if fault := expansion.fault(content):
        raise TooLarge(fault)


def _inflated(data: bytes, most: int) -> bytes:
    decompressor = zlib.decompressobj(-15)
    plain = decompressor.decompress(data, most + 1)
    if len(plain) <= most and not decompressor.eof:
        raise ValueError("its compressed data is cut")
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
                raise ValueError("its compressed data is cut")
            data = stream.unused_data
        return plain

    return unpacked


def _of_snappy(data: bytes, _: int) -> bytes:
    packed, checksum = data[:-_CHECKSUM], data[-_CHECKSUM:]
    plain = _of_arrow("snappy", packed, _SAID["snappy"](packed))
    if zlib.crc32(plain) != int.from_bytes(checksum, "big"):
        raise ValueError("its checksum is another one")
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
"""For each codec whose blocks state the size of their content: a function that reads this size, in bytes."""

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
    """Returns so many bytes of the file.  Raises ValueError if there are fewer; the damaged size of a block may be
    any number."""
    data = bytearray()
    while len(data) < size:  # bounded by the file
        more = file.read(min(size - len(data), _PART))
        if not more:
            raise ValueError("the file ends within it")
        data += more
    return bytes(data)


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
        if byte[0] < 0x80 and value < 1 << 64:
            return value
        shift += 7
    raise ValueError("a number has more than 64 bits")


def _read_long(file: BinaryIO | io.BytesIO) -> int | None:
    value = _varint(file)
    return None if value is None else (value >> 1) ^ -(value & 1)


def _long(value: int) -> bytes:
    """Returns a number that is not negative in Avro's form."""
    return _varint_of(value << 1)


def _varint_of(value: int) -> bytes:
    """Returns an unsigned number as seven bits per byte, the lowest first."""
    data = bytearray()
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
