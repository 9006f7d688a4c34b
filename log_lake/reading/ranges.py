"""Cutting a key range into pieces of about equal weight: pure.

Callers: parallel reads, one piece a task; compactions, one piece an output.

A `WeightedSample` describes a sorted run: some of its keys, and the weight between each two of them.  The bounds of
an object are two keys; the sample in its footer has up to 64.  Cuts are at keys of the samples.  The weight between
two keys of a run counts as spread evenly over the keys that other runs have there.  If only a run's bounds are
known, its weight counts as spread like that of the better known runs.  So a piece may exceed its share by two gaps
of each run that crosses its ends, and by the weight between two neighbouring keys.

Bounds alone do not tell where to cut a large object, or many that overlap.  `blunt` names the runs whose footers
should be read.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import NamedTuple

from lake_core.keys import KeyRange

_NOTHING = 1e-9
"""A share of the whole below which a weight counts as zero, because sums are rounded."""


@dataclass(frozen=True)
class WeightedSample:
    """Some keys of a sorted run, ascending, with the end of its range last.  `weights[i]` is the weight of the
    run's records from `keys[i]` (inclusive) to `keys[i + 1]` (exclusive)."""

    keys: tuple[bytes, ...]
    weights: tuple[float, ...]

    @classmethod
    def of_bounds(cls, low: bytes, high: bytes, *, weight: float) -> WeightedSample:
        """Makes the sample of a run from its bounds alone."""
        return cls((low, high), (weight,))

    @classmethod
    def of_ranks(
        cls, sample: Sequence[tuple[int, bytes]], *, high: bytes, records: int, weight: float
    ) -> WeightedSample:
        """Makes the sample of a run from some of its keys, each with its rank: the number of its record in the
        run, from 0.

        The first key must be among them.  `high`: the end of the run's range.  `records`, `weight`: the number of
        records of the run, and the weight of all of them."""
        ranks = [*(rank for rank, _ in sample), records]
        each = weight / records
        return cls((*(key for _, key in sample), high), tuple((b - a) * each for a, b in pairwise(ranks)))

    def within(self, key_range: KeyRange) -> WeightedSample:
        """Returns the part of the sample in the range. Of a gap that an end of the range cuts, half the weight
        counts."""
        if (
            self.keys
            and key_range.low <= self.keys[0]
            and (key_range.high is None or self.keys[-1] <= key_range.high)
        ):
            return self
        keys: list[bytes] = []
        weights: list[float] = []
        for (low, high), weight in zip(pairwise(self.keys), self.weights, strict=True):
            at_end = key_range.high is not None and low >= key_range.high
            if at_end or high < key_range.low or low < high == key_range.low:
                continue
            kept_low, kept_high = (
                max(low, key_range.low),
                high if key_range.high is None else min(high, key_range.high),
            )
            if not keys:
                keys.append(kept_low)
            keys.append(kept_high)
            weights.append(weight / (1 + (kept_low > low)) / (1 + (kept_high < high)))
        return WeightedSample(tuple(keys), tuple(weights))


def even_cuts(samples: Sequence[WeightedSample], key_range: KeyRange, *, pieces: int) -> list[bytes]:
    """Returns at most `pieces - 1` keys inside the range, ascending, that cut the weight of the samples evenly.

    No piece is heavier than the mean by more than the heaviest step between two keys of the samples, and each
    piece weighs something.
    """
    return _Steps.of(samples, key_range).cuts(pieces)


def split_range(samples: Sequence[WeightedSample], key_range: KeyRange, *, pieces: int) -> list[KeyRange]:
    """Returns the range, divided into at most `pieces` neighbouring ranges of about equal weight."""
    cuts = even_cuts(samples, key_range, pieces=pieces)
    return [
        KeyRange(low, high) for low, high in zip([key_range.low, *cuts], [*cuts, key_range.high], strict=True)
    ]


def blunt(samples: Sequence[WeightedSample], key_range: KeyRange, *, pieces: int) -> list[int]:
    """Returns the indices of the runs whose bounds alone are not enough, the one with the heaviest gap first.

    Such runs either straddle a cut where more than a quarter of a piece is uncertain, or lie in a gap that
    weighs more than half a piece.
    """
    steps = _Steps.of(samples, key_range)
    piece = sum(steps.weights) / max(1, pieces)
    cuts = set(steps.cuts(pieces))
    around = _spread(len(steps.keys) + 1, [(gap.begin + 1, gap.end, gap.weight) for gap in steps.gaps])
    doubtful = (key in cuts and weight > piece / 4 for key, weight in zip(steps.keys, around, strict=False))
    doubts = [0, *accumulate(map(int, doubtful))]
    heavy = [0, *accumulate(int(weight > piece / 2) for weight in steps.weights)]
    hidden = {
        gap.run: gap.weight
        for gap in steps.gaps
        if not steps.sampled[gap.run]
        and (doubts[gap.end] > doubts[gap.begin + 1] or heavy[gap.end] > heavy[gap.begin])
    }
    return sorted(hidden, key=lambda run: (-hidden[run], run)) if pieces > 1 else []


class _Gap(NamedTuple):
    """The weight of a run between two of its keys that follow each other; it covers the steps from `begin` to
    before `end`."""

    begin: int
    end: int
    weight: float
    run: int


@dataclass(frozen=True)
class _Steps:
    """All keys of the samples in a range, with the range's low bound first, and the weight from each key to the
    next.

    `sampled`: for each run, whether it has samples besides its bounds.
    """

    keys: list[bytes]
    weights: list[float]
    gaps: list[_Gap]
    sampled: list[bool]

    @classmethod
    def of(cls, samples: Sequence[WeightedSample], key_range: KeyRange) -> _Steps:
        inside = [sample.within(key_range) for sample in samples]
        keys = sorted({key_range.low, *(key for s in inside for key in s.keys if key_range.contains(key))})
        index = {key: number for number, key in enumerate(keys)}
        gaps = []
        for run, sample in enumerate(inside):
            for (low, high), weight in zip(pairwise(sample.keys), sample.weights, strict=True):
                begin = index[low]  # a step begins at equal keys: records of one key cannot be cut
                gaps.append(_Gap(begin, max(begin + 1, index.get(high, len(keys))), weight, run))
        is_sampled = [len(sample.weights) > 1 for sample in samples]
        return cls(keys, _weigh(len(keys), gaps, is_sampled), gaps, is_sampled)

    def cuts(self, pieces: int) -> list[bytes]:
        """Returns the keys that cut the steps into pieces of about equal weight."""
        below = [0.0, *accumulate(self.weights)]
        total = below.pop()
        nothing = total * _NOTHING
        cuts: list[bytes] = []
        last = 0.0
        for number in range(1, pieces):
            target = total * number / pieces
            at = bisect_left(below, target)
            if at == len(below) or (at and target - below[at - 1] <= below[at] - target):
                at = bisect_left(below, below[at - 1])  # of keys with nothing between them, the first
            if last + nothing < below[at] < total - nothing:
                cuts.append(self.keys[at])
                last = below[at]
        return cuts


def _weigh(count: int, gaps: list[_Gap], sampled: list[bool]) -> list[float]:
    """Returns the weight of each of `count` steps."""
    spread = _spread(count, [(g.begin, g.end, g.weight / (g.end - g.begin)) for g in gaps if sampled[g.run]])
    below = [0.0, *accumulate(spread)]
    evenly: list[tuple[int, int, float]] = []
    alike: list[tuple[int, int, float]] = []
    for gap in gaps:
        if sampled[gap.run]:
            continue
        there = below[gap.end] - below[gap.begin]
        if there > _NOTHING * below[-1]:
            alike.append((gap.begin, gap.end, gap.weight / there))
        else:
            evenly.append((gap.begin, gap.end, gap.weight / (gap.end - gap.begin)))
    parts = zip(spread, _spread(count, alike), _spread(count, evenly), strict=True)
    return [weight * (1 + factor) + even for weight, factor, even in parts]


def _spread(count: int, ranges: list[tuple[int, int, float]]) -> list[float]:
    """Returns for each of `count` steps the sum of the values whose range (from begin to before end)
    contains it."""
    change = [0.0] * (count + 1)
    for begin, end, value in ranges:
        if begin < end:
            change[begin] += value
            change[end] -= value
    return [max(0.0, value) for value in accumulate(change[:-1])]
