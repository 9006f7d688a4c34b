"""A field whose types do not unite: nothing is lost, whatever was loaded, deleted or compacted in between.

The cases in which something once was; that it holds for all types is tests/properties/test_values.py.
"""

from __future__ import annotations

import datetime as dt
import decimal
import json
import math
from typing import Any

import pyarrow as pa
import pytest

from lake_core.errors import InvalidInput
from log_lake.columns.json_text import json_lines
from log_lake.lake.pool import Pool
from tests.support.pools import a_pool, compact_all, keys


def pool_of(kind: str = "append", **aggregates: str) -> Pool:
    return a_pool(kind=kind, aggregates=aggregates or None)


def load(pool: Pool, k: int, x: Any, kind: pa.DataType | None = None) -> None:
    pool.branch().append(pa.table({"k": [k], "x": pa.array([x], kind)}))


VALUES = [
    (math.nan, pa.float64(), '"NaN"'),
    (-math.inf, pa.float64(), '"-Infinity"'),
    (1, pa.timestamp("ns"), '"1970-01-01T00:00:00.000000001"'),
    (1, pa.duration("ns"), '"0.000000001s"'),
    (dt.date(9999, 12, 31), pa.date32(), '"9999-12-31"'),
    (decimal.Decimal("1.10"), pa.decimal128(9, 2), "1.10"),
    (b"\0\xff", pa.binary(), '"AP8="'),
]


@pytest.mark.parametrize(("value", "kind", "shown"), VALUES, ids=[str(kind) for _, kind, _ in VALUES])
def test_a_value_is_shown_alike_before_and_after_its_field_is_mixed(
    value: Any, kind: pa.DataType, shown: str
) -> None:
    pool = a_pool()
    load(pool, 1, value, kind)
    before = json_lines(pool.at().to_table()).to_pylist()
    assert before == [f'{{"k":1,"x":{shown}}}']
    load(pool, 2, "abc")
    for _ in range(2):
        assert json_lines(pool.at().to_table()).to_pylist()[:1] == before
        assert keys(pool, "x is null") == []
        compact_all(pool)


@pytest.mark.parametrize("kind", ["append", "upsert"])
def test_a_delete_covers_infinity_also_after_a_text_came(kind: str) -> None:
    pool = pool_of(kind)
    load(pool, 1, math.inf)
    load(pool, 2, 1.0)
    pool.branch().delete(where="x > 100")
    load(pool, 3, "abc")
    assert keys(pool) == [2, 3]
    compact_all(pool)
    assert keys(pool) == [2, 3]


def test_integers_beyond_a_double_keep_their_digits_inside_of_records_and_lists() -> None:
    pool = a_pool()
    pool.branch().append(pa.table({"k": [1], "x": [{"a": 2**53 + 1, "l": [2**53 + 1]}]}))
    pool.branch().append(pa.table({"k": [2], "x": [{"a": 0.5, "l": [0.5]}]}))
    lines = json_lines(pool.at().to_table()).to_pylist()
    assert [json.loads(line)["x"] for line in lines] == [
        {"a": 2**53 + 1, "l": [2**53 + 1]},
        {"a": 0.5, "l": [0.5]},
    ]
    compact_all(pool)
    assert json_lines(pool.at().to_table()).to_pylist() == lines


# ---------------------------------------------------------------- aggregates


def test_the_least_and_the_greatest_are_of_one_class() -> None:
    pool = pool_of("aggregate", low="min", high="max")
    for value in (10, 9):
        pool.branch().append(pa.table({"k": [1], "low": [value], "high": [value]}))
    for column in ("low", "high"):
        with pytest.raises(
            InvalidInput, match=f"aggregated field '{column}': string here, bigint in the pool's"
        ):
            pool.branch().append(pa.table({"k": [2], column: ["abc"]}))
    assert pool.at().to_table().to_pylist() == [{"k": 1, "low": 9, "high": 10}]


SUMS = {
    "two scales": ([decimal.Decimal("1.5"), decimal.Decimal("0.25")], decimal.Decimal("1.75")),
    "more than 64 bits": ([2**63 - 1, 2**63 - 1, -1], 2**64 - 3),
    "integers and doubles": ([1, 0.5], 1.5),
    "integers and decimals": ([2**60, decimal.Decimal("0.25")], 2**60 + decimal.Decimal("0.25")),
}


@pytest.mark.parametrize("name", SUMS)
def test_what_can_be_added_exactly_is(name: str) -> None:
    values, expected = SUMS[name]
    pool = pool_of("aggregate", x="sum")
    for value in values:
        load(pool, 1, value)
    for _ in range(2):
        (found,) = pool.at().to_table()["x"].to_pylist()
        assert found == expected
        compact_all(pool)
    load(pool, 1, values[0])
    assert pool.at().to_table()["x"].to_pylist() == [expected + values[0]]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (2**53 + 1, 0.5),
        (0.5, decimal.Decimal("0.5")),
        (1, "abc"),
        (decimal.Decimal(10) ** 25, decimal.Decimal("0.01")),
    ],
    ids=["a wide integer and a double", "a double and a decimal", "a text", "no room for more digits"],
)
def test_what_cannot_be_added_exactly_is_refused_when_it_lands(first: Any, second: Any) -> None:
    pool = pool_of("aggregate", x="sum")
    load(pool, 1, first)
    with pytest.raises(InvalidInput, match="field 'x'"):
        load(pool, 1, second)
    compact_all(pool)
    assert pool.at().to_table()["x"].to_pylist() == [first]


def test_a_sum_has_room_for_a_million_million_of_the_largest_values() -> None:
    largest = decimal.Decimal(10) ** 26 - 1
    pool = pool_of("aggregate", x="sum")
    for _ in range(3):
        load(pool, 1, largest)
    assert pool.at().to_table()["x"].to_pylist() == [3 * largest]
    with pytest.raises(InvalidInput, match="26 digits"):
        load(pool, 1, largest + 1)


@pytest.mark.parametrize("marker", ["yes", 1, [True]], ids=repr)
def test_a_delete_marker_that_is_no_boolean_is_refused(marker: Any) -> None:
    pool = pool_of("upsert")
    with pytest.raises(InvalidInput, match="_deleted"):
        pool.branch().append(pa.table({"k": [1], "_deleted": [marker]}))
    pool.branch().append(pa.table({"k": [1], "_deleted": [True]}))
    assert keys(pool) == []
