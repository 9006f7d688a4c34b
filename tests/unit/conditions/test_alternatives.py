"""Fewer conditions instead of many; that they hold of the same records is a property test."""

from __future__ import annotations

import pyarrow as pa

from lake_core.conditions import Compare, In
from lake_core.values.types import json_field
from log_lake.where import alternatives, check, parse, show


def fewer(*texts: str) -> list[str]:
    return [show(condition) for condition in alternatives([parse(text) for text in texts])]


def test_tests_for_equality_of_a_field_become_one() -> None:
    assert fewer("v = 3", "v = 1 or v in (2, 3)", "w = 1") == ["v in (1, 2, 3)", "w in (1)"]


def test_what_is_no_test_for_equality_stays_and_stands_once() -> None:
    assert fewer("v > 1", "v = 1 and w = 2", "v > 1") == ["v > 1", "v = 1 and w = 2"]


def test_values_of_two_kinds_are_put_together_since_each_record_looks_for_its_own() -> None:
    assert fewer("v = 1", "v = 'a'", "v in (null, 'b')", "v in (null, 2)") == ["v in (1, 2, 'a', 'b')"]


def test_what_a_text_may_be_read_as_is_kept() -> None:
    schema = pa.schema([json_field("v")])
    day, noon = check("v = '2026-01-31'", schema), check("v in ('12:00', null)", schema)
    assert isinstance(day, Compare)
    assert isinstance(noon, In)
    assert (len(day.readings), len(noon.readings)) == (3, 1)
    (found,) = alternatives([day, noon])
    assert found == In(
        ("v",),
        tuple(sorted([day.value, noon.values[1]])),
        tuple(sorted([*day.readings, *noon.readings])),
    )


def test_a_comparison_with_null_leaves_no_alternative() -> None:
    assert fewer("v = null", "v in (null)") == []
