"""Reads VARIANT, the binary form of Parquet, Spark and Iceberg for one value of any class, as values of the lake.

A variant is two byte strings: metadata, which has the names of fields, and the value.  `VariantReader` returns
values that `texts.typed_json.text_of` can write.  Source: Parquet's VariantEncoding.md, version 1.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import struct
import uuid
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import msgspec

from lake_core.keys.encoding import (
    FIRST_DAY,
    FIRST_SECOND,
    LAST_DAY,
    LAST_SECOND,
    NAIVE,
    TIME,
    ZONED,
    Instant,
)
from log_lake.texts.exact import exact_number

MAX_DEPTH = 32
"""The most levels of objects and arrays, as for any field (docs/limits.md)."""

_PRIMITIVE, _SHORT_STRING, _OBJECT = 0, 1, 2
_VERSION = 1
_EPOCH_DAY = dt.date(1970, 1, 1).toordinal()


class Unreadable(ValueError):
    """Raised if the variant is damaged, or the lake cannot hold its value; the message says which, in a few
    words."""


class VariantReader:
    """Reads values that share one metadata, which has the names of their fields.  Raises Unreadable."""

    def __init__(self, metadata: bytes) -> None:
        try:
            self._names = _names(metadata)
        except Unreadable:
            raise
        except (IndexError, ValueError) as error:
            raise Unreadable("a damaged VARIANT") from error

    def value(self, data: bytes) -> Any:
        """Returns the value: None, a class of `Value`, a number as JSON text, a dict or a list."""
        try:
            return self._value(memoryview(data), 0, 0)
        except Unreadable:
            raise
        except (IndexError, ValueError, struct.error) as error:
            raise Unreadable("a damaged VARIANT") from error

    def _value(self, data: memoryview, at: int, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise Unreadable(
                f"a VARIANT nested deeper than {MAX_DEPTH} objects and arrays within one another"
            )
        basic, header = data[at] & 3, data[at] >> 2
        if basic == _PRIMITIVE:
            return _primitive(header, data, at + 1)
        if basic == _SHORT_STRING:
            return str(_taken(data, at + 1, header), "utf-8")
        if basic == _OBJECT:
            return self._object(header, data, at + 1, depth)
        offsets, begin = _offsets(data, at + 1, header & 3, is_large=bool(header >> 2 & 1))
        return [self._value(data, begin + offset, depth + 1) for offset in offsets[:-1]]

    def _object(self, header: int, data: memoryview, at: int, depth: int) -> dict[str, Any]:
        id_size, is_large = (header >> 2 & 3) + 1, bool(header >> 4 & 1)
        count = _integer(data, at, 4 if is_large else 1)
        ids_at = at + (4 if is_large else 1)
        ids = [_integer(data, ids_at + id_size * number, id_size) for number in range(_count(count, data))]
        offsets, begin = _offsets(data, at, header & 3, is_large=is_large, between=id_size * count)
        record = {
            self._names[name]: self._value(data, begin + offset, depth + 1)
            for name, offset in zip(ids, offsets[:-1], strict=True)
        }
        if len(record) < count:
            raise Unreadable("a VARIANT that has a field twice")
        return record


def _names(metadata: bytes) -> list[str]:
    data = memoryview(metadata)
    if data[0] & 0x0F != _VERSION:
        raise Unreadable(f"a VARIANT of version {data[0] & 0x0F}, which is unknown")
    size = (data[0] >> 6) + 1
    count = _count(_integer(data, 1, size), data)
    ends = [_integer(data, 1 + size * (1 + number), size) for number in range(count + 1)]
    begin = 1 + size * (count + 2)
    return [str(_taken(data, begin + low, high - low), "utf-8") for low, high in pairwise(ends)]


def _offsets(
    data: memoryview, at: int, size_header: int, *, is_large: bool, between: int = 0
) -> tuple[list[int], int]:
    """Returns the offsets of the elements and of their end, and the position of offset 0.  `between` bytes stand
    before the offsets."""
    width, size = 4 if is_large else 1, size_header + 1
    count = _count(_integer(data, at, width), data)
    at += width + between
    return [_integer(data, at + size * number, size) for number in range(count + 1)], at + size * (count + 1)


def _count(count: int, data: memoryview) -> int:
    """Returns `count`, the number of elements.  Raises Unreadable if the data cannot hold so many: each takes at
    least one byte."""
    if count > len(data):
        raise ValueError("more elements than bytes")
    return count


def _taken(data: memoryview, at: int, size: int) -> memoryview:
    part = data[at : at + size]
    if size < 0 or len(part) < size:
        raise ValueError("the value ends early")
    return part


def _integer(data: memoryview, at: int, size: int) -> int:
    return int.from_bytes(_taken(data, at, size), "little")


def _signed(data: memoryview, at: int, size: int) -> int:
    return int.from_bytes(_taken(data, at, size), "little", signed=True)


def _primitive(kind: int, data: memoryview, at: int) -> Any:
    read = _PRIMITIVES.get(kind)
    if read is None:
        raise Unreadable(f"a VARIANT with a value of type {kind}, which is unknown")
    return read(data, at)


def _decimal(size: int) -> Callable[[memoryview, int], Any]:
    def read(data: memoryview, at: int) -> Any:
        unscaled, scale = _signed(data, at + 1, size), data[at]
        digits = tuple(int(digit) for digit in str(abs(unscaled)))
        return number(decimal.Decimal((int(unscaled < 0), digits, -scale)))

    return read


def number(value: decimal.Decimal) -> Any:
    """Returns the decimal as a plain JSON number if its digits read back unchanged, otherwise the decimal itself.

    Spark's `parse_json` makes decimals of all numbers with a point, so a decimal does not show the writer's
    class.
    """
    text = format(value, "f")
    plain = exact_number(text)
    is_exact = isinstance(plain, decimal.Decimal | int) or (
        math.isfinite(plain) and decimal.Decimal(repr(plain)) == value
    )
    return msgspec.Raw(text.encode()) if is_exact else value


def _time(tag: int, ticks: int) -> Callable[[memoryview, int], Any]:
    def read(data: memoryview, at: int) -> Any:
        seconds, rest = divmod(_signed(data, at, 8), ticks)
        return checked(Instant((tag, seconds, rest * (10**9 // ticks))))

    return read


def date_of(day: int) -> dt.date:
    """Returns the date this many days after 1970-01-01.  Raises Unreadable if the lake cannot hold that
    date."""
    if not FIRST_DAY <= day <= LAST_DAY:
        raise Unreadable("a date outside of the years 1 to 9999")
    return dt.date.fromordinal(day + _EPOCH_DAY)


def checked(value: Any) -> Any:
    """Returns the value unchanged.  Raises Unreadable for a time that the lake cannot hold."""
    if isinstance(value, Instant):
        tag, seconds, _ = value
        if tag == TIME and not 0 <= seconds < 86_400:
            raise Unreadable("a time outside of a day")
        if tag in (NAIVE, ZONED) and not FIRST_SECOND <= seconds <= LAST_SECOND:
            raise Unreadable("a timestamp outside of the years 1 to 9999")
    return value


def _sized(data: memoryview, at: int) -> memoryview:
    return _taken(data, at + 4, _integer(data, at, 4))


_PRIMITIVES: dict[int, Callable[[memoryview, int], Any]] = {
    0: lambda data, at: None,
    1: lambda data, at: True,
    2: lambda data, at: False,
    3: lambda data, at: _signed(data, at, 1),
    4: lambda data, at: _signed(data, at, 2),
    5: lambda data, at: _signed(data, at, 4),
    6: lambda data, at: _signed(data, at, 8),
    7: lambda data, at: struct.unpack_from("<d", data, at)[0],
    8: _decimal(4),
    9: _decimal(8),
    10: _decimal(16),
    11: lambda data, at: date_of(_signed(data, at, 4)),
    12: _time(ZONED, 10**6),
    13: _time(NAIVE, 10**6),
    14: lambda data, at: struct.unpack_from("<f", data, at)[0],
    15: lambda data, at: bytes(_sized(data, at)),
    16: lambda data, at: str(_sized(data, at), "utf-8"),
    17: _time(TIME, 10**6),
    18: _time(ZONED, 10**9),
    19: _time(NAIVE, 10**9),
    20: lambda data, at: str(uuid.UUID(bytes=bytes(_taken(data, at, 16)))),
}
"""For each primitive type, the function that reads a value at a position."""
