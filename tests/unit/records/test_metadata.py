"""Metadata of transactions: what a writer may give, to the last pair, character and byte."""

from __future__ import annotations

from typing import Any

import pytest

from lake_core.errors import InvalidInput
from lake_core.records.metadata import MAX_NAME, MAX_PAIRS, MAX_VALUE, check_metadata, check_text


def test_metadata_up_to_the_limits_are_given_back_by_name() -> None:
    most = {f"n{number:02d}": "x" for number in reversed(range(MAX_PAIRS))}
    assert list(check_metadata(most)) == sorted(most)
    assert check_metadata({"n" * MAX_NAME: "é" * (MAX_VALUE // 2)})


@pytest.mark.parametrize(
    "metadata",
    [
        {f"n{number}": "x" for number in range(MAX_PAIRS + 1)},
        {"": "x"},
        {"n" * (MAX_NAME + 1): "x"},
        {"a\nb": "x"},
        {"n": "x" * (MAX_VALUE + 1)},
        {"n": "é" * (MAX_VALUE // 2) + "x"},
        {"n": 5},
        {"n": b"x"},
        {"n": None},
    ],
    ids=lambda one: str(one)[:20],
)
def test_what_no_transaction_holds_is_refused(metadata: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=r"metadata"):
        check_metadata(metadata)


@pytest.mark.parametrize("text", [5, b"x", None, ["x"]], ids=repr)
def test_a_message_that_is_no_text_is_refused_and_shown(text: Any) -> None:
    with pytest.raises(InvalidInput, match="message: must be a text"):
        check_text("message", text)
