"""How the references of a pool lie on its keys: where each begins and ends, how deep they lie, how dense each is.

Bounds are replaced by their ranks among all bounds, so that the rest is arithmetic on integers.  Between two
neighbouring bounds lies an *interval*: the references that cover it are the same at each of its keys.

The *share* of a reference is the part of all bytes in its own range that it holds itself.  It is what the
strategies compare instead of sizes.  A run of 100 objects of 128 MB and a single one of 128 MB that spans them
all have objects of one size, but the single one's share is a hundredth of theirs, and merging it into them
would rewrite a hundred times its bytes.  A share of 1/n means that the range holds n times what the reference
does, whether the run it belongs to was cut into one object or a thousand, and whether keys are dense there or
not.  (Cassandra's unified strategy levels its runs by density for the same reason; it can divide by a width
because its keys are hashed.)

Bytes are attributed to intervals by expectation and maximization for data known only up to an interval (Turnbull
1976): begin with every interval alike, spread each reference over its intervals as the bytes found so far are
spread, add up, repeat.  A few rounds are enough: what matters is that narrow objects pull the bytes of wide
ones to where the keys are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lake_core.commits import Reference
from lake_core.commits.reference import in_order

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_ROUNDS = 4


@dataclass(frozen=True)
class Layout:
    """References by low bound, then by arrival; in all else they are known by their place in that order.

    `begin` and `end` are ranks; `depth` is how many references cover each interval; `held` the bytes below
    each rank.
    """

    references: tuple[Reference, ...]
    bounds: tuple[bytes, ...]
    begin: Ints
    end: Ints
    size: Ints
    depth: Ints
    held: Floats
    share: Floats
    reach: Ints

    def between(self, begin: int, end: int) -> float:
        """Bytes of all references in the intervals [begin, end)."""
        return float(self.held[end] - self.held[begin])

    def overlapping(self, begin: int, end: int) -> Ints:
        """The references that share a key with the intervals [begin, end)."""
        first = int(np.searchsorted(self.reach, begin, side="right"))  # all before end at or below `begin`
        last = int(np.searchsorted(self.begin, end, side="left"))
        return np.flatnonzero(self.end[first:last] > begin) + first


def lay_out(references: Sequence[Reference]) -> Layout:
    """The layout of references of one sub-pool, given in any order."""
    ordered = in_order(references)
    bounds = sorted({bound for r in ordered for bound in (r.low, r.high)})
    rank = {bound: at for at, bound in enumerate(bounds)}
    begin = np.array([rank[r.low] for r in ordered], np.int64)
    end = np.array([rank[r.high] for r in ordered], np.int64)
    size = np.array([r.size for r in ordered], np.int64)
    held = _held(begin, end, np.maximum(size, 1).astype(np.float64), intervals=max(0, len(bounds) - 1))
    return Layout(
        references=tuple(ordered),
        bounds=tuple(bounds),
        begin=begin,
        end=end,
        size=size,
        depth=covering(begin, end, intervals=max(0, len(bounds) - 1)),
        held=held,
        share=np.maximum(size, 1) / np.maximum(held[end] - held[begin], 1.0),
        reach=np.maximum.accumulate(end) if len(end) else end,
    )


def covering(begin: Ints, end: Ints, *, intervals: int) -> Ints:
    """How many of the ranges cover each interval."""
    steps = np.bincount(begin, minlength=intervals + 1) - np.bincount(end, minlength=intervals + 1)
    return np.cumsum(steps)[:intervals]


def _held(begin: Ints, end: Ints, size: Floats, *, intervals: int) -> Floats:
    mass = np.ones(intervals)
    for _ in range(_ROUNDS):
        below = _below(mass)
        rate = size / np.maximum(below[end] - below[begin], np.finfo(float).tiny)
        steps = np.bincount(begin, rate, intervals + 1) - np.bincount(end, rate, intervals + 1)
        mass = mass * np.maximum(np.cumsum(steps)[:intervals], 0.0)
    return _below(mass)


def _below(mass: Floats) -> Floats:
    return np.concatenate((np.zeros(1), np.cumsum(mass)))
