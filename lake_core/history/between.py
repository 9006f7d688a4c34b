"""Finds the references that a job must also take, so that at every key its inputs are neighbours in age.

A record that combines several counts as written with the newest of them.  So if two inputs share a key, the job
must also take every reference that has this key and lies between the two in age.  Otherwise the combined record
would count as newer than that reference, although a part of it is older.  At a key of a single input nothing is
combined, so nothing more is taken.  Only aggregate pools need this.

Called by the planner of compactions, and by `rebase`, which checks again on the newest state.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from lake_core.history.snapshot.reference import Reference, span_of

_BEFORE, _AFTER = -1, 1 << 62
"""Ordinals before and after all others. They stand for the ordinals of a reference that joins several loads,
because it does not say how these are ordered."""

_BLOCK = 256
"""The number of references (in the order of their low bounds) for which one common farthest end is stored. A
search skips the whole block if that end lies before the wanted range."""


class Ages:
    """An index of references by key range and age, both stored as ranks (positions in their order); a look-up
    takes a few array passes."""

    def __init__(self, references: Sequence[Reference]) -> None:
        self._references = sorted(references, key=lambda r: r.order)
        self._bounds = sorted({bound for r in references for bound in (r.low, r.high)})
        bound_rank = {bound: rank for rank, bound in enumerate(self._bounds)}
        ages = {age for r in references for age in _ages(r)}
        self._age_rank = {age: rank for rank, age in enumerate(sorted(ages))}
        self._lows = self._ranks(bound_rank[r.low] for r in self._references)
        self._highs = self._ranks(bound_rank[r.high] for r in self._references)
        self._oldest = self._ranks(self._age_rank[_ages(r)[0]] for r in self._references)
        self._newest = self._ranks(self._age_rank[_ages(r)[1]] for r in self._references)
        blocks = range(0, len(self._references), _BLOCK)
        self._reach = np.array([self._highs[rank : rank + _BLOCK].max() for rank in blocks], dtype=np.int64)

    def between(self, inputs: Sequence[Reference], *, most: int) -> list[Reference]:
        """Returns the references that share a key with two or more inputs and lie between these in age, without
        the inputs.  It stops once it has found more than `most`, inputs included."""
        input_names = {(r.object, r.low) for r in inputs}
        near = self._near(inputs)
        lows, highs = self._lows[near], self._highs[near]
        oldest, newest = self._oldest[near], self._newest[near]
        is_between = np.zeros(len(near), dtype=bool)
        for low, high, first, last in self._shared(inputs):
            is_between |= (lows < high) & (highs > low) & (newest > first) & (oldest < last)
            if np.count_nonzero(is_between) > most:
                break
        references = [self._references[position] for position in near[is_between]]
        return [r for r in references if (r.object, r.low) not in input_names]

    def _near(self, inputs: Sequence[Reference]) -> npt.NDArray[np.int64]:
        """Positions of the references that overlap the inputs' range and may lie between some of them in age."""
        key_range = span_of(inputs)
        low, high = (bisect_left(self._bounds, bound) for bound in (key_range.low, key_range.high or b""))
        begin, end = np.searchsorted(self._lows, (low, high))
        blocks = np.flatnonzero(self._reach[: begin // _BLOCK + 1] > low)
        parts = [np.arange(block * _BLOCK, min((block + 1) * _BLOCK, begin)) for block in blocks]
        near = np.concatenate([*parts, np.arange(begin, end)])
        near = near[self._highs[near] > low]
        near = near[self._newest[near] > min(self._age_rank[_ages(r)[0]] for r in inputs)]
        return near[self._oldest[near] < max(self._age_rank[_ages(r)[1]] for r in inputs)]

    def _shared(self, inputs: Sequence[Reference]) -> list[tuple[int, int, int, int]]:
        """Returns the key ranges that two or more inputs share: low, high, and the oldest and newest age of the
        inputs there."""
        age_ranks = [tuple(self._age_rank[age] for age in _ages(r)) for r in inputs]
        edges = [
            edge for number, r in enumerate(inputs) for edge in ((r.low, 1, number), (r.high, -1, number))
        ]
        on: set[int] = set()
        shared: list[tuple[int, int, int, int]] = []
        begin = -1
        for key, _, number in sorted(edges):
            at = bisect_left(self._bounds, key)
            if len(on) >= 2 and begin < at:
                oldest, newest = min(age_ranks[i][0] for i in on), max(age_ranks[i][1] for i in on)
                shared.append((begin, at, oldest, newest))
            begin = at
            on ^= {number}
        return shared

    def _ranks(self, ranks: Iterable[int]) -> npt.NDArray[np.int64]:
        return np.fromiter(ranks, dtype=np.int64, count=len(self._references))


def _ages(reference: Reference) -> tuple[tuple[int, int], tuple[int, int]]:
    """Returns the oldest and the newest age of a record in the reference."""
    if reference.oldest is None:
        return (reference.seq, reference.ordinal), (reference.seq, reference.ordinal)
    return (reference.oldest, _BEFORE), (reference.seq, _AFTER)
