"""Content sums: equal records give equal sums in any order, cut and type; any single change gives another."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lake_core.errors import Corrupt, InvalidInput
from lake_core.schemas.schema import unite_fields, unite_schemas
from lake_core.values.numbers import as_class
from lake_core.values.types import json_field
from log_lake.columns.cast import cast_table
from log_lake.columns.json_text import typed
from log_lake.content.content import ContentSum, content_of, json_everywhere
from log_lake.content.values import value_hashes
from log_lake.objects.normalize import normalized
from log_lake.texts.fit import array_of
from tests.properties.test_nested import arrays
from tests.support.values import TYPES, columns


def content(array: pa.Array, field: pa.Field | None = None) -> ContentSum:
    field = pa.field("f", array.type) if field is None else field
    return content_of(pa.table([array], schema=pa.schema([field])))


@given(columns(), st.randoms(use_true_random=False))
def test_order_and_cuts_do_not_matter(column: pa.Array, rng: random.Random) -> None:
    places = list(range(len(column)))
    rng.shuffle(places)
    cut = rng.randrange(len(column) + 1)
    shuffled = column.take(pa.array(places, pa.int64()))
    table = pa.table({"f": pa.chunked_array([shuffled[cut:], shuffled[:cut]], column.type)})
    parts = content_of(table.slice(0, cut)) + content_of(table.slice(cut))
    assert content(column) == content_of(table) == parts
    assert parts - content_of(table) == ContentSum()


@given(columns())
def test_typed_json_has_the_content_of_the_values(column: pa.Array) -> None:
    texts = typed(pa.chunked_array([column]), pa.field("f", column.type)).combine_chunks()
    assert content(texts, json_field("f")) == content(column)


@settings(max_examples=60)
@given(arrays())
def test_nested_values_have_the_content_of_their_typed_json(array: pa.Array) -> None:
    texts = typed(pa.chunked_array([array], array.type), pa.field("f", array.type)).combine_chunks()
    assert content(texts, json_field("f")) == content(array)


@settings(max_examples=80)
@given(columns(), columns())
def test_uniting_changes_no_content(one: pa.Array, other: pa.Array) -> None:
    tables = [normalized(pa.table({"f": column})) for column in (one, other)]
    united = unite_schemas(table.schema for table in tables)
    for table, column in zip(tables, (one, other), strict=True):
        assert content_of(cast_table(table, united, what="test")) == content_of(table) == content(column)


@settings(max_examples=50)
@given(arrays(), arrays())
def test_uniting_nested_values_changes_no_content(one: pa.Array, other: pa.Array) -> None:
    tables = [normalized(pa.table({"f": array})) for array in (one, other)]
    united = unite_schemas(table.schema for table in tables)
    for table in tables:
        assert content_of(cast_table(table, united, what="test")) == content_of(table)


NUMERIC = [pa.int64(), pa.uint64(), pa.float64(), pa.float32(), pa.decimal128(38, 10), pa.decimal128(9, 2)]
CLOSE: list[Any] = [0, 1, -1, 5, 2**53, 2**53 + 1, -(2**53) - 1, 2**62 + 1, 2**63 - 1]
CLOSE += [0.5, 0.1, 0.30000000000000004, 1e15 + 0.5, -0.25, math.inf, math.nan, float(2**62)]
CLOSE += [decimal.Decimal(text) for text in ("0.1", "0.10000000000000001", "5.00", "9007199254740993", "0.5")]


def held(value: Any) -> list[pa.Array]:
    """The value in every type that holds it exactly."""
    found = []
    for kind in NUMERIC:
        try:
            array = pa.array([value]).cast(kind)
            back = array.cast(pa.array([value]).type)[0].as_py()
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            continue
        if back == value or value != value:
            found.append(array)
    return found


def test_numbers_have_one_content_if_and_only_if_they_compare_as_equal() -> None:
    def equal(one: Any, other: Any) -> bool:
        if one != one or other != other:
            return one != one and other != other
        kind = "decimal" if isinstance(one, decimal.Decimal) else "number"
        asked = as_class("=", other, kind)
        return one == asked[1] if isinstance(asked, tuple) else bool(asked)

    for one in CLOSE:
        for other in CLOSE:
            hashes = [value_hashes(pa.array([v]), pa.field("f", pa.array([v]).type))[0] for v in (one, other)]
            assert (hashes[0] == hashes[1]) == equal(one, other), (one, other)


@given(st.sampled_from([v for v in CLOSE if not isinstance(v, decimal.Decimal)]))
def test_a_number_has_one_content_in_every_type(value: Any) -> None:
    assert len({content(array) for array in held(value)}) == 1


def test_equal_values_of_other_forms() -> None:
    texts = pa.array(["a", "b", "a", None] * 700)
    assert content(texts) == content(texts.dictionary_encode())
    assert content(texts) == content(texts.cast(pa.large_string())) == content(texts.cast(pa.string_view()))
    assert content(pa.array([0.0, math.nan])) == content(pa.array([-0.0, -math.nan]))
    assert content(pa.array([1500], pa.timestamp("ms"))) == content(
        pa.array([1_500_000_000], pa.timestamp("ns"))
    )
    assert content(pa.array([b"abc"], pa.binary(3))) == content(pa.array([b"abc"]))
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array(["x", "y"]))
    assert content(runs) == content(pa.array(["x", "x", "y"]))
    one, other = ({"a": 1, "b": 2}, {"b": 2, "a": 1})
    maps = [pa.array([list(v.items())], pa.map_(pa.string(), pa.int64())) for v in (one, other)]
    assert content(maps[0]) == content(maps[1])


def test_a_field_that_is_null_counts_as_one_that_is_missing() -> None:
    plain = pa.table({"k": [1, 2], "v": ["a", None]})
    more = plain.append_column("w", pa.nulls(2, pa.int64()))
    assert content_of(more.select(["w", "v", "k"])) == content_of(plain)
    assert content_of(plain.drop_columns("v")) != content_of(plain)


def test_what_differs_in_meaning_has_another_content() -> None:
    different: list[pa.Array] = [
        pa.array([1]),
        pa.array(["1"]),
        pa.array([b"1"]),
        pa.array([True]),
        pa.array([1], pa.date32()),
        pa.array([1], pa.timestamp("us")),
        pa.array([1], pa.timestamp("us", "UTC")),
        pa.array([1], pa.time64("us")),
        pa.array([1], pa.duration("us")),
        pa.array([None], pa.int64()),
        pa.array([[1]]),
        pa.array([[1, None]]),
        pa.array([[None, 1]]),
        pa.array([[]], pa.list_(pa.int64())),
        pa.array([{"a": 1}]),
        pa.array([{"b": 1}]),
        pa.array([{"a": None}], pa.struct([("a", pa.int64())])),
        pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
        pa.array([[(1, "a")]], pa.map_(pa.int64(), pa.string())),
    ]
    assert len({content(array) for array in different}) == len(different)


def test_a_text_that_is_not_json_and_a_type_that_no_object_holds() -> None:
    with pytest.raises(Corrupt, match="field 'f' holds a text that is not JSON"):
        content(pa.array(["{"]), json_field("f"))
    assert (
        content_of(pa.table([pa.array(["{"])], schema=pa.schema([json_field("f")])), as_text=["f"]).records
        == 1
    )
    with pytest.raises(InvalidInput, match="have no content sum"):
        content(pa.array([(1, 2, 3)], pa.month_day_nano_interval()))


@pytest.mark.parametrize("most", [8, 64, 300])
def test_a_text_has_one_content_wherever_it_lies(most: int) -> None:
    rng = random.Random(most)
    texts = ["".join(rng.choices("abc", k=rng.randrange(most))) for _ in range(300)]
    hashes = value_hashes(pa.array(texts), pa.field("f", pa.string()))
    assert len(set(zip(texts, hashes.tolist(), strict=True))) == len(set(texts)) == len(set(hashes.tolist()))
    for at in range(0, 300, 7):
        alone = value_hashes(pa.array(texts).slice(at, 5), pa.field("f", pa.string()))
        assert alone.tolist() == hashes[at : at + 5].tolist()


def test_json_everywhere_is_json_in_all_schemas_that_have_it() -> None:
    schemas = [pa.schema([json_field("a"), json_field("b")]), pa.schema([("b", pa.int64()), json_field("c")])]
    assert json_everywhere(schemas) == {"a", "c"}
    assert unite_fields(schemas[0].field("b"), schemas[1].field("b")) == json_field("b")


# --- any single change


def a_table(rng: np.random.Generator, rows: int) -> pa.Table:
    """Few distinct values, so that equal records and equal values of several fields are common."""
    small = lambda most: rng.integers(0, most, rows)  # noqa: E731
    words = np.array(["", "a", "aa", "ab", "ba", "b\0", "\0b", "long " * 9])
    return pa.table(
        {
            "k": pa.array(small(5)),
            "l": pa.array(small(5)),
            "d": pa.array(small(4) / 4, mask=small(5) == 0),
            "s": pa.array(words[small(len(words))]),
            "t": pa.array(words[small(len(words))]),
            "when": pa.array(small(9) * 1_000_000, pa.timestamp("us")),
            "price": pa.array([decimal.Decimal(int(n)).scaleb(-2) for n in small(300)], pa.decimal128(15, 2)),
            "list": pa.array(
                [[int(x) for x in rng.integers(0, 3, n)] for n in small(4)], pa.list_(pa.int64())
            ),
        }
    )


def changed(table: pa.Table, rng: np.random.Generator) -> list[dict[str, Any]]:
    """The records after one change: one dropped, doubled, or with another value; or two values swapped."""
    records: list[dict[str, Any]] = table.to_pylist()
    at = int(rng.integers(len(records)))
    names = table.schema.names
    match rng.integers(5):
        case 0:
            del records[at]
        case 1:
            records.append(records[at])
        case 2:
            name = names[rng.integers(len(names))]
            records[at][name] = records[int(rng.integers(len(records)))][name]
        case 3:
            one, other = (("k", "l"), ("s", "t"))[rng.integers(2)]
            records[at][one], records[at][other] = records[at][other], records[at][one]
        case _:
            records[at][names[rng.integers(len(names))]] = None
    return records


def as_multiset(records: list[dict[str, Any]]) -> list[str]:
    return sorted(map(repr, records))


def test_thousands_of_single_changes_are_all_seen() -> None:
    rng = np.random.default_rng(36)
    seen = 0
    for _ in range(100):
        table = a_table(rng, int(rng.integers(1, 24)))
        before = content_of(table)
        for _ in range(20):
            records = changed(table, rng)
            after = content_of(pa.Table.from_pylist(records, table.schema))
            differs = as_multiset(records) != as_multiset(table.to_pylist())
            assert (after != before) == differs
            seen += differs
    assert seen > 1_400


@pytest.mark.parametrize(("kind", "values"), TYPES, ids=[str(kind) for kind, _ in TYPES])
def test_two_values_have_one_content_only_if_they_are_equal(kind: pa.DataType, values: Any) -> None:
    @settings(max_examples=15)
    @given(values, values)
    def holds(one: Any, other: Any) -> None:
        same = one == other or (one != one and other != other)
        assert (content(array_of([one], kind)) == content(array_of([other], kind))) == same

    holds()


def test_a_content_as_text() -> None:
    assert str(ContentSum(2, 2**63 + 1)) == "2 records, content sum 8000000000000001"


def test_sums_stay_the_same_in_later_releases() -> None:
    """Users write sums down: a change of these is a change of what they mean."""
    when = dt.datetime(2026, 1, 31, 12, 0, 0, 500, dt.UTC)
    table = pa.table(
        {
            "n": [1, -(2**63), None],
            "x": [0.5, math.nan, -0.0],
            "d": pa.array([decimal.Decimal("1.10"), decimal.Decimal("12345678901234567.89"), None]),
            "s": ["a", "", "é"],
            "b": [b"a", b"", None],
            "t": pa.array([when, None, when], pa.timestamp("us", "UTC")),
            "l": [[1, 2], [], None],
            "m": pa.array([[("a", 1)], [], None], pa.map_(pa.string(), pa.int64())),
            "r": [{"x": 1, "y": None}, {"x": None, "y": True}, None],
        }
    )
    assert content_of(table).sum == "380f2907f9ca9731"
