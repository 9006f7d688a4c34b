"""What a job must also take so that its inputs are neighbours in age at every key.

A record that combines several counts as written with the newest of them.  So where two inputs share a key, all
that is there and between them in age must be taken too, else it would count as older than what it lies above.  At
keys of a single input nothing is combined, and nothing is asked.  Only aggregate pools ask for it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from lake_core.agents.compact.layout import span_of
from lake_core.history import Reference

_BEFORE, _AFTER = -1, 1 << 62
"""Places before and after all others: where in a transaction a mixed object's records arrived is not known here."""

_BLOCK = 256
"""Of so many references by low bound the farthest end is known."""


class Ages:
    """Looks up references by key range and age; both are kept as ranks, so that a look is a few array passes."""

    def __init__(self, references: Sequence[Reference]) -> None:
        self._references = sorted(references, key=lambda r: r.order)
        self._bounds = sorted({bound for r in references for bound in (r.low, r.high)})
        bound_rank = {bound: n for n, bound in enumerate(self._bounds)}
        ages = {age for r in references for age in _ages(r)}
        self._age_rank = {age: n for n, age in enumerate(sorted(ages))}
        self._lows = self._ranks(bound_rank[r.low] for r in self._references)
        self._highs = self._ranks(bound_rank[r.high] for r in self._references)
        self._oldest = self._ranks(self._age_rank[_ages(r)[0]] for r in self._references)
        self._newest = self._ranks(self._age_rank[_ages(r)[1]] for r in self._references)
        blocks = range(0, len(self._references), _BLOCK)
        self._reach = np.array([self._highs[n : n + _BLOCK].max() for n in blocks], dtype=np.int64)

    def between(self, inputs: Sequence[Reference], *, most: int) -> list[Reference]:
        """References, not inputs, that lie on a key of two inputs or more and between those in age.

        The look ends where more than `most` are found, inputs among them."""
        known = {(r.object, r.low) for r in inputs}
        near = self._near(inputs)
        lows, highs = self._lows[near], self._highs[near]
        oldest, newest = self._oldest[near], self._newest[near]
        found = np.zeros(len(near), dtype=bool)
        for low, high, first, last in self._shared(inputs):
            found |= (lows < high) & (highs > low) & (newest > first) & (oldest < last)
            if np.count_nonzero(found) > most:
                break
        references = [self._references[n] for n in near[found]]
        return [r for r in references if (r.object, r.low) not in known]

    def _near(self, inputs: Sequence[Reference]) -> npt.NDArray[np.int64]:
        """Where those are that overlap the inputs' range, and may be between some of them."""
        key_range = span_of(inputs)
        low, high = (bisect_left(self._bounds, bound) for bound in (key_range.low, key_range.high or b""))
        begin, end = np.searchsorted(self._lows, (low, high))
        blocks = np.flatnonzero(
            self._reach[: begin // _BLOCK + 1] > low
        )  # what begins before, and reaches in
        parts = [np.arange(n * _BLOCK, min((n + 1) * _BLOCK, begin)) for n in blocks]
        near = np.concatenate([*parts, np.arange(begin, end)])
        near = near[self._highs[near] > low]
        near = near[self._newest[near] > min(self._age_rank[_ages(r)[0]] for r in inputs)]
        return near[self._oldest[near] < max(self._age_rank[_ages(r)[1]] for r in inputs)]

    def _shared(self, inputs: Sequence[Reference]) -> list[tuple[int, int, int, int]]:
        """The keys of two inputs or more: low and high, the oldest and the newest that the inputs there hold."""
        held = [tuple(self._age_rank[age] for age in _ages(r)) for r in inputs]
        edges = [edge for n, r in enumerate(inputs) for edge in ((r.low, 1, n), (r.high, -1, n))]
        on: set[int] = set()
        found: list[tuple[int, int, int, int]] = []
        begin = -1
        for key, _, n in sorted(edges):
            at = bisect_left(self._bounds, key)
            if len(on) >= 2 and begin < at:
                oldest, newest = min(held[i][0] for i in on), max(held[i][1] for i in on)
                found.append((begin, at, oldest, newest))
            begin = at
            on ^= {n}
        return found

    def _ranks(self, ranks: Iterable[int]) -> npt.NDArray[np.int64]:
        return np.fromiter(ranks, dtype=np.int64, count=len(self._references))


def _ages(reference: Reference) -> tuple[tuple[int, int], tuple[int, int]]:
    """The oldest and the newest that it may hold."""
    if reference.oldest is None:
        return (reference.seq, reference.ordinal), (reference.seq, reference.ordinal)
    return (reference.oldest, _BEFORE), (reference.seq, _AFTER)
