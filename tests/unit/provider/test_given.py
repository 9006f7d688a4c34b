"""What templates filled in: texts when a task runs, or one clear line."""

from __future__ import annotations

import datetime as dt
import decimal
from typing import Any

import pytest
from markupsafe import Markup

from airflow_lake import given
from lake_core.errors import InvalidInput


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("k = 1", "k = 1"),
        (20240101, "20240101"),
        (1.5, "1.5"),
        (decimal.Decimal("1.50"), "1.50"),
        (dt.date(2026, 1, 31), "2026-01-31"),
        (dt.datetime(2026, 1, 31, tzinfo=dt.UTC), "2026-01-31T00:00:00+00:00"),
    ],
)
def test_numbers_and_times_of_native_templates_are_the_texts_of_ordinary_ones(value: Any, text: str) -> None:
    assert given.text(value, "low", task="t") == text


@pytest.mark.parametrize(
    "value", [None, "", "  ", "None", "nan", "NaT", float("nan"), float("-inf")], ids=repr
)
def test_a_parameter_that_is_given_must_hold_something(value: Any) -> None:
    with pytest.raises(InvalidInput, match=r"^t: low is empty after its template was filled in"):
        given.text_if_given(value, "low", task="t", asked="{{ params.low }}")


def test_a_parameter_that_is_not_given_stays_so_and_none_can_be_meant_as_a_text() -> None:
    assert given.text_if_given(None, "low", task="t", asked=None) is None
    assert given.text_if_given("None", "low", task="t", asked="None") == "None"
    assert (
        given.text_or_empty(None, "message", task="t") == given.text_or_empty("", "message", task="t") == ""
    )


def test_an_escaped_text_of_a_template_is_a_text() -> None:
    """Jinja's `escape` and `tojson` give Markup, which no record can store."""
    texts = [given.text(Markup("a<b"), "where", task="t"), *given.texts(Markup("a<b"), "files", task="t")]
    assert [(text, type(text)) for text in texts] == [("a<b", str)] * 2


@pytest.mark.parametrize("value", [True, b"k", ["k"], {"k": 1}], ids=repr)
def test_what_is_no_text_is_refused_with_its_value(value: Any) -> None:
    with pytest.raises(InvalidInput, match=r"^t: where must be a text \(got "):
        given.text(value, "where", task="t")


def test_one_text_is_a_list_of_one_and_a_list_holds_no_empty_ones() -> None:
    assert given.texts("2026-01-31", "partitions", task="t") == ["2026-01-31"]
    assert given.texts(("a", 2), "partitions", task="t") == ["a", "2"]
    assert given.texts([], "files", task="t") == []
    assert given.texts(["nan", "inf"], "pools", task="t") == ["nan", "inf"], "pools may be called so"
    assert given.text("nan", "pool_name", task="t") == "nan"
    for wrong in (None, "", [""], [None], {"a": "b"}, b"a", {"a"}):
        with pytest.raises(InvalidInput, match=r"^t: files "):
            given.texts(wrong, "files", task="t")


@pytest.mark.parametrize("value", ["['in/a.csv']", '["a", "b"]', " []", "[('a', 1)]"])
def test_a_list_that_a_template_made_a_text_is_no_name(value: str) -> None:
    """No file has such a name: a replace that allows missing files would remove what it should bring."""
    with pytest.raises(InvalidInput, match=r"^t: files is a list that became a text .* nothing was done"):
        given.texts(value, "files", task="t")


def test_a_pattern_in_brackets_is_a_name() -> None:
    names = ["[ab].csv", "[0-9]*", "[", "in/['a']", "[a]"]
    assert [given.texts(name, "files", task="t") for name in names] == [[name] for name in names]


def test_options_are_texts_by_name() -> None:
    asked = {"csv.header": True, "bad_records": "quarantine", "limit": 1, "csv.null": ""}
    expected = {"csv.header": "true", "bad_records": "quarantine", "limit": "1", "csv.null": ""}
    assert given.texts_by_name(asked, "options", task="t") == expected
    assert given.texts_by_name(None, "options", task="t") == {}
    for wrong in ("{}", ["a"], {1: "a"}, {"a": None}, {"a": []}):
        with pytest.raises(InvalidInput, match=r"^t: options "):
            given.texts_by_name(wrong, "options", task="t")


@pytest.mark.parametrize("value", ["", None, "None", " "], ids=repr)
def test_a_parameter_with_a_default_has_it_only_if_the_dag_leaves_it_empty(value: Any) -> None:
    with pytest.raises(InvalidInput, match="t: lake is empty after its template was filled in"):
        given.text_or_empty(value, "lake", task="t", asked="{{ params.lake }}")
    assert given.text_or_empty("", "lake", task="t", asked="") == ""
    assert given.text_or_empty("my_lake", "lake", task="t", asked="{{ params.lake }}") == "my_lake"


def test_a_count_of_thousands_of_digits_is_no_count() -> None:
    with pytest.raises(InvalidInput, match="must be a whole number"):
        given.count("9" * 5_000, "limit", task="t")
