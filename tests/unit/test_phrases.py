"""Numbers as people read them."""

from __future__ import annotations

import pytest

from lake_core.phrases import counted, human_size


@pytest.mark.parametrize(("count", "said"), [(0, "0 objects"), (1, "1 object"), (1000, "1,000 objects")])
def test_a_number_of_things_is_said_with_the_right_noun(count: int, said: str) -> None:
    assert counted(count, "object") == said


def test_a_plural_without_an_s_is_given() -> None:
    assert [counted(n, "entry", "entries") for n in (1, 2)] == ["1 entry", "2 entries"]


@pytest.mark.parametrize(
    ("size", "said"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (4_700_000, "4.7 MB"), (3e9, "3.0 GB"), (2.5e15, "2500.0 TB")],
)  # fmt: skip
def test_a_size_has_a_decimal_unit(size: int, said: str) -> None:
    assert human_size(size) == said
