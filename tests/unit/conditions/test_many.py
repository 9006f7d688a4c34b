"""How many conditions are evaluated at once; that the answers are right is a property test."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from lake_core.values.types import json_field
from log_lake.where import Many, check
from log_lake.where import many as module
from log_lake.where.segments import segments

RECORDS = pa.table(
    {"k": range(1_000), "s": [f"s{k % 50}" for k in range(1_000)], "w": [k * 0.5 for k in range(1_000)]}
)


@pytest.mark.parametrize(
    ("where", "most"),
    [
        ("k = {n}", 1),
        ("s = 's{n}'", 1),
        ("k between {n} and {n} + 3", 1),
        ("w > {n}.25 and w <= {n}.75", 1),
        ("k = {n} and w < {n}", 1),
        ("s = 's{n}' and w < {n}", 20),  # a guide that repeats lies in a layer of its own
    ],
)
def test_conditions_of_one_kind_are_evaluated_together(where: str, most: int) -> None:
    texts = [where.replace("{n} + 3", str(n + 3)).replace("{n}", str(n)) for n in range(500)]
    many = Many((check(text, RECORDS.schema), n + 1) for n, text in enumerate(texts))
    assert len(many._ways(RECORDS.schema)) <= most
    assert many.newest(RECORDS).shape == (1_000,)


def test_equality_tests_of_a_field_of_json_become_one_whose_values_each_record_compares_with_its_own() -> (
    None
):
    field = json_field("v")
    values = [json.dumps(value) for value in (1, "a", None, 2.5)]
    records = pa.table([pa.array(values, pa.string())], schema=pa.schema([field]))
    conditions = [check(text, records.schema) for text in ("v = 1", "v = 'a'", "v in (null, 7)", "v = null")]
    many = Many((condition, 3) for condition in conditions)
    assert len(many._ways(records.schema)) == 1
    assert many.newest(records).tolist() == [3, 3, 0, 0]


def test_few_conditions_are_compared_one_by_one_and_very_deep_guides_too() -> None:
    few = Many((check(f"k > {n}", RECORDS.schema), 1) for n in range(module.FEW))
    assert len(few._ways(RECORDS.schema)) == module.FEW
    deep = Many((check(f"k between 5 and {n} and w < {n}", RECORDS.schema), n) for n in range(10, 60))
    assert module.MOST_LAYERS < len(deep._ways(RECORDS.schema)) <= 50
    assert set(deep.newest(RECORDS).tolist()) == {0, 59}


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        ([], ([], [])),
        ([(1, 3, 7)], ([1, 3], [7, 0])),
        ([(1, 9, 5), (2, 4, 7), (4, 6, 6)], ([1, 2, 4, 6, 9], [5, 7, 6, 5, 0])),
        ([(1, None, 2), (1, 3, 2)], ([1], [2])),
        ([(1, 3, 2), (5, None, 9), (7, 8, 1)], ([1, 3, 5], [2, 0, 9])),
    ],
)
def test_segments_have_the_greatest_mark_of_the_spans_over_them(
    spans: list[tuple[int, int | None, int]], expected: tuple[list[int], list[int]]
) -> None:
    assert segments(spans) == expected
