"""A key range as a condition holds for the records with keys in the range, and for no other."""

from __future__ import annotations

import itertools
import random

import pyarrow as pa
import pytest

from lake_core.keys import KeyRange, PoolKey
from lake_core.keys.encoding import AFTER, Value, encode_value
from lake_core.keys.ranges import EVERYTHING
from log_lake.where import check, holds, show
from log_lake.where.of_range import of_range

VALUES: tuple[tuple[Value, ...], ...] = ((1, 2, 3), (None, False, True), (None, 0.5, float("nan")))


def encoded(values: tuple[Value, ...], key: PoolKey) -> bytes:
    fields = zip(values, key.fields, strict=False)
    return b"".join(encode_value(value, descending=field.descending) for value, field in fields)


@pytest.mark.parametrize("text", ["a,b,c", "a:desc,b,c:desc", "a,b:desc,c"])
def test_it_holds_for_the_keys_in_the_range_and_for_no_other(text: str) -> None:
    key, chance = PoolKey.parse(text), random.Random(text)
    every = list(itertools.product(*VALUES))
    records = pa.Table.from_pylist([dict(zip("abc", row, strict=True)) for row in every])
    bounds = [
        encoded(prefix, key) + after
        for length in (1, 2, 3)
        for prefix in itertools.product(*VALUES[:length])
        for after in (b"", AFTER)
    ]
    for _ in range(300):
        low, high = sorted(chance.sample(bounds, 2))
        key_range = KeyRange(chance.choice([low, b""]), chance.choice([high, None]))
        condition = of_range(key_range, key)
        inside = [row for row in every if key_range.contains(encoded(row, key))]
        if condition is None:
            assert inside == every, key_range
            continue
        mask = holds(check(condition, records.schema), records)
        assert [row for row, is_in in zip(every, mask.to_pylist(), strict=True) if is_in] == inside, key_range


def test_it_reads_as_a_user_would_write_it() -> None:
    key = PoolKey.parse("k")
    five, six = encode_value(5), encode_value(6)
    assert of_range(EVERYTHING, key) is None
    shown = [
        show(c) for c in (of_range(KeyRange(five, six), key), of_range(KeyRange(five + AFTER), key)) if c
    ]
    assert shown == ["k >= 5 and k < 6", "k > 5"]


@pytest.mark.parametrize(
    ("text", "low", "high", "shown"),
    [
        ("k,f", (1, True), None, "k > 1 or (k = 1 and f = true)"),
        ("k,f", (1, False), None, "k > 1 or (k = 1 and f is not null)"),
        ("k,f", None, (1, True), "k < 1 or (k = 1 and (f = false or f is null))"),
        ("k,f", None, (1, False), "k < 1 or (k = 1 and f is null)"),
        ("k,f:desc", (1, True), None, "k > 1 or (k = 1 and f is not null)"),
        ("k,f:desc", (1, False), None, "k > 1 or (k = 1 and f = false)"),
        ("f,k", (False,), None, None),
        ("f,k", (True, 2), None, "f = true and k >= 2"),
        ("f,k", (False, 2), None, "f = true or (f = false and k >= 2)"),
        ("f,k", None, (False,), "f is null and f is not null"),
    ],
)
def test_booleans_have_no_order_in_a_condition(
    text: str, low: tuple[Value, ...] | None, high: tuple[Value, ...] | None, shown: str | None
) -> None:
    key = PoolKey.parse(text)
    key_range = KeyRange(encoded(low or (), key), None if high is None else encoded(high, key))
    condition = of_range(key_range, key)
    assert (None if condition is None else show(condition)) == shown
