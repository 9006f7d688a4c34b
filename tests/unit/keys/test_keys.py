"""Keys: declarations, ranges, and the few things about the encoding that no property says.

That the order of the bytes is the order of the values is tests/properties/test_keys.py.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import random
from typing import Any

import pyarrow as pa
import pytest

from lake_core.errors import InvalidInput
from lake_core.keys import KeyField, KeyRange, PoolKey
from lake_core.keys.encoding import (
    AFTER,
    Instant,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
    from_array,
    from_scalar,
    key_class,
)
from log_lake.columns.keys import key_at, sort_order
from log_lake.texts.keytext import show_key

ONE = PoolKey.parse("k")
TWO = PoolKey.parse("a,b:desc")

# ---------------------------------------------------------------- declarations


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("ts", [("ts", False)]),
        ("day,carrier", [("day", False), ("carrier", False)]),
        ("ts:desc, uid:asc", [("ts", True), ("uid", False)]),
        ("ts:DESC", [("ts", True)]),
        ("id.orig_h", [("id.orig_h", False)]),
        ("a:b:asc", [("a:b", False)]),
        ("a:b:desc", [("a:b", True)]),
    ],
)
def test_a_key_is_written_as_fields_with_directions(text: str, fields: list[tuple[str, bool]]) -> None:
    assert PoolKey.parse(text) == PoolKey(tuple(KeyField(*field) for field in fields))


@pytest.mark.parametrize("text", ["", ",", "a,", "a,,b", ":desc", "a,a", "a,a:desc"])
def test_a_key_with_an_empty_or_a_repeated_field_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="pool key"):
        PoolKey.parse(text)


@pytest.mark.parametrize("text", ["ts:sideways", "uid,ts:descending", "ts:", "a:b"])
def test_an_order_that_is_none_is_refused_and_no_name_of_a_field(text: str) -> None:
    with pytest.raises(
        InvalidInput, match=r"unknown order '\w*'; use asc or desc\. If the name .* write \S+:asc"
    ):
        PoolKey.parse(text)


def test_the_key_in_a_footer_may_name_a_field_with_a_colon() -> None:
    key = PoolKey((KeyField("meta:id"), KeyField("ts", True)))
    assert PoolKey.of_footer(str(key)) == key


def test_a_key_is_printed_as_it_is_written() -> None:
    assert str(PoolKey.parse("ts:desc,uid:asc")) == "ts:desc,uid"


# ---------------------------------------------------------------- ranges

RANGES = [
    (KeyRange(), KeyRange(b"a", b"b"), True),
    (KeyRange(b"a", b"c"), KeyRange(b"b", b"d"), True),
    (KeyRange(b"a", b"b"), KeyRange(b"b", b"c"), False),
    (KeyRange(b"a", None), KeyRange(b"z", None), True),
    (KeyRange(b"b", None), KeyRange(b"", b"b"), False),
]


@pytest.mark.parametrize(("a", "b", "overlap"), RANGES)
def test_ranges_overlap_where_their_intersection_is_not_empty(
    a: KeyRange, b: KeyRange, overlap: bool
) -> None:
    assert a.overlaps(b) == b.overlaps(a) == overlap
    assert a.intersect(b) == b.intersect(a)
    assert a.intersect(b).empty != overlap


def test_a_range_holds_its_low_and_not_its_high_bound() -> None:
    span = KeyRange(b"b", b"d")
    assert [span.contains(k) for k in (b"a", b"b", b"c", b"d")] == [False, True, True, False]
    assert KeyRange().contains(b"")
    assert KeyRange(b"a", b"a").empty
    assert not KeyRange().empty


# ---------------------------------------------------------------- encoding


def test_a_prefix_of_the_fields_is_a_prefix_of_the_bytes() -> None:
    whole = encode_key(["x", 1], TWO)
    prefix = encode_key(["x"], TWO)
    assert whole.startswith(prefix)
    assert KeyRange(prefix, prefix + AFTER).contains(whole)
    assert not KeyRange(prefix, prefix + AFTER).contains(encode_key(["x\0", 1], TWO))


def test_null_comes_first_in_either_direction() -> None:
    for descending in (False, True):
        nothing = encode_value(None, descending=descending)
        assert all(
            nothing < encode_value(v, descending=descending) for v in (False, -math.inf, "", b"", math.nan)
        )


def test_integers_and_doubles_compare_as_numbers_to_the_last_bit() -> None:
    numbers = [
        -math.inf,
        -(2**63),
        -1.5,
        -0.0,
        2**53,
        2**53 + 1,
        2.0**60,
        2**60 + 1,
        2**64 - 1,
        2.0**64,
        math.inf,
        math.nan,
    ]
    encoded = [encode_value(n) for n in numbers]
    assert encoded == sorted(encoded)
    assert len(set(encoded)) == len(numbers)
    assert encode_value(3) == encode_value(3.0)
    assert encode_value(0.0) == encode_value(-0.0)


@pytest.mark.parametrize(
    "value",
    [2**64, -(2**63) - 1, [1], {}, object(), decimal.Decimal("1e100"), decimal.Decimal("NaN"), "\udcff"],
    ids=str,
)
def test_a_value_that_cannot_be_a_key_is_refused(value: Any) -> None:
    with pytest.raises(InvalidInput):
        encode_value(value)


@pytest.mark.parametrize(
    "value",
    [None, True, 7, 2**64 - 1, 1.5, 1e300, decimal.Decimal("1.5"), "a\0", b"\0", dt.date(1, 1, 1)],
    ids=str,
)
def test_one_encoded_value_is_read_back_and_nothing_else_is(value: Any) -> None:
    encoded = encode_value(value)
    assert decode_value(encoded) == value
    assert type(decode_value(encoded)) is type(value)
    for other in (encoded + b"\0", encoded[:-1], encode_value(value, descending=True) + b"\x01"):
        with pytest.raises(InvalidInput):
            decode_value(other)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x01",
        b"\x0c",
        b"\x0c" + bytes(12),
        b"\x02\x02",
        b"\x06\xff\0\0",
        b"\x07\xff\xff\xff\xff",
        b"\x04" + b"\xff" * 48,
    ],
    ids=bytes.hex,
)
def test_bytes_that_encode_no_value_are_refused(data: bytes) -> None:
    with pytest.raises(InvalidInput):
        decode_value(data)


def test_a_datetime_is_not_taken_for_its_day() -> None:
    with pytest.raises(InvalidInput, match="datetime"):
        encode_value(dt.datetime(2026, 11, 20, 5))


def test_a_key_of_more_values_than_fields_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"has 2 values; the pool key .* has 1 field"):
        encode_key([1, 2], ONE)


@pytest.mark.parametrize(
    "kind", [pa.struct([("a", pa.int64())]), pa.list_(pa.int64()), pa.map_(pa.string(), pa.string())]
)
def test_records_lists_and_maps_have_no_order(kind: pa.DataType) -> None:
    with pytest.raises(InvalidInput, match="has no order"):
        key_class(kind)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC"])
def test_an_instant_is_the_same_in_every_unit(unit: str, zone: str | None) -> None:
    seconds = from_scalar(pa.scalar(-5, pa.int64()).cast(pa.timestamp("s", zone)))
    assert (
        from_scalar(pa.scalar(-5, pa.int64()).cast(pa.timestamp("s", zone)).cast(pa.timestamp(unit, zone)))
        == seconds
    )
    assert seconds == Instant((0x09 if zone else 0x08, -5, 0))


def test_nanoseconds_are_exact_also_before_1970() -> None:
    assert from_scalar(pa.array([-1], pa.int64()).cast(pa.timestamp("ns", "UTC"))[0]) == (
        0x09,
        -1,
        999_999_999,
    )


@pytest.mark.parametrize("array", [
    pa.array([3, None, -1]), pa.array([0.5, None]), pa.array(["a", None]), pa.array([b"a", None]),
    pa.array([True, None]), pa.array([dt.date(2020, 1, 2), None]), pa.array([decimal.Decimal("1.5"), None]),
    *(pa.array([-5, None, 7], pa.int64()).cast(pa.timestamp(unit, zone))
      for unit in ("s", "ms", "us", "ns") for zone in (None, "UTC")),
    pa.array([5, None], pa.int32()).cast(pa.time32("ms")), pa.array([5, None]).cast(pa.time64("ns")),
    pa.array([-5, None]).cast(pa.duration("us")),
], ids=lambda array: str(array.type))  # fmt: skip
def test_the_values_of_a_column_are_those_of_its_scalars(array: pa.Array) -> None:
    assert from_array(array) == [from_scalar(scalar) for scalar in array]
    assert from_array(pa.chunked_array([array, array])) == from_array(array) * 2


# ---------------------------------------------------------------- display


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, None),
        (True, True),
        (-7, -7),
        (1.5, 1.5),
        ("a\0b", "a\0b"),
        (b"\x01\xff", "Af8="),
        (decimal.Decimal("-12.50"), "-12.5"),
        (dt.date(2013, 1, 2), "2013-01-02"),
        (Instant((0x09, 0, 500_000_000)), "1970-01-01T00:00:00.5Z"),
        (Instant((0x08, -1, 0)), "1969-12-31T23:59:59"),
        (Instant((0x0A, 61, 0)), "00:01:01"),
        (Instant((0x0B, -2, 500_000_000)), "-1.5s"),
        (math.nan, "NaN"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("key", [ONE, PoolKey.parse("k:desc")], ids=str)
def test_a_bound_is_shown_as_users_write_the_key(value: Any, shown: Any, key: PoolKey) -> None:
    assert show_key(encode_key([value], key), key) == shown


def test_open_ends_and_prefixes_are_shown_without_inventing_values() -> None:
    assert show_key(b"", TWO) is None
    assert show_key(None, TWO) is None
    assert show_key(encode_key(["x", 1], TWO), TWO) == ["x", 1]
    assert show_key(encode_key(["x"], TWO) + AFTER, TWO) == "x"
    assert decode_key(encode_key(["x", 1], TWO) + b"\0", TWO) == ("x", 1)


def test_a_bound_that_was_cut_is_shown_as_far_as_it_goes() -> None:
    assert show_key(encode_value("abcdef")[:4], ONE) == "abc"


# ---------------------------------------------------------------- columns

COLUMNS: dict[str, pa.Array] = {
    "integers": pa.array([3, None, -1, 2**63 - 1, -(2**63), 3]),
    "unsigned": pa.array([2**64 - 1, 0, None], pa.uint64()),
    "small integers": pa.array([3, -4, 0], pa.int8()),
    "doubles": pa.array([1.5, float("nan"), -0.0, 0.0, float("-inf"), None]),
    "floats": pa.array([1.5, -2.5, 0.0], pa.float32()),
    "booleans": pa.array([True, None, False]),
    "strings": pa.array(["b", "", None, "a\0", "a", "\u00e9", "aa"]),
    "long strings": pa.array(["x" * 80 + "b", "x" * 80 + "a", None, "y", ""]),
    "only empty strings": pa.array(["", None, ""]),
    "bytes": pa.array([b"\xff", b"\0", b"", None]),
    "fixed bytes": pa.array([b"bb", b"aa", None], pa.binary(2)),
    "dates": pa.array([dt.date(2020, 1, 1), dt.date(1960, 1, 1), None]),
    "timestamps": pa.array([5, -5, None], pa.int64()).cast(pa.timestamp("us", "UTC")),
    "times": pa.array([5, 1, None], pa.int64()).cast(pa.time64("us")),
    "durations": pa.array([5, -1, None], pa.int64()).cast(pa.duration("us")),
    "decimals": pa.array([decimal.Decimal("1.10"), decimal.Decimal("-3.00"), None], pa.decimal128(9, 2)),
    "nulls": pa.nulls(3),
}


@pytest.mark.parametrize("direction", ["asc", "desc"])
@pytest.mark.parametrize("offset", [0, 1], ids=["whole", "sliced"])
@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS.keys())
def test_a_column_is_sorted_as_the_encoding_of_its_values(
    column: pa.Array, offset: int, direction: str
) -> None:
    key = PoolKey.parse(f"k:{direction}")
    table = pa.table({"k": column, "i": pa.array(range(len(column)))}).slice(offset)
    order = sort_order(table, key)
    found = table if order is None else table.take(pa.array(order))
    expected = sorted(range(table.num_rows), key=lambda row: key_at(table, row, key))
    assert found["i"].to_pylist() == [row + offset for row in expected]


@pytest.mark.parametrize("direction", ["asc", "desc"])
@pytest.mark.parametrize("largest", [3, 1 << 20, 1 << 57, (1 << 63) - 1])
def test_many_records_without_order_are_sorted_and_equal_keys_keep_their_order(
    direction: str, largest: int
) -> None:
    """Numbers are sorted together with their rows where both have room in 64 bits."""
    rng = random.Random(largest)
    keys = [rng.choice([0, 1, largest, rng.randrange(largest)]) for _ in range(1000)]
    order = sort_order(pa.table({"k": keys}), PoolKey.parse(f"k:{direction}"))
    assert order is not None
    assert order.tolist() == sorted(
        range(1000), key=lambda row: -keys[row] if direction == "desc" else keys[row]
    )


def test_records_in_order_are_left_as_they_are() -> None:
    assert sort_order(pa.table({"k": [1, 1, 2]}), ONE) is None
    assert sort_order(pa.table({"k": [2, 1]}), PoolKey(())) is None
