"""Values that conditions take as equal have equal numbers, whatever their types; nulls have none."""

from __future__ import annotations

import decimal
import math

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lake_core.keys.encoding import encode_value, from_array
from lake_core.values.types import json_field
from log_lake.indexes.hashes import indexed_field, number_of, numbers_of
from tests.support.values import TYPES

SCHEMA = pa.schema(
    [
        ("id.x", pa.int64()),
        ("id", pa.struct([("x", pa.int64()), ("y", pa.struct([("z", pa.string())]))])),
        ("list", pa.list_(pa.int64())),
        ("nothing", pa.null()),
        json_field("json"),
    ]
)


def number(array: pa.Array) -> int:
    """The number of the only value of a column."""
    (one,) = numbers_of(pa.table({"f": array}), ("f",), pa.field("f", array.type))
    return int(one)


@pytest.mark.parametrize("type", [pa.int8(), pa.uint64(), pa.float32(), pa.float64(), pa.decimal128(38, 2)])
def test_one_is_one_in_every_type(type: pa.DataType) -> None:
    assert number(pa.array([1], pa.int64()).cast(type)) == number_of(encode_value(1))
    assert {number_of(encode_value(value)) for value in (1.0, decimal.Decimal("1.00"))} == {
        number_of(encode_value(1))
    }


def test_what_differs_has_other_numbers() -> None:
    values = [1, True, "1", b"1", 2**53 + 1, 2.0**53, 2**64 - 1, -1, math.nan, 0.1, decimal.Decimal("0.11")]
    assert len({number_of(encode_value(value)) for value in values}) == len(values)


def test_instants_of_all_units_are_equal() -> None:
    seconds = pa.array([5], pa.int64()).cast(pa.timestamp("s", "UTC"))
    each = {number(seconds.cast(pa.timestamp(unit, "UTC"))) for unit in ("s", "ms", "us", "ns")}
    assert len(each) == 1
    assert number(seconds.cast(pa.timestamp("us"))) not in each


def test_zero_has_no_sign_and_nan_equals_itself() -> None:
    assert number(pa.array([-0.0])) == number(pa.array([0.0])) == number_of(encode_value(0))
    assert number(pa.array([math.nan], pa.float32())) == number_of(encode_value(math.nan))


def test_nulls_have_no_numbers() -> None:
    table = pa.table({"f": pa.chunked_array([[None, 3, None], [3]], pa.int64())})
    assert numbers_of(table, ("f",), table.schema.field("f")).tolist() == 2 * [number_of(encode_value(3))]
    records = pa.table({"r": pa.array([None, {"x": None}, {"x": 7}]).slice(0, 2)})
    assert not len(numbers_of(records, ("r", "x"), pa.field("x", pa.int64())))


@pytest.mark.parametrize(
    ("written", "path"),
    [
        ("id.x", ("id.x",)),
        ("id.y.z", ("id", "y", "z")),
        ("id", None),
        ("list", None),
        ("nothing", None),
        ("json", None),
        ("json.a", None),
        ("other", None),
    ],
)
def test_the_field_of_a_rule(written: str, path: tuple[str, ...] | None) -> None:
    found = indexed_field(SCHEMA, written)
    assert (found[0] if found else None) == path


@settings(max_examples=40)
@given(st.data())
def test_a_value_has_the_number_of_its_column(data: st.DataObject) -> None:
    from log_lake.texts.fit import array_of

    type, values = data.draw(st.sampled_from(TYPES))
    array = array_of(data.draw(st.lists(values, min_size=1, max_size=5)), type)
    expected = {number_of(encode_value(value)) for value in from_array(array) if value is not None}
    assert set(numbers_of(pa.table({"f": array}), ("f",), pa.field("f", type)).tolist()) == expected
