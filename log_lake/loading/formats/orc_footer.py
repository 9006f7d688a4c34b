"""Finds the calendar of an ORC file, which neither Arrow nor pyorc reports.

The footer is a Protobuf message, compressed in chunks; field numbers are those of ORC's specification.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO

import lz4.block
import pyarrow as pa

_WRITER, _CALENDAR = 9, 11
_JAVA = 0
_COMPRESSION = 2
_CODECS = ("NONE", "ZLIB", "SNAPPY", "LZO", "LZ4", "ZSTD", "BROTLI")
_UNKNOWN, _JULIAN = 0, 1


class _UnknownCodec(Exception):
    """The footer is compressed in a way that only Arrow knows, such as LZO."""


def has_hybrid_calendar(file: BinaryIO, orc: Any) -> bool | None:
    """Whether dates and times of an ORC file, which Arrow has opened as `orc`, have the hybrid calendar.

    Returns None if no package here can unpack the footer.  A file of the Java writer whose footer names no
    calendar has the hybrid one, as all files once had.  Raises ValueError, or what a decompressor raises, if
    the footer is damaged.
    """
    end = orc.file_length - 1 - orc.file_postscript_length
    file.seek(end - orc.file_footer_length)
    footer, codec = file.read(orc.file_footer_length), codec_of(file, orc)
    try:
        fields: dict[int, Any] = dict(_fields(_unpacked(footer, codec, orc.compression_size)))
    except _UnknownCodec:
        return None
    calendar = fields.get(_CALENDAR, _UNKNOWN)
    return bool(calendar == _JULIAN or (calendar == _UNKNOWN and fields.get(_WRITER, _JAVA) == _JAVA))


def codec_of(file: BinaryIO, orc: Any) -> str:
    """Returns the compression that an ORC file's postscript states, by its name in the specification.  Arrow
    cannot name LZO.

    Raises ValueError if the postscript is damaged.
    """
    file.seek(orc.file_length - 1 - orc.file_postscript_length)
    number = dict(_fields(file.read(orc.file_postscript_length))).get(_COMPRESSION, 0)
    return _CODECS[number] if number in range(len(_CODECS)) else f"number {number}"


def _fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """Numbers and values of the fields of a Protobuf message.  Raises ValueError if it is damaged."""
    at = 0
    while at < len(message):  # each round takes bytes
        tag, at = _varint(message, at)
        match tag & 7:
            case 0:
                value, at = _varint(message, at)
                yield tag >> 3, value
            case 2:
                size, at = _varint(message, at)
                yield tag >> 3, message[at : at + size]
                at += size
            case 1 | 5 as kind:
                at += 8 if kind == 1 else 4
            case _:
                raise ValueError("a damaged footer")


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(message):
            break
        byte = message[at]
        value, at = value | (byte & 0x7F) << shift, at + 1
        if byte < 0x80:
            return value, at
    raise ValueError("a damaged footer")


def _unpacked(data: bytes, codec: str, most: int) -> bytes:
    """Returns the content of a compressed section: chunks, each after three bytes with its length and kind."""
    if codec == "NONE":
        return data
    parts, at = [], 0
    while at < len(data):  # each round takes bytes
        head = int.from_bytes(data[at : at + 3], "little")
        chunk = data[at + 3 : at + 3 + (head >> 1)]
        at += 3 + (head >> 1)
        parts.append(chunk if head & 1 else _decompressed(chunk, codec, most))
    return b"".join(parts)


def _decompressed(chunk: bytes, codec: str, most: int) -> bytes:
    match codec:
        case "ZLIB":
            return zlib.decompress(chunk, -15)
        case "LZ4":
            return bytes(lz4.block.decompress(chunk, uncompressed_size=most))
        case "SNAPPY":
            size, _ = _varint(chunk, 0)
            return bytes(pa.decompress(chunk, decompressed_size=size, codec="snappy", asbytes=True))
        case "ZSTD" | "BROTLI":
            return bytes(pa.CompressedInputStream(pa.BufferReader(chunk), codec.lower()).read())
    raise _UnknownCodec(codec)
