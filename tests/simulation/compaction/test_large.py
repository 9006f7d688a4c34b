"""A small pool of the same kind: jobs and depth keep their bounds, and zones are planned as the whole pool is."""

from __future__ import annotations

from functools import cache

import pytest

from lake_core.history.branch_state import BranchState
from log_lake.agents.compact.plan import plan_branch
from log_lake.compaction.ranges import apart, places
from tests.simulation.compaction.large import MB, SCENARIOS, Scale, lines, loads, pool_of, simulate
from tests.simulation.compaction.many_ranges import KEY, LargePool
from tests.simulation.compaction.one_journal import Bill, OneJournal, bytes_of

SCALE = Scale(references=2_000, ranges=20, workers=20, load=40 * MB, grains=400)
LOOKS, SEED = 10, 7


@cache
def pool(name: str) -> LargePool:
    return simulate(name, SCALE, looks=LOOKS, seed=SEED)


@pytest.mark.parametrize("name", SCENARIOS)
def test_after_each_look_the_pool_is_no_deeper_than_its_policy_and_what_came_meanwhile(name: str) -> None:
    assert all(hour.after <= SCALE.policy.depth + hour.since for hour in pool(name).hours)
    assert pool(name).bill.read > 0


@pytest.mark.parametrize("name", SCENARIOS)
def test_nothing_is_lost_by_jobs_and_splits(name: str) -> None:
    made = pool(name)
    before = sum(
        held.reference.size for zone in pool_of(name, SCALE, seed=SEED).zones for held in zone.held.values()
    )
    assert made.size == pytest.approx(before + made.loaded, rel=1e-3)


@pytest.mark.parametrize("name", SCENARIOS)
def test_zones_are_what_the_planner_keeps_apart(name: str) -> None:
    made = pool_of(name, SCALE, seed=SEED)
    made.run(loads(name, SCALE, looks=3, seed=SEED), looks=3)
    references = [r for zone in made.zones for r in zone.references]
    assert [len(group) for group in apart(references, made.points)] == [len(zone.held) for zone in made.zones]
    for zone in made.zones:
        zone.changed()
    branch = BranchState()
    plan = plan_branch(
        branch, references, made.policy, key=KEY, kind="append", now=made.hours[-1].time, points=made.points
    )
    found = {tuple(r.object for r in job.inputs) for job, _ in made.jobs()}
    assert found == {tuple(r.object for r in job.inputs) for job in plan.jobs}


def test_ranges_that_are_too_large_are_split_and_come_to_rest() -> None:
    made = pool("split")
    assert len(made.points) + 1 > SCALE.ranges // 10
    assert made.hours[0].jobs
    assert not made.hours[-1].jobs
    straddling = sum(len(places(r, made.points)) > 1 for zone in made.zones for r in zone.references)
    assert straddling < SCALE.ranges


def test_commits_that_come_while_an_entry_is_written_share_the_next_one() -> None:
    journal = OneJournal(Bill())
    ends = [journal.commit(at, bytes_of(removed=2, added=1)) for at in (10.0, 10.01, 10.02, 20.0)]
    assert (journal.commits, journal.entries, journal.fullest) == (4, 3, 2)
    assert ends[1] == ends[2] > ends[0]
    assert journal.bill.puts == 5


def test_what_it_shows_is_the_same_again() -> None:
    again = simulate("skewed", SCALE, looks=LOOKS, seed=SEED)
    printed = list(lines("skewed", again, SCALE, seed=SEED))
    assert printed == list(lines("skewed", pool("skewed"), SCALE, seed=SEED))
    assert printed[0].startswith("skewed: ")
