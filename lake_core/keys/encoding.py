"""Order-preserving encoding of key values: comparing the bytes compares the keys.

A value is encoded as a tag byte and a payload whose end can be found. So the encoding of a tuple is that of its
parts joined, a prefix of fields is a prefix of bytes, and every encoding can be decoded for display:

    00            null (first in either direction)
    02 b          boolean
    03 d8 r2      number: the double at or below it (order-preserving bits), then the difference, 2 bytes;
                  so all integers of 64 bits and all doubles compare with each other exactly; NaN is last
    04 u48        decimal: value * 10^38 as an offset integer of 48 bytes
    05 x.. 00 00  bytes, 00 escaped as 00 ff
    06 x.. 00 00  string (UTF-8), escaped likewise
    07 d4         date: days since 1970, offset
    08 s8 n4      timestamp without zone: seconds since 1970 (offset), nanoseconds
    09 s8 n4      timestamp with zone: an instant, the same in UTC
    0a s8 n4      time of day, and durations (0b)

Descending fields have their payload inverted, not the tag.  The escape of strings follows FoundationDB's tuple
layer.  Called by `objects` (bounds, statistics), `reading` (clipping, merging) and `texts.keytext` (keys that a
user writes).
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import struct
from typing import Any

import pyarrow as pa

from lake_core.errors import InvalidInput
from lake_core.keys.spec import PoolKey
from lake_core.phrases import counted

AFTER = b"\xff"
"""A key prefix with this byte appended is above every key with that prefix."""

_TAGS = [bytes((tag,)) for tag in range(256)]
_INVERT = bytes(255 - i for i in range(256))
_DECIMAL_BYTES = 48
_DECIMAL_OFFSET = 1 << (8 * _DECIMAL_BYTES - 1)
FRACTION_DIGITS, DECIMAL_DIGITS = 38, 76
"""How many digits of a decimal an encoded key keeps: after the point, and in all."""
TICKS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
"""Ticks per second of each of Arrow's units of time."""
_EPOCH_DAY = dt.date(1970, 1, 1).toordinal()
FIRST_DAY, LAST_DAY = -719_162, 2_932_896
"""Days since 1970 of the years 1 to 9999 (inclusive), which text, Python and Spark can write."""
FIRST_SECOND, LAST_SECOND = FIRST_DAY * 86_400, (LAST_DAY + 1) * 86_400 - 1
"""Seconds since 1970 of the same years (inclusive)."""
_DOUBLE, _UNSIGNED, _NUMBER = struct.Struct(">d"), struct.Struct(">Q"), struct.Struct(">QH")

Value = Any
"""A key value in Python: None, bool, int, float, Decimal, bytes, str, date, or an `Instant`."""


class Instant(tuple[int, int, int]):
    """A timestamp, time of day or duration as a value of a key: its tag byte, its seconds, and its nanoseconds."""

    __slots__ = ()


NAIVE, ZONED, TIME, DURATION = 0x08, 0x09, 0x0A, 0x0B
"""The tags of an `Instant`: a timestamp without zone, one with zone, a time of day, a duration."""


def _number(value: int | float) -> bytes:
    below, rest = float(value), 0
    if isinstance(value, int):
        rest = value - int(below)
        if rest < 0:
            below = math.nextafter(below, -math.inf)
            rest = value - int(below)
    elif math.isnan(value):
        return b"\xff" * 8 + b"\0\0"
    (bits,) = _UNSIGNED.unpack(_DOUBLE.pack(below + 0.0))  # + 0.0 makes -0.0 equal 0.0
    return _NUMBER.pack(bits ^ (0xFFFFFFFFFFFFFFFF if bits >> 63 else 1 << 63), rest)


def _escaped(raw: bytes) -> bytes:
    return raw.replace(b"\0", b"\0\xff") + b"\0\0"


def encode_value(value: Value, *, descending: bool = False) -> bytes:
    """Returns the bytes of one value.  Raises InvalidInput for a type that cannot be a key."""
    tag, payload = _tag_and_payload(value)
    return _TAGS[tag] + (payload.translate(_INVERT) if descending else payload)


def _tag_and_payload(value: Value) -> tuple[int, bytes]:
    if value is None:
        return 0x00, b""
    if isinstance(value, bool):
        return 0x02, bytes((value,))
    if isinstance(value, int):
        if not -(2**63) <= value < 2**64:
            raise InvalidInput(
                f"key value {value}: an integer must be at least -2^63 and less than 2^64; use a decimal"
            )
        return 0x03, _number(value)
    if isinstance(value, float):
        return 0x03, _number(value)
    if isinstance(value, decimal.Decimal):
        if not value.is_finite() or value.adjusted() >= DECIMAL_DIGITS:
            raise InvalidInput(
                f"key value {value}: a decimal must be finite, with at most {DECIMAL_DIGITS} digits "
                "before the point"
            )
        with decimal.localcontext(prec=120):
            scaled = int(value.scaleb(FRACTION_DIGITS).to_integral_value())
        return 0x04, (scaled + _DECIMAL_OFFSET).to_bytes(_DECIMAL_BYTES, "big")
    if isinstance(value, bytes):
        return 0x05, _escaped(value)
    if isinstance(value, str):
        try:
            return 0x06, _escaped(value.encode())
        except UnicodeEncodeError as error:
            raise InvalidInput(f"key value {value!r} is not UTF-8; write it in UTF-8") from error
    if isinstance(value, Instant):
        tag, seconds, nanos = value
        return tag, struct.pack(">QI", seconds + 2**63, nanos)
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return 0x07, struct.pack(">I", value.toordinal() - _EPOCH_DAY + 2**31)
    raise InvalidInput(
        f"key value {value!r} is a {type(value).__name__}; use a number, a text, bytes, a boolean, a date or a time"
    )


def encode_key(values: tuple[Value, ...] | list[Value], key: PoolKey) -> bytes:
    """Returns the bytes of a key, or of the values of its first fields."""
    if len(values) > len(key.fields):
        raise InvalidInput(f"key {list(values)!r} has {counted(len(values), 'value')}; {key.size}")
    return b"".join(
        encode_value(value, descending=field.descending)
        for value, field in zip(values, key.fields, strict=False)
    )


def from_scalar(scalar: pa.Scalar) -> Value:
    """Returns the Python value of an Arrow scalar, in the form that `encode_value` accepts; exact for
    nanoseconds."""
    clock = _clock(scalar.type)
    return scalar.as_py() if clock is None or not scalar.is_valid else _instant(scalar.value, *clock)


def from_array(array: pa.Array | pa.ChunkedArray) -> list[Value]:
    """Returns what `from_scalar` returns for each value of a column, but faster: 64 integers take 2 µs instead of
    46."""
    clock = _clock(array.type)
    if clock is None:
        return list(array.to_pylist())
    ticks = array.cast(pa.int32() if array.type.bit_width == 32 else pa.int64()).to_pylist()
    return [None if tick is None else _instant(tick, *clock) for tick in ticks]


def _clock(kind: pa.DataType) -> tuple[int, int] | None:
    """Returns the tag of a timestamp, time of day or duration, and how many ticks its second has; None for other
    types."""
    if pa.types.is_timestamp(kind):
        return 0x09 if kind.tz else 0x08, TICKS[kind.unit]
    if pa.types.is_time(kind):
        return 0x0A, TICKS[kind.unit]
    return (0x0B, TICKS[kind.unit]) if pa.types.is_duration(kind) else None


def _instant(ticks: int, tag: int, in_second: int) -> Instant:
    seconds, part = divmod(ticks, in_second)
    return Instant((tag, seconds, part * (10**9 // in_second)))


def key_class(kind: pa.DataType) -> str:
    """Returns the class of a type.  Values of one class compare; a key field has the same class in all objects
    of a pool.  Raises InvalidInput if the type has no order (records, lists, maps)."""
    class_name = _CLASSES.get(kind.id)
    if class_name is None:
        raise InvalidInput(f"type {kind} has no order; use numbers, texts, bytes, booleans, dates or times")
    return f"{class_name} with zone" if class_name == "timestamp" and kind.tz else class_name


_CLASSES = {
    kind.id: name
    for name, kinds in {
        "null": [pa.null()],
        "boolean": [pa.bool_()],
        "number": [
            *(
                pa.int8(),
                pa.int16(),
                pa.int32(),
                pa.int64(),
                pa.uint8(),
                pa.uint16(),
                pa.uint32(),
                pa.uint64(),
            ),
            *(pa.float16(), pa.float32(), pa.float64()),
        ],
        "decimal": [pa.decimal32(1), pa.decimal64(1), pa.decimal128(1), pa.decimal256(1)],
        "string": [pa.string(), pa.large_string()],
        "bytes": [pa.binary(), pa.large_binary(), pa.binary(1)],
        "date": [pa.date32(), pa.date64()],
        "timestamp": [pa.timestamp("s")],
        "time": [pa.time32("s"), pa.time64("us")],
        "duration": [pa.duration("s")],
    }.items()
    for kind in kinds
}
"""The class of each Arrow type, by the type's id; a table, because it is read for each field of each object."""


_CLASS_OF_TAG = {
    0x00: "null",
    0x02: "boolean",
    0x03: "number",
    0x04: "decimal",
    0x05: "bytes",
    0x06: "string",
    0x07: "date",
    0x08: "timestamp",
    0x09: "timestamp with zone",
    0x0A: "time",
    0x0B: "duration",
}


def class_of(value: Value) -> str:
    """Returns the class of a key value, as `key_class` names it.  Raises InvalidInput if a key cannot have the
    value."""
    return _CLASS_OF_TAG[_tag_and_payload(value)[0]]


def decode_key(data: bytes, key: PoolKey) -> tuple[Value, ...]:
    """Returns the values of an encoded key or key prefix, for display.  Ignores the byte that marks an open end
    after a prefix."""
    values: list[Value] = []
    at = 0
    for field in key.fields:
        if at >= len(data) or data[at] > 0x0B:
            break
        try:
            value, at = _decode_value(data, at, descending=field.descending)
        except (IndexError, ValueError, OverflowError, struct.error, decimal.InvalidOperation):
            break  # a bound that was cut, or that is none
        values.append(value)
    return tuple(values)


def decode_value(data: bytes) -> Value:
    """Returns the value that exactly these bytes encode, in ascending encoding.  Raises InvalidInput if they are
    not a valid encoding."""
    if data[:1] and data[0] in _CLASS_OF_TAG:
        try:
            value, _ = _decode_value(data, 0, descending=False)
            if encode_value(value) == data and not (isinstance(value, Instant) and value[2] >= 10**9):
                return value
        except (IndexError, ValueError, OverflowError, struct.error, decimal.InvalidOperation):
            pass
    raise InvalidInput(f"{data[:40].hex()}: not the encoding of a value")


def _decode_value(data: bytes, at: int, *, descending: bool) -> tuple[Value, int]:
    tag = data[at]
    at += 1
    plain = data[at:].translate(_INVERT) if descending else data[at:]
    if tag == 0x00:
        return None, at
    if tag == 0x02:
        return plain[0] == 1, at + 1
    if tag == 0x03:
        return _decode_number(plain), at + 10
    if tag == 0x04:
        scaled = int.from_bytes(plain[:_DECIMAL_BYTES], "big") - _DECIMAL_OFFSET
        with decimal.localcontext(prec=120):
            return decimal.Decimal(scaled).scaleb(-FRACTION_DIGITS).normalize(), at + _DECIMAL_BYTES
    if tag in (0x05, 0x06):
        raw, length = _unescape(plain)
        return (raw.decode(errors="replace") if tag == 0x06 else raw), at + length
    if tag == 0x07:
        return dt.date.fromordinal(struct.unpack(">I", plain[:4])[0] - 2**31 + _EPOCH_DAY), at + 4
    seconds, nanos = struct.unpack(">QI", plain[:12])
    return Instant((tag, seconds - 2**63, nanos)), at + 12


def _decode_number(plain: bytes) -> int | float:
    if plain[:8] == b"\xff" * 8:
        return math.nan
    (bits,) = struct.unpack(">Q", plain[:8])
    bits ^= (1 << 63) if bits >> 63 else 0xFFFFFFFFFFFFFFFF
    (value,) = struct.unpack(">d", struct.pack(">Q", bits))
    (rest,) = struct.unpack(">H", plain[8:10])
    if not math.isfinite(value) or value != int(value):
        return value
    whole = int(value) + rest
    return whole if -(2**63) <= whole < 2**64 else value


def _unescape(plain: bytes) -> tuple[bytes, int]:
    end = 0
    while True:  # bounded by the length of the bytes
        end = plain.find(b"\0", end)
        if end < 0:
            return plain.replace(b"\0\xff", b"\0"), len(plain)  # a truncated bound, still worth showing
        if plain[end + 1 : end + 2] != b"\xff":
            return plain[:end].replace(b"\0\xff", b"\0"), end + 2
        end += 2
