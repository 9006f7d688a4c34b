"""Two weeks of each load: depth and bytes written stay within what theory promises."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from xml.etree import ElementTree

import numpy as np
import pytest

from log_lake.agents.compact import plan_compaction
from tests.simulation.compaction import theory
from tests.simulation.compaction.loads import DAY, LOADS
from tests.simulation.compaction.picture import svg
from tests.simulation.compaction.report import DEFAULTS, Outcome, fitting, lines, simulate
from tests.simulation.compaction.world import KEY, World

DAYS, SEED = 14, 7
NEVER_DEEP = ("edges", "depth")
BOUNDED = [
    (load, strategy)
    for load in LOADS
    for strategy in fitting(load)
    if strategy != "full" and (load, strategy) != NEVER_DEEP
]
ROOMY = replace(DEFAULTS, max_inputs=1_000_000, max_bytes=1 << 60)
"""The depth is promised where no job is too large; what is cut overlaps at the cuts."""


@cache
def world(load: str, strategy: str) -> World:
    made = World(replace(ROOMY, strategy=strategy), every=DAY if strategy == "full" else 3600.0)
    made.run(LOADS[load](np.random.default_rng(SEED), DAYS))
    return made


def written(made: World) -> float:
    return made.written / sum(made.sizes)


@pytest.mark.parametrize(("load", "strategy"), BOUNDED)
def test_after_a_plan_the_pool_is_no_deeper_than_the_policy_and_what_came_meanwhile(
    load: str, strategy: str
) -> None:
    made = world(load, strategy)
    assert len(made.completed) > 50
    assert all(seen.deepest <= ROOMY.depth + seen.loads for seen in made.completed)


@pytest.mark.parametrize("load", LOADS)
def test_the_strategy_full_leaves_one_run_beside_the_loads_since(load: str) -> None:
    assert all(seen.deepest <= 1 + seen.loads for seen in world(load, "full").completed)


@pytest.mark.parametrize("load", LOADS)
def test_size_ratio_writes_no_more_than_a_logarithm(load: str) -> None:
    made = world(load, "size_ratio")
    assert 1.5 < written(made) <= theory.size_ratio_most(made.sizes, ratio=ROOMY.ratio)


@pytest.mark.parametrize("strategy", ["size_ratio", "time_window"])
def test_small_loads_that_are_never_deep_become_few_objects(strategy: str) -> None:
    made = world("edges", strategy)
    whole = sum(made.sizes) / ROOMY.target_size
    assert len(made.held) < 4 * whole + 100 < len(made.sizes) / 8


def test_depth_writes_at_least_what_every_such_strategy_must_and_at_most_twice_that() -> None:
    made = world("steady", "depth")
    least = theory.depth_least(made.looks, depth=ROOMY.depth)
    assert least <= written(made) <= 2 * least


def test_windows_are_written_once_more_when_they_close() -> None:
    made = world("late", "time_window")
    assert 1.5 < written(made) <= theory.window_most(made.sizes, policy=ROOMY, seconds=DAYS * DAY)


@pytest.mark.parametrize("load", LOADS)
def test_full_writes_all_at_each_look_at_most(load: str) -> None:
    made = world(load, "full")
    assert 1.5 < written(made) <= theory.full_most(looks=made.looks)


@pytest.mark.parametrize(("load", "strategy"), BOUNDED)
def test_a_pool_that_takes_no_more_loads_comes_to_rest(load: str, strategy: str) -> None:
    made = World(replace(DEFAULTS, strategy=strategy))
    made.run(LOADS[load](np.random.default_rng(SEED), 3))
    for _ in range(20):
        held = [h.reference for h in made.held.values()]
        plan = plan_compaction(held, made.policy, key=KEY, kind="append", now=made.moments[-1].time)
        if not plan.jobs:
            break
        for job in plan.jobs:
            made.finish(job)
    assert plan.jobs == ()
    assert plan.depth <= made.policy.depth


@pytest.mark.parametrize(
    ("depth", "looks", "least"),
    [(1, 1, 1.0), (1, 3, 2.0), (2, 3, 1 + 2 / 3), (8, 8, 1 + 7 / 8), (8, 9, 1 + 8 / 9)],
)
def test_the_binomial_floor_in_cases_that_are_counted_by_hand(depth: int, looks: int, least: float) -> None:
    assert theory.depth_least(looks, depth=depth) == pytest.approx(least)


def test_the_logarithm_of_equal_loads() -> None:
    assert theory.size_ratio_most([5] * 64, ratio=2.0) == pytest.approx(1 + 6)
    assert theory.size_ratio_most([5] * 64, ratio=8.0) == pytest.approx(1 + 2)


def test_a_seed_is_replayed_exactly_and_printed_and_drawn() -> None:
    def outcome() -> Outcome:
        return simulate("bursty", "size_ratio", days=8, seed=SEED)

    first, again = outcome(), outcome()
    assert first.world.moments == again.world.moments
    printed = list(lines([first], days=8, seed=SEED))
    assert printed[0].startswith("bursty: ")
    assert printed[0].endswith("in 8 days, seed 7")
    drawn = ElementTree.fromstring(svg([first]))
    assert len(drawn.findall(".//{http://www.w3.org/2000/svg}polyline")) == 2
