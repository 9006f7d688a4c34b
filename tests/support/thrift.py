"""Decodes Thrift's compact protocol, as far as Parquet uses it, to plain values, and encodes them again.

A struct becomes a dictionary from (number of the field, type) to its value, a list becomes a `Values`, which
knows the type of its items. So any part can be changed and encoded again.
"""

from __future__ import annotations

import struct
from typing import Any

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)

_MASK = 2**64 - 1


class Values(list[Any]):
    """A list of Thrift; all items have one type."""

    kind: int = STRUCT


class _Reader:
    def __init__(self, data: bytes, at: int) -> None:
        self.data, self.at = data, at

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def varint(self) -> int:
        result = shift = 0
        while True:
            byte = self.byte()
            result |= (byte & 0x7F) << shift
            if byte < 0x80:
                return result
            shift += 7

    def integer(self) -> int:
        raw = self.varint()
        return (raw >> 1) ^ -(raw & 1)

    def take(self, count: int) -> bytes:
        self.at += count
        return self.data[self.at - count : self.at]

    def value(self, kind: int) -> Any:
        if kind in (TRUE, FALSE):
            return self.byte() == TRUE
        if kind == BYTE:
            return self.byte()
        if kind in (I16, I32, I64):
            return self.integer()
        if kind == DOUBLE:
            return struct.unpack("<d", self.take(8))[0]
        if kind == BINARY:
            return self.take(self.varint())
        if kind in (LIST, SET):
            head = self.byte()
            count = head >> 4 if head >> 4 < 15 else self.varint()
            values = Values()
            values.kind = head & 15
            values.extend(self.value(values.kind) for _ in range(count))
            return values
        if kind == STRUCT:
            return self.struct()
        raise ValueError(f"Parquet has no values of the type {kind}")

    def struct(self) -> dict[tuple[int, int], Any]:
        fields: dict[tuple[int, int], Any] = {}
        number = 0
        while head := self.byte():
            kind = head & 15
            number = number + (head >> 4) if head >> 4 else self.integer()
            if kind in (TRUE, FALSE):
                fields[number, TRUE] = kind == TRUE
            else:
                fields[number, kind] = self.value(kind)
        return fields


def decoded(data: bytes, at: int = 0) -> tuple[dict[tuple[int, int], Any], int]:
    """Decodes the struct that begins at a byte. Returns it, and the position of its end."""
    reader = _Reader(data, at)
    return reader.struct(), reader.at


def encoded(fields: dict[tuple[int, int], Any]) -> bytes:
    """Returns the bytes of a struct."""
    parts: list[bytes] = []
    _struct(fields, parts)
    return b"".join(parts)


def footer_of(data: bytes) -> tuple[dict[tuple[int, int], Any], int]:
    """Returns the footer of a Parquet file, and the position at which it begins."""
    begin = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    return decoded(data, begin)[0], begin


def with_footer(before: bytes, fields: dict[tuple[int, int], Any]) -> bytes:
    """Makes a Parquet file of the bytes before its footer, and the footer."""
    footer = encoded(fields)
    return before + footer + struct.pack("<I", len(footer)) + b"PAR1"


def _varint(number: int) -> bytes:
    number &= _MASK
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)


def _integer(number: int) -> bytes:
    number = (number + 2**63) % 2**64 - 2**63
    return _varint((number << 1) ^ (number >> 63))


def _value(kind: int, value: Any, parts: list[bytes]) -> None:
    if kind in (TRUE, FALSE):
        parts.append(bytes((TRUE if value else FALSE,)))
    elif kind == BYTE:
        parts.append(bytes((int(value) & 0xFF,)))
    elif kind in (I16, I32, I64):
        parts.append(_integer(int(value)))
    elif kind == DOUBLE:
        parts.append(struct.pack("<d", float(value)))
    elif kind == BINARY:
        data = value.encode() if isinstance(value, str) else bytes(value)
        parts += (_varint(len(data)), data)
    elif kind in (LIST, SET):
        count, of = len(value), getattr(value, "kind", STRUCT)
        parts.append(
            bytes(((count if count < 15 else 15) << 4 | of,)) + (_varint(count) if count >= 15 else b"")
        )
        for item in value:
            _value(of, item, parts)
    else:
        _struct(value, parts)


def _struct(fields: dict[tuple[int, int], Any], parts: list[bytes]) -> None:
    before = 0
    for (number, kind), value in sorted(fields.items()):
        told = (TRUE if value else FALSE) if kind == TRUE else kind
        ahead = number - before
        head = bytes((ahead << 4 | told,)) if 0 < ahead < 16 else bytes((told,)) + _integer(number)
        parts.append(head)
        if kind != TRUE:
            _value(kind, value, parts)
        before = number
    parts.append(b"\0")
