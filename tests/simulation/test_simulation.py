"""The journal holds its invariants under every fault, and the checks bite where a rule is left out."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Iterator
from unittest.mock import patch

import pytest

from lake_core.commits import checkpoint as checkpoint_module
from lake_core.journal import Head, Journal
from lake_core.journal import reader as reader_module
from lake_core.journal.marks import Marks
from lake_core.journal.recent import Recent
from tests.simulation.world import failing_seeds, simulate

purge_module = importlib.import_module("lake_core.journal.purge")  # the package has a function of that name

SEEDS = 2_400
CHUNK = 100
ENOUGH_TO_FAIL = 4_000
"""So many seeds are tried, up to the first that fails: most rules need a few, the rarest a thousand and more."""

REGRESSIONS: dict[str, int] = {
    "a reader is purged past between two requests": 6,
    "a writer stalls while its number is purged": 17,
    "a stale reader looks for news where everything was purged": 662,
    "an idle reader keeps a state whose checkpoint is purged": 192,
    "the look for a fence is refused after the entry was written": 833,
    "the log reads what a stalled writer wrote below the fence": 56,
    "a stalled writer finds its request in an entry below the fence": 518,
    "a token that a checkpoint had forgotten is used again": 486,
    "a source is refused, and later known in another form": 471,
    "a writer opens from a checkpoint and must know its own id": 54,
    "a request waits that was committed before": 57,
    "the same draft is tried again when its id is long forgotten": 2682,
    "an old state refuses what a newer one takes, and the store does not answer": 14020,
}
"""Seeds that fail where a rule is left out, or failed before there was one: faults that somebody could have had."""


def _nothing_is_behind(journal: object, head: object) -> bool:
    return False


def _nothing_is_purged(journal: object, n: int) -> bool:
    return False


RULES: dict[str, tuple[object, str, object]] = {
    "a reader looks for a fence": (Journal, "_is_behind", _nothing_is_behind),
    "a writer looks for a fence": (Journal, "is_purged", _nothing_is_purged),
    "a look for news looks for a fence": (reader_module, "marks_of", lambda names: Marks()),
    "a state's checkpoint must not lie below the fence": (Head, "floor", property(lambda head: head.n)),
    "recent ids are looked up": (Recent, "find", lambda recent, id: None),
    "recent ids are kept in checkpoints": (Recent, "of", classmethod(lambda cls, n, items: Recent(n))),
    "a purge goes only up to a sound checkpoint": (purge_module, "is_sound", lambda journal, mark: True),
    "a fence comes before what is deleted": (purge_module, "_put_fence", lambda journal, n: True),
    "what was removed is left out of a checkpoint": (checkpoint_module, "without", lambda table, gone: table),
}
"""Rules, and how each is left out."""


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


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 600, CHUNK))
def test_nothing_is_committed_to_a_pool_that_was_dropped_while_others_hold_it(first: int) -> None:
    assert list(failing_seeds(range(first, first + CHUNK), drops=True)) == []


def test_a_pool_is_dropped_before_between_and_after_the_work_of_those_who_hold_it() -> None:
    seen: set[str] = set()
    for seed in range(20):
        seen |= {what for what, times in simulate(seed, drops=True).items() if times}
    assert {"closed", "committed", "refused by a dropped pool"} <= seen


def test_a_seed_is_replayed_exactly() -> None:
    assert [simulate(seed) for seed in range(7)] == [simulate(seed) for seed in range(7)]


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
def test_seeds_fail_where_a_rule_is_left_out(rule: str) -> None:
    owner, name, left_out = RULES[rule]
    with patch.object(owner, name, left_out):
        assert list(failing_seeds(range(ENOUGH_TO_FAIL))) != []


def test_every_fault_and_every_outcome_comes_up() -> None:
    seen: set[str] = set()
    for seed in range(CHUNK):
        seen |= {what for what, times in simulate(seed).items() if times}
    expected = {"committed", "killed", "loaded", "looked back", "purged", "refused", "repeated", "told"}
    assert expected | {"combined", "unavailable", "unknown"} <= seen
