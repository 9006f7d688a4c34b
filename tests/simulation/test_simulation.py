"""The journal holds its invariants under every fault, and the checks bite where a rule is left out."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from unittest.mock import patch

import pytest

from lake_core.journal import Journal
from lake_core.journal.recent import Recent
from tests.simulation.world import failing_seeds, simulate

SEEDS = 2_400
CHUNK = 100
ENOUGH_TO_FAIL = 400

REGRESSIONS: dict[str, int] = {
    "a purge between a reader's requests; a zombie below the fence": 10,
    "a writer that stalls while its number is purged": 21,
    "a stale reader looks for news where everything was purged": 33,
    "a request is committed by somebody else while its writer stalls": 6,
}
"""Seeds that fail where a rule is left out; each was a fault that somebody could have had."""


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Checkpoints that are passed over are expected here, and said thousands of times."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_no_fault_breaks_an_invariant(first: int) -> None:
    assert list(failing_seeds(range(first, first + CHUNK))) == []


@pytest.mark.parametrize("seed", REGRESSIONS.values(), ids=REGRESSIONS.keys())
def test_what_once_could_fail_does_not(seed: int) -> None:
    simulate(seed)


def test_a_seed_is_replayed_exactly() -> None:
    assert simulate(7) == simulate(7)


@pytest.mark.parametrize(
    ("rule", "left_out"),
    [
        ("_is_behind", lambda journal, head: False),
        ("_is_purged", lambda journal, n: False),
    ],
    ids=["the reader's look for a fence", "the writer's look for a fence"],
)
def test_seeds_fail_where_a_fence_check_is_left_out(rule: str, left_out: object) -> None:
    with patch.object(Journal, rule, left_out):
        assert list(failing_seeds(range(ENOUGH_TO_FAIL))) != []


def test_seeds_fail_where_recent_ids_are_not_looked_up() -> None:
    with patch.object(Recent, "find", lambda recent, id: None):
        assert list(failing_seeds(range(ENOUGH_TO_FAIL))) != []
