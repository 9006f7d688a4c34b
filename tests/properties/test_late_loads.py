"""A rebuild finds the loads whose age two clocks tell differently as their definition says, with few steps."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lake_core.keys import KeyRange
from log_lake.repair import rebuild_late
from log_lake.repair.rebuild_candidate import Candidate
from log_lake.repair.rebuild_late import LATE, contradicted
from log_lake.repair.rebuild_plan import Piece

KEYS = st.integers(0, 9)


def a_load(
    number: int, *, created: int, appeared: float, by: str, sub: str, low: int, width: int | None
) -> Piece:
    high = None if width is None else bytes([low + width])
    candidate = Candidate(
        f"object {number}",
        size=1,
        created=float(created),
        appeared=appeared,
        transaction_id=by,
        sub_pool=sub,
        low=bytes([low]),
        high=high or b"\xff",
    )
    return Piece(candidate, KeyRange(bytes([low]), high))


@st.composite
def loads(draw: st.DrawFn) -> list[Piece]:
    return [
        a_load(
            number,
            created=draw(st.integers(1, 30)),
            appeared=draw(st.integers(1, 60)) / 1.0,
            by=draw(st.sampled_from("abcd")),
            sub=draw(st.sampled_from(["", "", "$nokey"])),
            low=draw(KEYS),
            width=draw(st.none() | st.integers(1, 4)),
        )
        for number in range(draw(st.integers(0, 12)))
    ]


def disputed(pieces: list[Piece]) -> tuple[str, ...]:
    """The definition, pair by pair."""
    newest = max((p.candidate.created for p in pieces), default=0.0)
    if all(p.candidate.appeared > newest + LATE for p in pieces):
        return ()
    return tuple(
        sorted(
            {
                one.candidate.object
                for one, other in product(pieces, pieces)
                if one.candidate.appeared > one.candidate.created + LATE
                and one.candidate.created < other.candidate.created
                and one.candidate.appeared > other.candidate.appeared
                and one.candidate.transaction_id != other.candidate.transaction_id
                and one.candidate.sub_pool == other.candidate.sub_pool
                and one.key_range.overlaps(other.key_range)
            }
        )
    )


@given(loads())
def test_they_are_those_of_the_definition(pieces: list[Piece]) -> None:
    assert contradicted(pieces) == disputed(pieces)


def test_a_lake_that_was_copied_in_part_costs_few_steps_for_each_load(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All loads but one are late, and none is disputed: each would be compared with all others."""
    count, steps = 2_000, 0
    nodes = rebuild_late._above

    def counted(leaf: int) -> list[int]:
        nonlocal steps
        steps += 1
        return list(nodes(leaf))

    monkeypatch.setattr(rebuild_late, "_above", counted)
    late = [
        a_load(n, created=n, appeared=10_000.0 + n, by=str(n), sub="", low=n % 200, width=3)
        for n in range(count)
    ]
    early = a_load(count, created=count, appeared=float(count), by="early", sub="", low=250, width=1)
    assert contradicted([*late, early]) == ()
    assert steps <= 4 * (count + 1)
