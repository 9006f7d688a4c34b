"""A condition's text means the same of old records before and after their field becomes JSON.

The cases in which it once did not; that it holds for all types is tests/properties/test_meaning.py.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lake_core.errors import InvalidInput
from log_lake.lake.pool import Pool
from tests.support.pools import a_pool, compact_all, keys


def pool_of(values: list[Any], kind: pa.DataType | None = None, key: str = "k") -> Pool:
    pool = a_pool(key=key)
    append(pool, values, kind)
    return pool


def append(pool: Pool, values: list[Any], kind: pa.DataType | None = None, first: int = 0) -> None:
    pool.branch().append(pa.table({"k": range(first, first + len(values)), "x": pa.array(values, kind)}))


UTC = pa.timestamp("us", "UTC")
NOON, NIGHT = dt.datetime(2026, 1, 31, 12), dt.datetime(2026, 1, 31)
BEFORE_AND_AFTER: list[tuple[list[Any], pa.DataType | None, str, list[int]]] = [
    ([dt.date(2026, 1, 31), dt.date(2026, 2, 1), None], None, "x = '2026-01-31'", [0]),
    ([dt.date(2026, 1, 31), dt.date(2026, 2, 1), None], None, "not (x = '2026-01-31')", [1]),
    ([dt.date(2026, 1, 31), dt.date(2026, 2, 1), None], None, "x <> '2026-01-31'", [1]),
    ([dt.date(2026, 1, 31), dt.date(2026, 2, 1), None], None, "not (x < '2026-02-01')", [1]),
    ([dt.date(2026, 1, 31), dt.date(2026, 2, 1), None], None, "x not in ('2026-01-31', '2026-02-02')", [1]),
    ([dt.date(2026, 1, 31), dt.date(2026, 2, 1), None], None, "x not in ('2026-01-31', null)", []),
    ([dt.date(2026, 1, 31), dt.date(2026, 2, 1)], None, "x between '2026-01-01' and '2026-01-31'", [0]),
    ([Decimal("1.10"), Decimal("2.00")], None, "x = '1.10'", [0]),
    ([Decimal("1.10"), Decimal("2.00")], None, "x > '1.1'", [1]),
    ([b"\0\xff", b"a"], None, "x = 'AP8='", [0]),
    ([b"\0\xff", b"a"], None, "x in ('AP8=', 'YQ==')", [0, 1]),
    ([dt.time(12), dt.time(13)], pa.time64("us"), "x >= '12:30'", [1]),
    ([1_500_000, 2_000_000], pa.duration("us"), "x = '1.5s'", [0]),
    ([NOON, NIGHT], UTC, "x = '2026-01-31T13:00:00+01:00'", [0]),
    ([NOON, NIGHT], UTC, "x = timestamp '2026-01-31T12:00:00'", [0]),
    ([NOON, NIGHT], UTC, "x = date '2026-01-31'", [1]),
    ([NOON, NIGHT], UTC, "x in ('2026-01-31')", [1]),
    ([NOON, NIGHT], pa.timestamp("us"), "x = timestamp '2026-01-31T12:00:00Z'", [0]),
    ([NOON, NIGHT], pa.timestamp("us"), "not x > date '2026-01-31'", [1]),
    ([{"a": dt.date(2026, 1, 31)}, {"a": None}], None, "x.a >= '2026-01-31'", [0]),
    ([0.1, 0.5], None, "x = 0.10000000000000000001", []),
    ([0.1, 0.5], None, "x != 0.10000000000000000001", [0, 1]),
    ([0.1, 0.5], None, "x < 0.10000000000000000001", [0]),
    ([0.1, None], None, "not x >= 0.10000000000000000001", [0]),
    ([1, 2], None, "x = 1.00000000000000000001", []),
    ([1, 2], None, "x > 1.00000000000000000001", [1]),
    ([1, None], None, "x not in (1.00000000000000000001)", [0]),
    ([1, 2], None, "x in (1.00000000000000000001, 2)", [1]),
    ([1, 2], None, "x not in (1.00000000000000000001, null)", []),
    ([2**60 + 1, 2**60 + 101], None, "x < 1152921504606847076.5", [0]),
    ([2**60 + 1, 2**60 + 101], None, "x = 1152921504606847076.5", []),
]


@pytest.mark.parametrize(("values", "kind", "where", "expected"), BEFORE_AND_AFTER, ids=str)
def test_a_condition_finds_the_same_before_and_after_its_field_is_json(
    values: list[Any], kind: pa.DataType | None, where: str, expected: list[int]
) -> None:
    pool = pool_of(values, kind)
    assert keys(pool, where) == expected
    append(pool, [["a list, with which nothing unites"]], first=100)
    assert keys(pool, where) == expected
    compact_all(pool)
    assert keys(pool, where) == expected
    pool.branch().delete(where=where)
    assert pool.at().to_table()["k"].to_pylist() == [
        k for k in [*range(len(values)), 100] if k not in expected
    ]


def test_of_a_mixed_field_a_text_finds_texts_and_what_it_may_be_read_as_but_no_number() -> None:
    pool = pool_of(["1", "2"])
    append(pool, [1, 2], first=10)
    append(pool, [Decimal("1.0"), Decimal("2.0")], first=20)
    append(pool, [1_000_000, 2_000_000], pa.duration("us"), first=30)
    assert keys(pool, "x = '1'") == [0, 20, 30]
    assert keys(pool, "x != '1'") == [1, 21, 31]
    assert keys(pool, "x = 1") == [10, 20]
    pool.branch().delete(where="x = '1'")
    append(pool, ["1"], first=40)
    assert pool.at().to_table()["k"].to_pylist() == [1, 10, 11, 21, 31, 40]


# ---------------------------------------------------------------- keys


@pytest.mark.parametrize("values", [[1, 2], [0.5, 1.0, 2.0]], ids=["integers", "doubles"])
@pytest.mark.parametrize("direction", ["asc", "desc"])
def test_a_decimal_that_no_key_equals_finds_none(values: list[Any], direction: str) -> None:
    pool = a_pool(key=f"k:{direction}")
    pool.branch().append(pa.table({"k": values}))
    assert keys(pool, "k = 1.00000000000000000001") == []
    assert sorted(keys(pool, "k > 1.00000000000000000001")) == [2]
    assert sorted(keys(pool, "k <= 1.00000000000000000001")) == values[:-1]
    assert pool.at().plan(where="k = 1.00000000000000000001").references == ()
    assert pool.branch().delete(where="k = 1.00000000000000000001").version is None
    pool.branch().delete(where="k < 1.00000000000000000001")
    assert keys(pool, "k is not null") == [2]


@pytest.mark.parametrize("key", ["1.00000000000000000001", Decimal("1.00000000000000000001")])
def test_a_key_with_more_digits_than_a_double_has_is_not_rounded(key: Any) -> None:
    pool = a_pool(key="k")
    pool.branch().append(pa.table({"k": [1, 2]}))
    view = pool.at()
    with pytest.raises(InvalidInput, match=r"1\.00000000000000000001.*no double"):
        view.bound_of_text(key) if isinstance(key, str) else view.bound(key)
    assert view.bound_of_text("0.10000000000000001") == view.bound(0.1)
    assert view.bound_of_text("NaN") > view.bound_of_text("Infinity") > view.bound(Decimal("0.1"))
