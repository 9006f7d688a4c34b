"""Decides which ranges to split, and which to join; pure.

A range is measured in full ranges: 1.0 means as much as the policy allows (`RangePolicy.part`).

- A range above 1.0 is split into pieces of about equal weight, by the keys in the footers of its objects.  No
  piece is below `LEAST`: a cut that would make one is left out.
- A range below `LEAST` is joined with a neighbour if both together are at most `JOINED`.  So splits and joins
  do not undo each other: pieces of a split are too large to be joined, and joined ranges are too small to be
  split.
- A pool that has less than one full range is not joined, because it may have been split before its first load.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil

from lake_core.history import Reference
from lake_core.keys import KeyRange
from log_lake.agents.split.policy import RangePolicy
from log_lake.compaction.ranges import places, ranges_of
from log_lake.reading.ranges import WeightedSample, even_cuts

LEAST = 0.25
"""Full ranges: the smallest piece of a split, and the largest range that is joined with a neighbour."""

JOINED = 0.5
"""Full ranges: the most that two ranges may have together if they are joined."""

FULL = 1 + 1e-9
"""Full ranges: a range above this is split.  It is a little more than 1, because sums are rounded."""

MAX_SPLITS = 1_000
"""The most ranges that one plan splits.  Each may read 64 footers, and the next run splits the others."""


@dataclass(frozen=True)
class RangesPlan:
    """The ranges to split, each with its size as a number of full ranges, and the split points to remove."""

    splits: tuple[tuple[KeyRange, float], ...] = ()
    joins: tuple[bytes, ...] = ()

    @property
    def has_work(self) -> bool:
        """Whether a range is to be split, or split points are to be removed."""
        return bool(self.splits or self.joins)


def plan_ranges(references: Sequence[Reference], points: Sequence[bytes], policy: RangePolicy) -> RangesPlan:
    """Returns which ranges to split and to join.  A straddling reference counts in each of its ranges with an
    equal share."""
    if policy.is_off:
        return RangesPlan()
    ranges = ranges_of(points)
    amounts = [0.0] * len(ranges)
    for reference in references:
        lies = places(reference, points)
        for number in lies:
            amounts[number] += policy.part(reference) / len(lies)
    large = sorted(
        (one for one in zip(ranges, amounts, strict=True) if one[1] > FULL), key=lambda one: -one[1]
    )
    joins = _joins(points, amounts) if sum(amounts) >= 1 else ()
    return RangesPlan(tuple(sorted(large[:MAX_SPLITS], key=lambda one: one[0].low)), joins)


def _joins(points: Sequence[bytes], amounts: Sequence[float]) -> tuple[bytes, ...]:
    """Returns the split points to remove, so that neighbouring small ranges become one.  `amounts` are the sizes
    of the ranges, in full ranges; it begins with the first range."""
    joins: list[bytes] = []
    group, least = amounts[0], amounts[0]
    for point, amount in zip(points, amounts[1:], strict=True):
        if group + amount <= JOINED and min(least, amount) < LEAST:
            joins.append(point)
            group, least = group + amount, min(least, amount)
        else:
            group = least = amount
    return tuple(joins)


def cuts_of(samples: Sequence[WeightedSample], key_range: KeyRange) -> tuple[bytes, ...]:
    """Returns the keys at which to split a range; empty if it has at most one full range, or if its keys cannot be
    divided.

    `samples` are keys of the range's references, each with a weight: the share of a full range for which it
    stands.
    """
    total = _weight(samples, key_range)
    if total <= FULL:
        return ()
    ends = [key_range.low, *even_cuts(samples, key_range, pieces=ceil(total)), key_range.high]
    weights = [_weight(samples, KeyRange(low or b"", high)) for low, high in pairwise(ends)]
    chosen: list[bytes] = []
    below, above = 0.0, sum(weights)
    for cut, weight in zip(ends[1:-1], weights, strict=False):
        below, above = below + weight, above - weight
        if below >= LEAST and above >= LEAST and cut is not None:
            chosen.append(cut)
            below = 0.0
    return tuple(chosen)


def _weight(samples: Sequence[WeightedSample], key_range: KeyRange) -> float:
    return sum(sum(sample.within(key_range).weights) for sample in samples)
