"""Evaluating: the few things that the property (tests/properties/test_conditions.py) does not state by itself."""

from __future__ import annotations

import datetime as dt
import math
import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lake_core.errors import InvalidInput
from lake_core.values.types import json_field
from log_lake.where import check, evaluate, holds, parse


def answers(text: str, values: list[Any] | pa.Array, kind: pa.DataType | None = None) -> list[bool | None]:
    array = values if isinstance(values, pa.Array) else pa.array(values, kind)
    table = pa.table({"v": array})
    return evaluate(check(text, table.schema), table).to_pylist()


def test_null_is_neither_fulfilled_nor_its_contrary() -> None:
    assert answers("v = 1", [1, 2, None]) == [True, False, None]
    assert answers("not v = 1", [1, 2, None]) == [False, True, None]
    assert answers("v = 1 or v is null", [1, 2, None]) == [True, False, True]
    assert answers("v in (1, null)", [1, 2, None]) == [True, None, None]
    assert answers("v not in (1, null)", [1, 2, None]) == [False, None, None]
    assert answers("v = null", [1, None]) == [None, None]
    table = pa.table({"v": [1, 2, None]})
    assert holds(parse("not v = 1"), table).to_pylist() == [False, True, False]


def test_integers_and_doubles_compare_exactly() -> None:
    assert answers("v = 9007199254740993", [2.0**53, 2.0**53 + 2]) == [False, False]
    assert answers("v < 9007199254740993", [2.0**53, 2.0**53 + 2]) == [True, False]
    assert answers("v > 9007199254740992e0", [2**53, 2**53 + 1]) == [False, True]
    assert answers("v = 18446744073709551615", [2**64 - 1, 0], pa.uint64()) == [True, False]
    assert answers("v = 18446744073709551615", [-1, 0], pa.int64()) == [False, False]
    assert answers("v < 18446744073709551615", [2.0**64, 2.0**63]) == [False, True]
    assert answers("v = 0.1", [0.1], pa.float32()) == [False]
    assert answers("v = 0.10000000149011612", [0.1], pa.float32()) == [True]


def test_nan_equals_nan_whatever_its_bits_and_comes_after_all_numbers() -> None:
    odd = [struct.unpack(">d", bytes.fromhex(bits))[0] for bits in ("fff8000000000000", "7ff8000000000123")]
    values = pa.array(np.array([math.nan, *odd, math.inf, 1.0]))
    nan = [True, True, True, False, False]
    for text in ("v = double 'nan'", "v >= double 'nan'", "v in (5, double 'nan')", "v > double 'inf'"):
        assert answers(text, values) == nan
    assert answers("v > 1", values) == [True, True, True, True, False]
    assert answers("v < 1", values) == [False] * 5


def test_the_two_zeros_are_one() -> None:
    assert answers("v = 0", [0.0, -0.0]) == [True, True]
    assert answers("v in (-0.0e0, 7)", [0.0, -0.0]) == [True, True]
    assert answers("v < 0", [0.0, -0.0]) == [False, False]


def test_strings_compare_by_their_bytes() -> None:
    assert answers("v < '\uffff'", ["\U0001f600", "é", "Z"]) == [False, True, True]


def test_times_of_any_unit_compare_with_any_time() -> None:
    moment = dt.datetime(2026, 1, 31, 12)
    for unit in ("s", "ms", "us", "ns"):
        assert answers("v >= '2026-01-31T12:00:00'", [moment], pa.timestamp(unit)) == [True]
        assert answers("v < '2026-01-31T12:00:00.000000001'", [moment], pa.timestamp(unit)) == [True]
        assert answers("v < '9999-12-31'", [moment], pa.timestamp(unit)) == [True]
        assert answers("v > '0001-01-01'", [moment], pa.timestamp(unit)) == [True]


def test_a_condition_on_nothing_but_absent_fields_still_says_something_of_each_record() -> None:
    table = pa.table({"a": [1, 2]})
    assert evaluate(parse("gone is null and other is null"), table).to_pylist() == [True, True]
    assert evaluate(parse("gone = 1"), table.to_batches()[0]).to_pylist() == [None, None]


def test_records_of_another_kind_than_the_value_are_neither() -> None:
    condition = parse("v = 1 or not v = 1 or v in (1, 2)")
    for other in (["1", "x"], [{"v": 1}, {"v": 2}], [[1], [1]], [True, False]):
        assert evaluate(condition, pa.table({"v": other})).to_pylist() == [None, None]


def test_a_type_that_objects_do_not_store_is_refused() -> None:
    with pytest.raises(InvalidInput, match="dictionary"):
        evaluate(parse("v = 'a'"), pa.table({"v": pa.array(["a"]).dictionary_encode()}))


JSON = pa.schema([json_field("v")])


TEXTS = [
    *("1", "1.0", "9007199254740993", '"1"', '"2026-01-31"', "true", '{"a": 1}', None),
    *('{"lake:date":"2026-01-31"}', '{"lake:decimal":"1.50"}', '{"lake:number":"Infinity"}'),
]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("v = 1", [True, True, False, None, None, None, None, None, None, False, False]),
        ("v < 2", [True, True, False, None, None, None, None, None, None, True, False]),
        ("v > 100", [False, False, True, None, None, None, None, None, None, False, True]),
        ("v = '1'", [None, None, None, True, False, None, None, None, None, None, None]),
        ("v = true", [None, None, None, None, None, True, None, None, None, None, None]),
        ("v in ('1', null)", [None, None, None, True, None, None, None, None, None, None, None]),
        ("v in ('1', 1)", [True, True, False, True, False, None, None, None, None, False, False]),
        ("v = date '2026-01-31'", [None, None, None, None, None, None, None, None, True, None, None]),
        ("v is null", [False] * 7 + [True] + [False] * 3),
        ("v = null", [None] * 11),
        ("v != 1.5", [True, True, True, None, None, None, None, None, None, False, True]),
    ],
)
def test_json_compares_as_the_value_that_it_was(text: str, said: list[bool | None]) -> None:
    table = pa.table([pa.array(TEXTS, pa.string())], schema=JSON)
    assert evaluate(parse(text), table).to_pylist() == said


def test_a_name_with_dots_inside_of_json_is_written_in_quotes() -> None:
    table = pa.table([pa.array(['{"a.b": 1}', '{"a": {"b": 1}}'])], schema=JSON)
    assert holds(check('v."a.b" = 1', JSON), table).to_pylist() == [True, False]
    assert holds(check("v.a.b = 1", JSON), table).to_pylist() == [False, True]


def test_a_path_goes_on_inside_of_json() -> None:
    table = pa.table([pa.array(['{"a": {"b": 1}}', '{"a": 2}', "[]", None])], schema=JSON)
    assert evaluate(parse('"v"."a"."b" = 1'), table).to_pylist() == [True, None, None, None]
    assert evaluate(parse('"v"."a" is null'), table).to_pylist() == [False, False, True, True]
