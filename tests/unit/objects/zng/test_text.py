"""Readable text of values: what the original program prints for the same bytes."""

from __future__ import annotations

import struct

import pytest

from lake_core.errors import Corrupt
from log_lake.zng.text import value_text
from log_lake.zng.type_values import type_value
from log_lake.zng.types import (
    BSTRING,
    DURATION,
    ERROR,
    FLOAT32,
    FLOAT64,
    INT32,
    INT64,
    IP,
    NET,
    STRING,
    TIME,
    TYPE,
    UINT16,
    Array,
    Enum,
    Map,
    Named,
    Record,
    Set,
    Type,
    Union,
)
from log_lake.zng.wire import container, primitive, signed

PORT = Named("port", UINT16)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0."),
        (-1.0, "-1."),
        (1.5, "1.5"),
        (123456.5, "123456.5"),
        (1234567.5, "1.2345675e+06"),
        (1e19, "1e+19"),
        (1e18, "1000000000000000000."),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (-2.5e-7, "-2.5e-07"),
        (0.1, "0.1"),
        (float("inf"), "+Inf"),
        (float("-inf"), "-Inf"),
        (float("nan"), "NaN"),
    ],
)
def test_a_double_is_shown_as_zng_writes_it(number: float, text: str) -> None:
    assert value_text(FLOAT64, struct.pack("<d", number)) == text


def test_a_narrow_float_has_the_digits_that_it_needs() -> None:
    assert value_text(FLOAT32, struct.pack("<f", 0.1)) == "0.1(float32)"


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "0s"),
        (1, "1ns"),
        (1_500, "1.5us"),
        (2_000_000, "2ms"),
        (1_000_000_001, "1.000000001s"),
        (90_000_000_000, "1m30s"),
        (86_400_000_000_000 * 366, "1y1d"),
        (-3_600_000_000_000, "-1h"),
        (-(2**63), "-292y171d23h47m16.854775808s"),
    ],
)
def test_a_duration_is_shown_in_the_units_that_it_has(nanoseconds: int, text: str) -> None:
    assert value_text(DURATION, signed(nanoseconds)) == text


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (1_500_000_000, "1970-01-01T00:00:01.5Z"),
        (-1, "1969-12-31T23:59:59.999999999Z"),
        (2**63 - 1, "2262-04-11T23:47:16.854775807Z"),
    ],
)
def test_a_time_is_shown_in_utc_without_trailing_zeros(nanoseconds: int, text: str) -> None:
    assert value_text(TIME, signed(nanoseconds)) == text


@pytest.mark.parametrize(
    ("kind", "body", "text"),
    [
        (STRING, b'a"\\\n\t', r'"a\"\\\n\t"'),
        (STRING, "né ☃".encode(), '"né ☃"'),
        (STRING, b"\x01", r'"\x01"'),
        (STRING, b"\xff", '"\udcff"'),
        (BSTRING, b"\xff\x01a", r'"\xff\x01a"(bstring)'),
        (ERROR, b"missing", '"missing"(error)'),
        (IP, bytes([1, 2, 3, 4]), "1.2.3.4"),
        (IP, bytes(10) + b"\xff\xff\1\2\3\4", "1.2.3.4"),
        (IP, bytes(15) + b"\1", "::1"),
        (NET, bytes([10, 0, 0, 0, 255, 0, 0, 0]), "10.0.0.0/8"),
        (NET, bytes([10, 0, 0, 0, 255, 0, 255, 0]), "10.0.0.0/ff00ff00"),
        (PORT, b"\x50", "80(port=(uint16))"),
        (TYPE, type_value(Record(("a", "x y"), (INT64, PORT))), '({a:int64,"x y":port=(uint16)})'),
        (Enum(("foo", "bar")), b"\1", "bar(<foo,bar>)"),
        (Array(INT32), b"", "[]"),
        (Record(("a",), (Array(INT32),)), b"\1", "{a:[]([int32])}"),
        (Array(INT32), primitive(signed(1)) + b"\0", "[1(int32),null(int32)]"),
        (Set(INT64), primitive(signed(1)), "|[1]|"),
        (Map(IP, INT64), primitive(bytes(16)) + primitive(signed(1)), "|{:: :1}|"),
        (Record(("a",), (Union((INT64, STRING)),)), container(primitive(signed(1)) + primitive(b"x")), None),
        (
            Record(("a", "b"), (PORT, PORT)),
            primitive(b"\1") + primitive(b"\2"),
            "{a:1(port=(uint16)),b:2(port)}",
        ),
        (Named("foo", Record(("a",), (INT64,))), primitive(signed(1)), "{a:1}(=foo)"),
        (Record((), ()), b"", "{}"),
        (Record(("é1", "1a", "$_"), (INT64,) * 3), b"\2\2\2", '{é1:0,"1a":0,$_:0}'),
    ],
)
def test_a_value_of_every_type_is_shown_as_text(kind: Type, body: bytes, text: str | None) -> None:
    assert value_text(kind, body) == (text or '{a:"x"((int64,string))}')


def test_a_null_shows_its_type() -> None:
    assert value_text(Record(("a",), (INT64,)), None) == "null({a:int64})"


def test_an_escaped_character_that_the_original_tears_apart() -> None:
    assert value_text(STRING, "\u200b".encode()).encode(errors="surrogateescape") == b'"\\xe2\x80\x8b"'


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (IP, b"\1\2\3"),
        (NET, b"\1"),
        (FLOAT64, b"\1"),
        (Enum(("a",)), b"\1"),
        (Union((INT64,)), primitive(signed(1)) + primitive(b"")),
        (Record(("a",), (INT64,)), b"\2\2"),
        (Record(("a",), (INT64,)), b"\x06\1"),
        (TYPE, b"\x1f"),
    ],
)
def test_bytes_that_are_no_value_are_refused(kind: Type, body: bytes) -> None:
    with pytest.raises(Corrupt):
        value_text(kind, body)
