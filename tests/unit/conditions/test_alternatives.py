"""Fewer conditions instead of many; that they hold of the same records is a property test."""

from __future__ import annotations

from lake_core.conditions import alternatives, parse, show


def fewer(*texts: str) -> list[str]:
    return [show(condition) for condition in alternatives([parse(text) for text in texts])]


def test_tests_for_equality_of_a_field_become_one() -> None:
    assert fewer("v = 3", "v = 1 or v in (2, 3)", "w = 1") == ["v in (1, 2, 3)", "w in (1)"]


def test_what_is_no_test_for_equality_stays_and_stands_once() -> None:
    assert fewer("v > 1", "v = 1 and w = 2", "v > 1") == ["v > 1", "v = 1 and w = 2"]


def test_values_of_two_kinds_are_not_put_together() -> None:
    assert fewer("v = 1", "v = 'a'", "v in (null, 'b')", "v in (null, 2)") == [
        "v in (1, 2)",
        "v in ('a', 'b')",
    ]


def test_nothing_equals_null() -> None:
    assert fewer("v = null", "v in (null)") == []
