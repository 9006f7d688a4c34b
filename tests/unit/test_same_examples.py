"""Every property, in whatever folder and run alone or not, tries the same examples, and none is too slow."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st


def test_examples_are_the_same_on_each_machine_and_have_no_time() -> None:
    now = settings()
    assert (now.derandomize, now.database, now.deadline) == (True, None, None)


def test_a_property_is_tried_with_the_same_examples_twice() -> None:
    def tried() -> list[int]:
        seen: list[int] = []

        @given(st.integers())
        def keep(number: int) -> None:
            seen.append(number)

        keep()
        return seen

    first = tried()
    assert len(set(first)) > 10
    assert tried() == first
