"""The journal holds its invariants under every fault, and the checks bite where a rule is left out."""

from __future__ import annotations

import contextlib
import importlib
from unittest.mock import patch

import pytest

from lake_core.history import checkpoint as checkpoint_module
from lake_core.journal import Journal, LoadedState
from lake_core.journal import reader as reader_module
from lake_core.journal.marks import Marks
from lake_core.journal.recent import Recent
from tests.simulation.truth import Violation
from tests.simulation.world import failing_seeds, simulate

purge_module = importlib.import_module("lake_core.journal.purge")  # the package has a function of that name

SEEDS = 2_400
CHUNK = 100
ENOUGH_TO_FAIL = 1_000

pytestmark = pytest.mark.usefixtures("without_warnings")


def _nothing_is_behind(journal: object, head: object) -> bool:
    return False


def _nothing_is_purged(journal: object, n: int) -> bool:
    return False


RULES: dict[str, tuple[object, str, object, int]] = {
    "a reader looks for a fence": (Journal, "_is_behind", _nothing_is_behind, 27),
    "a writer looks for a fence": (Journal, "is_purged", _nothing_is_purged, 155),
    "a look for news looks for a fence": (reader_module, "marks_of", lambda names: Marks(), 628),
    "a state's checkpoint must not lie below the fence": (
        LoadedState,
        "floor",
        property(lambda head: head.version),
        92,
    ),
    "recent ids are looked up": (Recent, "find", lambda recent, id: None, 0),
    "recent ids are kept in checkpoints": (
        Recent,
        "of",
        classmethod(lambda cls, n, items, limits: Recent(n, limits=limits)),
        405,
    ),
    "a purge goes only up to a sound checkpoint": (purge_module, "is_sound", lambda journal, mark: True, 190),
    "a fence comes before what is deleted": (purge_module, "put_fence", lambda journal, n: True, 3),
    "what was removed is left out of a checkpoint": (
        checkpoint_module,
        "without",
        lambda table, gone: table,
        110,
    ),
}
"""Rules, how each is left out, and the first seed that fails then."""


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_no_fault_breaks_an_invariant(first: int) -> None:
    assert list(failing_seeds(range(first, first + CHUNK))) == []


@pytest.mark.parametrize("rule", RULES)
def test_a_seed_fails_where_a_rule_is_left_out(rule: str) -> None:
    """The seed that is known is tried first; others where a change of the code has made it another story."""
    owner, name, left_out, known = RULES[rule]
    for seed in (known, *range(ENOUGH_TO_FAIL)):
        with patch.object(owner, name, left_out), contextlib.suppress(Violation):
            simulate(seed)
            continue
        simulate(seed)
        return
    pytest.fail(f"none of {ENOUGH_TO_FAIL} seeds needs the rule")


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


def test_every_fault_and_every_outcome_comes_up() -> None:
    seen: set[str] = set()
    for seed in range(CHUNK):
        seen |= {what for what, times in simulate(seed).items() if times}
    expected = {"committed", "killed", "loaded", "looked back", "purged", "refused", "repeated", "told"}
    faults = {
        "half a put seen",
        "late",
        "long pause",
        "rotten",
        "strange answer of a create",
        "strange refusal",
    }
    together = {"combined", "replaces combined", "tombstones combined", "a new process after late damage"}
    assert expected | faults | together | {"unavailable", "unknown"} <= seen
