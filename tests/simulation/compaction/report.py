"""What was simulated, and how it is printed: for each load a table, by strategy and by week."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np

from log_lake.agents.compact import policy_of
from log_lake.settings import Settings
from tests.simulation.compaction import theory
from tests.simulation.compaction.loads import BEGIN, DAY, HOUR, LOADS, MB
from tests.simulation.compaction.world import Moment, World

WEEK = 7 * DAY
STRATEGIES = {"size_ratio": "#0072b2", "depth": "#d55e00", "time_window": "#009e73", "full": "#888888"}
"""The strategies that are simulated, and the colour of each in the picture."""

DEFAULTS = policy_of(Settings({}))


@dataclass(frozen=True)
class Outcome:
    """One load under one strategy; `bound` is what theory says of the bytes written for each byte loaded.

    It is "none" for a strategy that `theory` does not know.
    """

    load: str
    strategy: str
    world: World
    bound: str

    def weeks(self, of: Callable[[Moment], float]) -> list[float]:
        """A measure's mean in each week."""
        weeks: dict[int, list[float]] = {}
        for moment in self.world.moments:
            weeks.setdefault(int((moment.time - BEGIN) // WEEK), []).append(of(moment))
        return [fmean(seen) for seen in weeks.values()]


def simulate(load: str, strategy: str, *, days: int, seed: int) -> Outcome:
    """The default policy; the planner looks each hour, once a day for `full`."""
    policy = replace(DEFAULTS, strategy=strategy)
    every = DAY if strategy == "full" else HOUR
    world = World(policy, every=every)
    world.run(LOADS[load](np.random.default_rng(seed), days))
    match strategy:
        case "size_ratio":
            bound = f"<= {theory.size_ratio_most(world.sizes, ratio=policy.ratio):.1f}"
        case "depth":
            bound = f">= {theory.depth_least(world.looks, depth=policy.depth):.1f}"
        case "time_window":
            bound = f"<= {theory.window_most(world.sizes, policy=policy, seconds=days * DAY):.1f}"
        case "full":
            bound = f"<= {theory.full_most(looks=world.looks):.1f}"
        case _:
            bound = "none"
    return Outcome(load, strategy, world, bound)


def fitting(load: str) -> Sequence[str]:
    """The strategies that mean something for the load's key: windows of time only where it is a time."""
    return [s for s in STRATEGIES if s != "time_window" or load in ("late", "edges")]


def lines(outcomes: Sequence[Outcome], *, days: int, seed: int) -> Iterator[str]:
    """The outcomes of one load, as a table."""
    world = outcomes[0].world
    name = outcomes[0].load
    loads = len(world.sizes)
    yield (
        f"{name}: {loads:,} loads of {fmean(world.sizes) / MB:.1f} MiB, "
        f"{sum(world.sizes) / MB / 1024:.1f} GiB in {days} days, seed {seed}"
    )
    yield (
        f"  {'':12}{'depth at a byte':>22} {'objects':>8} {'mean size':>10} {'jobs':>7} "
        f"{'written per byte loaded':>26} {'held per byte':>14}"
    )
    yield (
        f"  {'strategy':12}{'mean':>8}{'p99':>6}{'deepest':>8} {'at end':>8} {'MiB':>10} {'':>7} "
        f"{'at end':>12}{'theory':>14} {'mean':>7}{'most':>7}"
    )
    for outcome in outcomes:
        world, moments = outcome.world, outcome.world.moments
        yield (
            f"  {outcome.strategy:12}{fmean(m.depth for m in moments):8.2f}{fmean(m.depth99 for m in moments):6.1f}"
            f"{max(m.deepest for m in moments):8,} {len(world.held):8,} "
            f"{sum(world.sizes) / len(world.held) / MB:10.1f} {world.jobs:7,} "
            f"{moments[-1].write:12.2f}{outcome.bound:>14} "
            f"{fmean(m.space for m in moments):7.2f}{max(m.space for m in moments):7.2f}"
        )
    weeks = range(1, len(outcomes[0].weeks(lambda m: m.depth)) + 1)
    yield f"  {'by week':22}" + "".join(f"{week:8}" for week in weeks)
    for what, of in MEASURES.items():
        for outcome in outcomes:
            yield f"  {outcome.strategy:12}{what:10}" + "".join(f"{x:8.2f}" for x in outcome.weeks(of))


MEASURES: dict[str, Callable[[Moment], float]] = {
    "depth": lambda m: m.depth,
    "written": lambda m: m.write,
    "held": lambda m: m.space,
}
"""What is told of each week, and drawn."""
