"""Columns from JSON values: the narrowest type that gives every value back."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lake_core.values.types import is_json, show_type
from log_lake.columns.json_text import json_lines
from log_lake.loading.formats.python_values import infer_field, table_from_records
from log_lake.objects.normalize import normalized
from tests.support.command import without_nulls


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([None, None], "null"),
        ([1, None], "bigint"),
        ([2**63], "uint64"),
        ([2**63, -1], "json"),
        ([2**64], "json"),
        ([1, 0.5], "double"),
        ([2**53, 0.5], "double"),
        ([2**53 + 1, 0.5], "json"),
        ([True], "boolean"),
        ([True, 1], "json"),
        (["x"], "string"),
        (["x", {}], "json"),
        ([{}], "json"),
        ([{}, {"x": 1}], "struct<x: bigint>"),
        ([{"x": {}}], "struct<x: json>"),
        ([[]], "list<null>"),
        ([[], [1], None], "list<bigint>"),
        ([[1, "x"]], "list<json>"),
        ([[{}]], "list<json>"),
        ([[[{"a": 1}], []]], "list<list<struct<a: bigint>>>"),
    ],
)
def test_the_type_follows_the_values(values: list[Any], shown: str) -> None:
    assert show_type(infer_field("f", values)) == shown


NUMBERS = st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
SCALARS = st.none() | st.booleans() | NUMBERS | st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
NAMES = st.sampled_from(["a", "a.b", "ü", ""])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(st.dictionaries(NAMES, VALUES, max_size=4), min_size=1, max_size=5))
def test_every_record_that_json_can_hold_comes_back_from_arrow(records: list[dict[str, Any]]) -> None:
    table = normalized(table_from_records(records, {}, otherwise=("k",)))
    assert table.num_rows == len(records)
    back = [json.loads(line) for line in json_lines(table).to_pylist()]
    assert without_nulls(back) == without_nulls(records)
    for given_, found in zip(records, back, strict=True):
        for name, value in found.items():
            assert type(value) is type(given_[name]) or {type(value), type(given_[name])} == {int, float}


def test_declared_fields_keep_their_type_whatever_the_values() -> None:
    table = table_from_records([{"a": None}, {}], {"a": pa.field("a", pa.date32())})
    assert table.schema.field("a").type == pa.date32()
    assert not is_json(table.schema.field("a"))
