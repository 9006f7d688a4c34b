"""Cutting a key range into pieces of about equal weight: pure.

Callers: parallel reads, one piece a task; compactions, one piece an output.

What is known of a sorted run is a `WeightedSample`: some of its keys, and what the run weighs between each two
of them.  The bounds of an object are two keys; the sample in its footer is up to 64.  The keys of all runs
together are where a cut may be.  What a run weighs between two of its own keys is taken to be spread evenly over
the keys that other runs have there, so a piece may weigh more than its share by two gaps of each run that
crosses its ends, and by the weight between two neighbouring cuts that could have been.

Bounds alone do not say where to cut a large object, or many that overlap: `blunt` names the runs of which more
should be known.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from lake_core.keys import KeyRange

_NOTHING = 1e-9
"""A share of the whole that may be a rounding of zero."""


@dataclass(frozen=True)
class WeightedSample:
    """Keys of a sorted run, ascending, the end of its range last; `weights[i]` lies in [keys[i], keys[i + 1])."""

    keys: tuple[bytes, ...]
    weights: tuple[float, ...]

    @classmethod
    def of_bounds(cls, low: bytes, high: bytes, *, weight: float) -> WeightedSample:
        """A run of which only the bounds are known."""
        return cls((low, high), (weight,))

    @classmethod
    def of_ranks(
        cls, sample: Sequence[tuple[int, bytes]], *, high: bytes, records: int, weight: float
    ) -> WeightedSample:
        """A run of so many records, of which some are known with their ranks (from 0, the first among them)."""
        ranks = [*(rank for rank, _ in sample), records]
        each = weight / records
        return cls((*(key for _, key in sample), high), tuple((b - a) * each for a, b in pairwise(ranks)))

    def within(self, span: KeyRange) -> WeightedSample:
        """The part in the range; of a gap that an end of the range cuts, half."""
        keys: list[bytes] = []
        weights: list[float] = []
        for (low, high), weight in zip(pairwise(self.keys), self.weights, strict=True):
            at_end = span.high is not None and low >= span.high
            if at_end or high < span.low or low < high == span.low:
                continue
            kept_low, kept_high = max(low, span.low), high if span.high is None else min(high, span.high)
            if not keys:
                keys.append(kept_low)
            keys.append(kept_high)
            weights.append(weight / (1 + (kept_low > low)) / (1 + (kept_high < high)))
        return WeightedSample(tuple(keys), tuple(weights))


def even_cuts(samples: Sequence[WeightedSample], span: KeyRange, *, pieces: int) -> list[bytes]:
    """At most `pieces - 1` keys inside `span`, ascending, that cut what the samples weigh there evenly.

    No piece is heavier than the mean by more than the heaviest step between two keys of the samples, and none
    weighs nothing.
    """
    steps = _Steps.of(samples, span)
    below = [0.0, *accumulate(steps.weights)]
    total = below.pop()
    nothing = total * _NOTHING
    cuts: list[bytes] = []
    last = 0.0
    for number in range(1, pieces):
        target = total * number / pieces
        at = bisect_left(below, target)
        if at == len(below) or (at and target - below[at - 1] <= below[at] - target):
            at = bisect_left(below, below[at - 1])  # keys between which nothing lies: the first of them
        if last + nothing < below[at] < total - nothing:
            cuts.append(steps.keys[at])
            last = below[at]
    return cuts


def split_range(samples: Sequence[WeightedSample], span: KeyRange, *, pieces: int) -> list[KeyRange]:
    """`span` as at most `pieces` ranges of about equal weight that follow each other and cover it."""
    cuts = even_cuts(samples, span, pieces=pieces)
    return [KeyRange(low, high) for low, high in zip([span.low, *cuts], [*cuts, span.high], strict=True)]


def blunt(samples: Sequence[WeightedSample], span: KeyRange, *, pieces: int) -> list[int]:
    """Numbers of the samples that say too little for even cuts, those that hide most first.

    They lie in steps that are heavier than half a piece.
    """
    steps = _Steps.of(samples, span)
    most = sum(steps.weights) / (2 * max(1, pieces))
    heavy = [0, *accumulate(int(weight > most) for weight in steps.weights)]
    hidden: dict[int, float] = {}
    for begin, end, weight, number in steps.gaps:
        if inside := heavy[end] - heavy[begin]:
            hidden[number] = hidden.get(number, 0.0) + weight * inside / (end - begin)
    return sorted(hidden, key=lambda number: (-hidden[number], number)) if pieces > 1 else []


@dataclass(frozen=True)
class _Steps:
    """All keys of the samples in a range, the range's low bound first, and the weight from each to the next.

    A gap is a weight between two keys of one sample: first step, step behind the last, weight, which sample.
    """

    keys: list[bytes]
    weights: list[float]
    gaps: list[tuple[int, int, float, int]]

    @classmethod
    def of(cls, samples: Sequence[WeightedSample], span: KeyRange) -> _Steps:
        inside = [sample.within(span) for sample in samples]
        keys = sorted({span.low, *(key for s in inside for key in s.keys if span.contains(key))})
        place = {key: number for number, key in enumerate(keys)}
        gaps = []
        change = [0.0] * (len(keys) + 1)
        for number, sample in enumerate(inside):
            for (low, high), weight in zip(pairwise(sample.keys), sample.weights, strict=True):
                begin = place[low]
                end = max(begin + 1, place.get(high, len(keys)))  # equal keys: what lies there cannot be cut
                gaps.append((begin, end, weight, number))
                change[begin] += weight / (end - begin)
                change[end] -= weight / (end - begin)
        weights = [max(0.0, weight) for weight in accumulate(change[:-1])]
        return cls(keys, weights, gaps)
