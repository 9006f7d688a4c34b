"""The journal holds its invariants under every fault, and the checks bite where a rule is left out."""

from __future__ import annotations

import pytest

from tests.simulation.rules import ENOUGH, RULES
from tests.simulation.world import failing_seeds, simulate

SEEDS = 1_200
CHUNK = 100

pytestmark = pytest.mark.usefixtures("without_warnings")


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_no_fault_breaks_an_invariant(first: int) -> None:
    assert list(failing_seeds(range(first, first + CHUNK))) == []


@pytest.mark.parametrize("rule", RULES)
def test_a_seed_fails_where_a_rule_is_left_out(rule: str) -> None:
    assert RULES[rule].fails(), f"none of {ENOUGH} seeds needs the rule"


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
