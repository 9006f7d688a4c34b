"""Keys: the order of the encoded bytes is the order of the values, and the bytes can be read back."""

from __future__ import annotations

import datetime as dt
import decimal
import functools
import math
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from lake_core.keys import KeyField, KeyRange, PoolKey
from lake_core.keys.encoding import AFTER, Instant, decode_key, encode_key
from log_lake.columns.keys import key_at, sort_order

EDGES = [0, 1, -1, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, 2**63, 2**64 - 1, -(2**63)]
INTEGERS = st.one_of(st.sampled_from(EDGES), st.integers(-(2**63), 2**64 - 1), st.integers(-3, 3))
NUMBERS = st.one_of(INTEGERS, st.sampled_from([float(e) for e in EDGES]), st.floats())
STRINGS = st.text(
    st.one_of(st.sampled_from("\0\x01a\u00ff\U0001f600"), st.characters(codec="utf-8")), max_size=6
)
BYTES = st.lists(st.sampled_from([0, 1, 254, 255, 97]), max_size=6).map(bytes)
DECIMALS = st.decimals(
    allow_nan=False, allow_infinity=False, places=10, min_value=-(10**27), max_value=10**27
)
INSTANTS = st.builds(
    lambda seconds, nanos: Instant((0x09, seconds, nanos)),
    st.integers(-(2**62), 2**62),
    st.integers(0, 10**9 - 1),
)
KINDS = [NUMBERS, STRINGS, BYTES, st.booleans(), DECIMALS, st.dates(), INSTANTS]


@st.composite
def keys_of_one_pool(draw: st.DrawFn, *, count: int) -> tuple[PoolKey, list[tuple[Any, ...]]]:
    """A key of fields of chosen kinds and directions, and tuples of such values, nulls among them."""
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=3))
    key = PoolKey(tuple(KeyField(f"f{i}", draw(st.booleans())) for i in range(len(kinds))))
    values = st.tuples(*(st.one_of(st.none(), kind) if draw(st.booleans()) else kind for kind in kinds))
    return key, draw(st.lists(values, min_size=count, max_size=count))


def compare_values(a: Any, b: Any, *, descending: bool) -> int:
    """The order that the design states: null first in either direction, NaN above all numbers."""
    if a is None or b is None:
        return (a is not None) - (b is not None)
    nans = [isinstance(v, float) and math.isnan(v) for v in (a, b)]
    order = nans[0] - nans[1] if any(nans) else (a > b) - (a < b)
    return -order if descending else order


def compare(a: Sequence[Any], b: Sequence[Any], key: PoolKey) -> int:
    for x, y, field in zip(a, b, key.fields, strict=True):
        if order := compare_values(x, y, descending=field.descending):
            return order
    return 0


@given(keys_of_one_pool(count=2))
def test_bytes_compare_as_the_keys(given_keys: tuple[PoolKey, list[tuple[Any, ...]]]) -> None:
    key, (a, b) = given_keys
    x, y = encode_key(a, key), encode_key(b, key)
    assert (x > y) - (x < y) == compare(a, b, key)


@given(keys_of_one_pool(count=1))
def test_an_encoded_key_is_read_back(given_keys: tuple[PoolKey, list[tuple[Any, ...]]]) -> None:
    key, (values,) = given_keys
    assert compare(decode_key(encode_key(values, key), key), values, key) == 0


@given(keys_of_one_pool(count=2))
def test_a_prefix_spans_the_keys_that_begin_with_it_and_no_others(
    given_keys: tuple[PoolKey, list[tuple[Any, ...]]],
) -> None:
    key, (a, b) = given_keys
    prefix = encode_key(a[:1], key)
    begins = compare_values(a[0], b[0], descending=key.fields[0].descending) == 0
    assert KeyRange(prefix, prefix + AFTER).contains(encode_key(b, key)) == begins


@given(st.tuples(*[st.tuples(BYTES, st.one_of(st.none(), BYTES))] * 2), BYTES)
def test_ranges_agree_with_the_keys_in_them(bounds: Any, key: bytes) -> None:
    a, b = (KeyRange(*bound) for bound in bounds)
    assert a.intersect(b).contains(key) == (a.contains(key) and b.contains(key))
    if a.contains(key):
        assert not a.empty
    if a.contains(key) and b.contains(key):
        assert a.overlaps(b)


COLUMNS = [
    (st.integers(-(2**63), 2**63 - 1), pa.int64()),
    (st.integers(0, 2**64 - 1), pa.uint64()),
    (st.integers(-3, 3), pa.int8()),
    (st.floats(), pa.float64()),
    (st.floats(width=32), pa.float32()),
    (STRINGS, pa.string()),
    (st.one_of(STRINGS, st.just("x" * 70)), pa.string()),
    (BYTES, pa.binary()),
    (st.booleans(), pa.bool_()),
    (st.dates(), pa.date32()),
    (st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2200, 1, 1)), pa.timestamp("us")),
    (st.decimals(allow_nan=False, places=2, min_value=-99, max_value=99), pa.decimal128(6, 2)),
]


@st.composite
def tables(draw: st.DrawFn) -> tuple[PoolKey, pa.Table]:
    """A table of mixed key columns, whole or sliced, in one chunk or in several."""
    chosen = draw(st.lists(st.sampled_from(COLUMNS), min_size=1, max_size=3))
    rows = draw(st.integers(2, 12))
    names = [f"f{i}" for i in range(len(chosen))]
    arrays = {
        name: pa.array(draw(st.lists(st.one_of(st.none(), values), min_size=rows, max_size=rows)), kind)
        for name, (values, kind) in zip(names, chosen, strict=True)
    }
    table = pa.table(arrays | {"arrival": list(range(rows))})
    if draw(st.booleans()):
        half = rows // 2
        table = pa.concat_tables([table.slice(0, half), table.slice(half)])
    key = PoolKey(tuple(KeyField(name, draw(st.booleans())) for name in names))
    return key, table.slice(draw(st.integers(0, 1)))


@given(tables())
def test_a_table_is_sorted_as_its_encoded_keys_and_equal_keys_keep_their_order(
    given_table: tuple[PoolKey, pa.Table],
) -> None:
    key, table = given_table
    order = sort_order(table, key)
    found = list(range(table.num_rows)) if order is None else order.tolist()
    assert found == sorted(range(table.num_rows), key=functools.partial(key_at, table, key=key))


def test_decimals_of_38_digits_are_exact() -> None:
    key = PoolKey.parse("k")
    for text in ("9" * 38, "-" + "9" * 38, "0." + "0" * 37 + "1", "-0." + "9" * 38):
        value = decimal.Decimal(text)
        assert decode_key(encode_key([value], key), key) == (value,)
