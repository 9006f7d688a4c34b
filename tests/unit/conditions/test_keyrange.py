"""Key ranges of conditions.  That none is too small is tests/properties/test_conditions.py."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

from lake_core.keys import KeyRange, PoolKey
from lake_core.keys.encoding import AFTER, Instant, encode_key
from lake_core.keys.ranges import EVERYTHING
from log_lake.where import check, parse
from log_lake.where.keyrange import key_range_of

NUMBERS = pa.schema([("a", pa.int64()), ("b", pa.float64())])


def test_without_a_key_there_is_no_range() -> None:
    assert key_range_of(parse("a = 1"), PoolKey(()), NUMBERS) == EVERYTHING


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("a = 5", [5], [4, 6, None]),
        ("a >= 5", [5, 6], [4, None]),
        ("a > 5", [6], [5, None]),
        ("a <= 5", [5, 4], [6, None]),
        ("a < 5", [4], [5, None]),
        ("a != 5", [4, 5, 6], [None]),
        ("not a < 5", [5, 6], [4, None]),
        ("not a >= 5", [4], [5, None]),
        ("a is null", [None], [0]),
        ("a is not null", [0, -(2**63)], [None]),
        ("a in (3, 5, null)", [3, 4, 5], [2, 6, None]),
        ("a not in (3, 5)", [3, 9], [None]),
        ("a between 3 and 5", [3, 5], [2, 6]),
        ("not a between 3 and 5", [2, 4, 6], [None]),
        ("a = 3 or a = 5", [3, 4, 5], [2, 6]),
        ("a = 3 or b = 5", [2, 3, 4, None], []),
        ("a > 3 and (a < 6 or b = 1)", [4, 7], [3]),
        ("a = 3 or (a > 6 and a < 5)", [3], [2, 4, 7]),
        ("not (a < 3 or a > 5)", [3, 5], [2, 6]),
        ("a not in (3, null) or a = 1", [1], [0, 2, None]),
        ("b = 5", [1, None], []),
        ('"a"."b" = 5', [1, None], []),
    ],
)
@pytest.mark.parametrize("direction", ["asc", "desc"])
def test_the_range_of_one_key_field(text: str, inside: list[Any], outside: list[Any], direction: str) -> None:
    key = PoolKey.parse(f"a:{direction}")
    span = key_range_of(parse(text), key, NUMBERS)
    assert all(span.contains(encode_key([value], key)) for value in inside)
    assert not any(span.contains(encode_key([value], key)) for value in outside)


@pytest.mark.parametrize("key", ["a,b", "a:desc,b", "a,b:desc", "a:desc,b:desc"])
@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("a = 1 and b = 2", [(1, 2)], [(1, 1), (1, 3), (0, 2), (2, 2)]),
        ("a = 1 and b > 2", [(1, 3)], [(1, 2), (1, None), (2, 3)]),
        ("a = 1 and b <= 2", [(1, 2)], [(1, 3), (1, None), (0, 2)]),
        ("a = 1 and b is null", [(1, None)], [(1, 0)]),
        ("a > 1 and b = 2", [(2, 2)], [(1, 2), (1, 9)]),
        ("b = 2", [(1, 1), (9, 9)], []),
    ],
)
def test_equality_of_the_leading_field_lets_the_next_one_narrow(
    text: str, inside: list[Any], outside: list[Any], key: str
) -> None:
    pool_key = PoolKey.parse(key)
    span = key_range_of(parse(text), pool_key, NUMBERS)
    assert all(span.contains(encode_key(values, pool_key)) for values in inside)
    assert not any(span.contains(encode_key(values, pool_key)) for values in outside)


def test_the_next_field_narrows_the_ends_of_a_range_too() -> None:
    key = PoolKey.parse("a,b")
    span = key_range_of(parse("a between 1 and 3 and b between 4 and 5"), key, NUMBERS)
    assert span == KeyRange(encode_key([1, 4], key), encode_key([3, 5], key) + AFTER)


@pytest.mark.parametrize(
    "text", ["a > 5 and a < 5", "a = null", "a is null and a = 1", "a = 1 and b > 2 and b < 2"]
)
def test_what_no_key_fulfils_has_an_empty_range(text: str) -> None:
    assert key_range_of(parse(text), PoolKey.parse("a,b"), NUMBERS).empty


def test_a_range_is_as_small_as_the_key_can_say() -> None:
    key = PoolKey.parse("a,b")
    one, two = encode_key([1], key), encode_key([1, 2], key)
    assert key_range_of(parse("a = 1"), key, NUMBERS) == KeyRange(one, one + AFTER)
    assert key_range_of(parse("a = 1 and b = 2"), key, NUMBERS) == KeyRange(two, two + AFTER)
    assert key_range_of(parse("a = 1 and b < 2"), key, NUMBERS) == KeyRange(one + b"\0" + AFTER, two)
    assert key_range_of(parse("a >= 1"), key, NUMBERS) == KeyRange(one, None)
    assert key_range_of(parse("b = 2"), key, NUMBERS) == EVERYTHING


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.string(), "2026-01-31"),
        (pa.date32(), dt.date(2026, 1, 31)),
        (pa.timestamp("us"), Instant((0x08, 1_769_817_600, 0))),
        (pa.timestamp("us", "UTC"), Instant((0x09, 1_769_817_600, 0))),
    ],
)
def test_a_text_gives_the_range_of_its_reading_as_the_class_of_the_key(kind: pa.DataType, value: Any) -> None:
    key, schema = PoolKey.parse("a"), pa.schema([("a", kind)])
    one = encode_key([value], key)
    assert key_range_of(check("a = '2026-01-31'", schema), key, schema) == KeyRange(one, one + AFTER)


@pytest.mark.parametrize("schema", [pa.schema([("a", pa.null())]), pa.schema([])])
def test_without_a_known_class_only_null_narrows(schema: pa.Schema) -> None:
    key = PoolKey.parse("a")
    assert key_range_of(parse("a = 5"), key, schema) == EVERYTHING
    assert key_range_of(parse("not a < '5'"), key, schema) == EVERYTHING
    assert not key_range_of(parse("a is null"), key, schema).contains(encode_key([5], key))


def test_a_decimal_that_no_number_equals_has_an_empty_range() -> None:
    key = PoolKey.parse("a")
    assert key_range_of(parse("a = 0.10000000000000000001"), key, NUMBERS).empty
    whole = key_range_of(parse("a != 0.10000000000000000001"), key, NUMBERS)
    assert whole == key_range_of(parse("a is not null"), key, NUMBERS)
