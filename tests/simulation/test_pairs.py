"""Every two of those who work on a pool, under every fault; the documentation has the table of them."""

from __future__ import annotations

import threading

import pytest

from tests.simulation.pairs import (
    ACTORS,
    KINDS,
    PAIRS,
    PASTS,
    failing_pairs,
    names_of,
    past_of,
    simulate_pair,
)
from tests.simulation.table import names_in_page

SEEDS = 3 * len(PAIRS)
CHUNK = len(PAIRS) // 4

pytestmark = pytest.mark.usefixtures("without_warnings")


def test_every_two_actors_meet_once_and_each_meets_itself() -> None:
    assert {frozenset(pair) for pair in PAIRS} == {frozenset((a, b)) for a in ACTORS for b in ACTORS}
    assert [names_of(seed) for seed in range(len(PAIRS))] == PAIRS


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_no_pair_breaks_a_promise(first: int) -> None:
    assert list(failing_pairs(range(first, first + CHUNK))) == []


def test_a_seed_of_a_pair_is_replayed_exactly() -> None:
    first = [simulate_pair(seed) for seed in range(10)]
    past_of.cache_clear()
    assert [simulate_pair(seed) for seed in range(10)] == first


def test_on_a_machine_too_slow_for_its_clock_no_thread_keeps_the_lease_of_a_killed_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The pauses of all threads are over at once; a lease was left over by this seed."""
    wait = threading.Event.wait
    monkeypatch.setattr(threading.Event, "wait", lambda self, pause=None: wait(self, pause and 1e-4))
    assert simulate_pair(40745)["killed"]


def test_a_past_has_what_pairs_need() -> None:
    for kind in KINDS:
        states = [past_of(kind, number).truth.states[-1] for number in range(PASTS)]
        assert any(len(state.branches) > 1 for state in states)
        assert any(len(state.tags) for state in states)
        assert any(not state.removed.is_empty() for state in states)


def test_the_documentation_has_the_actors_of_the_code() -> None:
    assert names_in_page() == list(ACTORS)
