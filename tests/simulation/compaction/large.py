"""A pool of ten terabytes in a million references and a thousand ranges, on a thousand workers; what it shows.

`spread`, `skewed` and `drifting` import 10 GB each quarter of an hour.  `split` imports nothing: the pool has only
a hundred ranges at first, and eight runs of random keys over the rest; the agent splits it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from lake_core.keys.encoding import encode_value
from log_lake.agents.split.policy import RangePolicy
from log_lake.compaction import CompactionPolicy
from tests.simulation.compaction.loads import BEGIN, DAY, EVERY, HOUR, Keys, Load
from tests.simulation.compaction.many_ranges import SAMPLES, Held, LargePool
from tests.simulation.compaction.one_journal import DOLLARS_BYTE_DAY, ENTRY, REFERENCE_BYTES
from tests.simulation.compaction.report import DEFAULTS

MB, GB, TB = 10**6, 10**9, 10**12


@dataclass(frozen=True)
class Scale:
    """How large the pool is; a test has a smaller one."""

    references: int = 1_000_000
    ranges: int = 1_000
    workers: int = 1_000
    object_bytes: int = 10 * MB
    load: int = 10 * GB
    grains: int = 20_000
    """Keys of a load, each standing for as many bytes."""

    @property
    def size(self) -> int:
        return self.references * self.object_bytes

    @property
    def policy(self) -> CompactionPolicy:
        """A range fits into one job."""
        inputs = 4 * self.references // self.ranges
        return replace(
            DEFAULTS,
            target_size=self.object_bytes,
            max_inputs=inputs,
            max_bytes=inputs * self.object_bytes,
        )

    @property
    def range_policy(self) -> RangePolicy:
        """A range is split once it holds twice what it holds at first."""
        return RangePolicy(size=2 * self.size // self.ranges, records=0)


def spread(random: np.random.Generator, grains: int, part: float) -> Keys:
    """Keys anywhere."""
    return random.random(grains)


def skewed(random: np.random.Generator, grains: int, part: float) -> Keys:
    """Half of the loads crowd at low keys, half are of one narrow range, mostly a low one."""
    if random.random() < 0.5:
        return random.random(grains) ** 6
    return random.random() ** 6 + 0.002 * random.random(grains)


def drifting(random: np.random.Generator, grains: int, part: float) -> Keys:
    """Nearly all around a place that wanders over the upper half of the keys; a twentieth lies behind it."""
    place = 0.5 + 0.5 * part
    late = random.random(grains) < 0.05
    return np.where(late, place - random.exponential(0.02, grains), random.normal(place, 0.002, grains))


KEYS: dict[str, Callable[[np.random.Generator, int, float], Keys]] = {
    "spread": spread,
    "skewed": skewed,
    "drifting": drifting,
}
SCENARIOS = (*KEYS, "split")


def loads(name: str, scale: Scale, *, looks: int, seed: int) -> Iterator[Load]:
    """Four an hour; none for `split`."""
    if name not in KEYS:
        return
    random = np.random.default_rng(seed)
    ticks = int(looks * HOUR / EVERY)
    for number in range(ticks):
        keys = np.sort(KEYS[name](random, scale.grains, number / ticks))
        yield Load(BEGIN + (number + 1) * EVERY, scale.load, keys)


def pool_of(name: str, scale: Scale, *, seed: int) -> LargePool:
    """The pool as it is at first."""
    pool = LargePool(scale.policy, scale.range_policy, scale.workers)
    ranges = scale.ranges // 10 if name == "split" else scale.ranges
    points = [encode_value(number / ranges) for number in range(1, ranges)]
    above = scale.references // 10 if name == "split" else 0
    held = _run(pool, _even(SAMPLES * (scale.references - above)), points, seq=1)
    random = np.random.default_rng(seed)
    for number in range(8 if above else 0):
        held += _run(pool, np.sort(random.random(SAMPLES * above // 8)), points, seq=(number + 2) << 16)
    pool.begin(held, points)
    return pool


def _even(count: int) -> Keys:
    """So many keys at equal distances."""
    return (np.arange(count) + 0.5) / count


def _run(pool: LargePool, keys: Keys, points: list[bytes], *, seq: int) -> list[Held]:
    """Objects of the target size that share no key."""
    weights = np.full(len(keys), pool.policy.target_size / SAMPLES)
    return pool.lay(keys, weights, cut=points, seq=seq)


def simulate(name: str, scale: Scale, *, looks: int, seed: int) -> LargePool:
    """A scenario, from its begin to its end."""
    pool = pool_of(name, scale, seed=seed)
    pool.run(loads(name, scale, looks=looks, seed=seed), looks=looks)
    return pool


def lines(name: str, pool: LargePool, scale: Scale, *, seed: int) -> Iterator[str]:
    """What it shows: by hours, then in all."""
    hours, bill, journal = pool.hours, pool.bill, pool.journal
    days = (hours[-1].time - BEGIN) / DAY
    yield (
        f"{name}: {scale.size / TB:.3g} TB in {scale.references:,} references at first, "
        f"{pool.loaded / TB:.3g} TB loaded in {days:.3g} days, {pool.workers:,} workers, seed {seed}"
    )
    yield (
        f"  {'hour':>6}{'references':>12}{'ranges':>8}{'deepest':>9}{'after':>7}{'jobs':>7}"
        f"{'rewritten':>11}{'last job':>10}"
    )
    step = max(1, len(hours) // 8)
    for number in sorted({0, *range(step - 1, len(hours), step), len(hours) - 1}):
        hour = hours[number]
        yield (
            f"  {(hour.time - BEGIN) / HOUR:6.0f}{hour.references:12,}{hour.ranges:8,}{hour.deepest:9}"
            f"{hour.after:7}{hour.jobs:7,}{hour.rewritten / GB:8,.0f} GB{hour.lasted:8,.0f} s"
        )
    bound = max(hour.after - hour.since for hour in hours)
    yield f"  deepest after the jobs of a look, without loads since then: {bound} (allowed {pool.policy.depth})"
    yield (
        f"  largest job {pool.largest_job / GB:.1f} GB (allowed {pool.policy.max_bytes / GB:.0f}), "
        f"{pool.most_inputs:,} inputs (allowed {pool.policy.max_inputs:,}), {pool.longest_job:.0f} s; "
        f"at most {max(hour.busy for hour in hours):,} workers busy"
    )
    if pool.loaded:
        yield f"  written for each byte loaded: {bill.written / pool.loaded:.2f}"
    elif (calm := next((n for n, hour in enumerate(hours) if not hour.jobs), None)) is not None:
        yield f"  nothing left to do at look {calm + 1}"
    yield (
        f"  a day: {bill.puts / days:,.0f} PUT, {bill.gets / days:,.0f} GET, {bill.dollars / days:.2f} dollars; "
        f"{bill.read / days / TB:.2f} TB read, {bill.written / days / TB:.2f} TB written; "
        f"storage {bill.byte_days * DOLLARS_BYTE_DAY / days:.2f} dollars"
    )
    yield (
        f"  journal: {journal.commits / days:,.0f} commits in {journal.entries / days:,.0f} entries and "
        f"{journal.size / days / MB:,.0f} MB a day, up to {journal.fullest} in one; the longest waits "
        f"{journal.longest:.2f} s (an entry takes {ENTRY:.2f} s); "
        f"a checkpoint {pool.references * REFERENCE_BYTES / MB:,.0f} MB"
    )
