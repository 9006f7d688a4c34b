"""What becomes of records with equal keys, kind by kind."""

from __future__ import annotations

import datetime as dt
import decimal
import math
from typing import Any

import pyarrow as pa
import pytest

from lake_core.errors import InvalidInput
from lake_core.keys import PoolKey
from lake_core.schemas import Rule
from lake_core.schemas.hidden import check_names
from log_lake.combine.combine import combine, combine_stream
from log_lake.combine.declared import check_rule, parse_aggregates
from log_lake.combine.groups import ends_key
from log_lake.combine.newest import without_markers
from log_lake.combine.prepare import prepared

KEY = PoolKey.parse("k")
UPSERT = Rule("upsert")
NAN = float("nan")


def aggregating(**functions: str) -> Rule:
    return Rule("aggregate", tuple(sorted(functions.items())))


def combined(rule: Rule, **columns: Any) -> dict[str, list[Any]]:
    return combine(pa.table(columns), KEY, rule).to_pydict()


# ---------------------------------------------------------------- equal keys


@pytest.mark.parametrize(
    ("values", "ends"),
    [
        ([1, 1, 2], [False, True, True]),
        ([None, None, 0], [False, True, True]),
        ([-0.0, 0.0, NAN, NAN], [False, True, False, True]),
        (["a", "a\0", "a\0"], [True, False, True]),
        ([7], [True]),
    ],
    ids=repr,
)
def test_keys_are_equal_where_their_encodings_are(values: list[Any], ends: list[bool]) -> None:
    assert ends_key(pa.table({"k": values}), KEY).tolist() == ends


def test_every_field_of_a_key_counts() -> None:
    table = pa.table({"a": [1, 1, 1, 2], "b": ["x", None, None, None]})
    assert ends_key(table, PoolKey.parse("a,b")).tolist() == [True, False, True, True]


@pytest.mark.parametrize("rows", [1, 2, 3, 100])
def test_a_key_is_whole_however_the_stream_is_cut(rows: int) -> None:
    table = pa.table({"k": [1, 2, 2, 2, 2, 3, 3], "v": [1, 2, 3, 4, 5, 6, 7]})
    stream = [table.slice(at, rows) for at in range(0, 7, rows)]
    found = pa.concat_tables(combine_stream(stream, KEY, aggregating(v="sum")))
    assert found.to_pydict() == {"k": [1, 2, 3], "v": [1, 14, 13]}
    assert pa.concat_tables(combine_stream(stream, KEY, Rule())) == table


# ---------------------------------------------------------------- kinds


def test_append_keeps_all_and_upsert_the_last() -> None:
    columns = {"k": [1, 1, 2], "v": ["a", "b", "c"]}
    assert combined(Rule(), **columns) == columns
    assert combined(UPSERT, **columns) == {"k": [1, 2], "v": ["b", "c"]}


def test_the_newest_record_decides_also_where_it_is_a_delete_marker() -> None:
    table = combine(pa.table({"k": [1, 1, 2, 2], "_deleted": [False, True, True, None]}), KEY, UPSERT)
    assert table.to_pydict() == {"k": [1, 2], "_deleted": [True, None]}
    assert without_markers(table).to_pydict() == {"k": [2], "_deleted": [None]}


@pytest.mark.parametrize(
    ("function", "values", "expected"),
    [
        ("sum", [1, None, 5], 6),
        ("sum", [None, None, None], None),
        ("sum", [0.5, 0.25, None], 0.75),
        ("sum", [decimal.Decimal("1.10"), decimal.Decimal("2.20"), None], decimal.Decimal("3.30")),
        ("sum", [2**62, 2**61, -(2**62)], 2**61),
        ("count", [1, 4, 2], 7),
        ("min", [3, None, 2], 2),
        ("max", ["a", "b", None], "b"),
        ("max", [dt.date(2026, 1, 1), dt.date(2025, 1, 1), None], dt.date(2026, 1, 1)),
        ("max", [dt.timedelta(1), dt.timedelta(2), None], dt.timedelta(2)),
        ("min", [dt.time(1), dt.time(2), None], dt.time(1)),
        ("min", [b"b", b"a", None], b"a"),
        ("max", [True, False, None], True),
        ("max", [1.5, math.nan, None], 1.5),
        ("first", [None, "b", "c"], "b"),
        ("last", ["a", "b", None], "b"),
        ("last", [{"x": 1}, None, {"x": 2}], {"x": 2}),
        ("any_value", [None, [1], [2]], [1]),
        ("last", [None, None, None], None),
    ],
    ids=repr,
)
def test_a_function_folds_the_values_of_a_group_and_skips_nulls(
    function: str, values: list[Any], expected: Any
) -> None:
    found = combined(aggregating(v=function), k=[1, 1, 1, 2], v=[*values, None])
    assert found == {"k": [1, 2], "v": [expected, None]}


def test_a_field_without_a_function_keeps_its_last_value() -> None:
    assert combined(aggregating(), k=[1, 1], w=["a", "b"]) == {"k": [1], "w": ["b"]}


def test_a_combined_record_is_as_old_as_the_newest_of_them() -> None:
    found = combined(aggregating(v="sum"), k=[1, 1], v=[1, 2], _seq=[5, 9], _place=[7, 0])
    assert found == {"k": [1], "v": [3], "_seq": [9], "_place": [0]}


@pytest.mark.parametrize("value", [2**63 - 1, -(2**63)])
def test_sums_of_integers_have_more_digits_than_any_of_them(value: int) -> None:
    rule = aggregating(v="sum")
    stored = prepared(pa.table({"k": [1, 1, 1], "v": pa.array([value] * 3, pa.int64())}), rule, KEY)
    assert combine(stored, KEY, rule).column("v").to_pylist() == [3 * value]


def test_a_value_that_leaves_no_room_for_sums_is_refused_when_it_comes_in() -> None:
    large = pa.array([decimal.Decimal(10) ** 26], pa.decimal128(38, 0))
    with pytest.raises(InvalidInput, match=r"field 'v': .* more than 26 digits"):
        prepared(pa.table({"k": [1], "v": large}), aggregating(v="sum"), KEY)
    just = pa.array([decimal.Decimal(10) ** 26 - 1], pa.decimal128(38, 0))
    assert prepared(pa.table({"k": [1], "v": just}), aggregating(v="sum"), KEY).num_rows == 1


def test_a_delete_marker_must_be_a_boolean() -> None:
    with pytest.raises(
        InvalidInput, match="field '_deleted' is of type string; in an upsert pool it must be a boolean"
    ):
        prepared(pa.table({"k": [1], "_deleted": ["yes"]}), UPSERT, KEY)
    for marks in (pa.array([True]), pa.nulls(1)):
        assert prepared(pa.table({"k": [1], "_deleted": marks}), UPSERT, KEY).num_rows == 1


# ---------------------------------------------------------------- what a load brings


def test_counted_fields_begin_with_one_and_sums_get_room() -> None:
    rule = aggregating(n="count", v="sum", f="sum", d="sum")
    table = pa.table(
        {
            "k": [1],
            "v": pa.array([1], pa.int8()),
            "f": pa.array([1.5], pa.float32()),
            "d": pa.array([1], pa.decimal128(3, 1)),
        }
    )
    stored = prepared(table, rule, KEY)
    assert stored.schema.types == [
        pa.int64(),
        pa.decimal128(38, 0),
        pa.float64(),
        pa.decimal128(38, 1),
        pa.int64(),
    ]
    assert stored.column("n").to_pylist() == [1]
    assert prepared(pa.table({"k": [1, 2], "n": ["x", None]}), rule, KEY).column("n").to_pylist() == [1, 1]


@pytest.mark.parametrize(
    ("column", "function"), [(["a"], "sum"), ([True], "sum"), ([[1]], "max"), ([{"a": 1}], "min")], ids=repr
)
def test_a_type_without_the_function_is_refused(column: list[Any], function: str) -> None:
    with pytest.raises(InvalidInput, match="field 'v'"):
        prepared(pa.table({"k": [1], "v": column}), aggregating(v=function), KEY)


@pytest.mark.parametrize("name", ["_seq", "_place"])
def test_the_names_of_hidden_columns_are_reserved(name: str) -> None:
    with pytest.raises(InvalidInput, match=f"field '{name}': the name is reserved"):
        check_names(["k", name])


# ---------------------------------------------------------------- declarations


def test_aggregates_are_spelled_field_by_field() -> None:
    assert parse_aggregates("a=sum, b = MAX,c=d=min") == {"a": "sum", "b": "max", "c=d": "min"}
    assert parse_aggregates("") == {}


@pytest.mark.parametrize("text", ["a", "=sum", "a=sum,", "a=sum,a=max"])
def test_what_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="aggregate"):
        parse_aggregates(text)


@pytest.mark.parametrize(
    ("kind", "aggregates"),
    [("heap", {}), ("append", {"v": "sum"}), ("aggregate", {"v": "avg"}), ("aggregate", {"k": "sum"})],
)
def test_a_pool_that_cannot_be_is_refused(kind: str, aggregates: dict[str, str]) -> None:
    with pytest.raises(InvalidInput):
        check_rule(kind, aggregates, KEY)
