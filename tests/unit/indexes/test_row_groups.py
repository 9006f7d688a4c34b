"""An index of row groups names each group that holds a value, and knows nothing of a field with many values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lake_core.errors import Corrupt
from log_lake.indexes.row_groups import MOST_BODY, MOST_DISTINCT, body_of, groups_with

GROUPS = st.lists(st.sets(st.integers(0, 2**64 - 1) | st.integers(0, 9), max_size=9), max_size=20)


@settings(max_examples=100, deadline=None)
@given(GROUPS, st.sets(st.integers(0, 9), max_size=4))
def test_each_group_with_a_value_is_named_and_no_other(groups: list[set[int]], wanted: set[int]) -> None:
    body = body_of([np.array(sorted(group), np.uint64) for group in groups])
    values = len(set().union(*groups))
    expected = frozenset(number for number, group in enumerate(groups) if group & wanted)
    assert groups_with(body, values, wanted) == expected


def test_many_values_or_groups_have_no_body() -> None:
    numbers = np.arange(MOST_DISTINCT + 1, dtype=np.uint64)
    assert body_of([numbers]) == b""
    assert groups_with(b"", len(numbers), [1]) is None
    assert len(body_of([numbers[1:]])) > 8
    assert body_of([numbers[1:]] * (8 * MOST_BODY // MOST_DISTINCT)) == b""


@pytest.mark.parametrize("size", [7, 8, 15, 100])
def test_a_body_of_another_size_is_corrupt(size: int) -> None:
    body = body_of([np.array([1, 2], np.uint64)] * 3)
    assert size != len(body)
    with pytest.raises(Corrupt, match="does not fit"):
        groups_with((body + bytes(100))[:size], 2, [1])
