"""Finds loads whose age two clocks tell differently, for a rebuild; pure.

A load is disputed if it is older than another load of the same keys by its id, but newer on the store.  Nothing
tells whether its writer was slow or had a wrong clock, or the object was put back from a backup (decision 492).

Loads are looked at from the newest to the oldest by their ids.  A tree over the keys knows the loads that were
looked at before, so each load costs a number of steps that grows with the logarithm of the number of loads.  This
matters if many loads are late, as in a lake that was copied in part.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from lake_core.keys import KeyRange
from log_lake.repair.rebuild_candidate import Candidate
from log_lake.repair.rebuild_plan import Piece

LATE = 5.0
"""Seconds that writing an object may take, before the store's time of it counts as another than that of its id."""


def contradicted(pieces: Iterable[Piece]) -> tuple[str, ...]:
    """Returns the loads that count, and that are older than another load of the same keys by their ids, but newer
    on the store.

    If every object is younger on the store than by any id, all of them were copied there, and the store's times
    tell nothing.
    """
    loads = [p for p in pieces if p.candidate.last_seq is None and p.candidate.appeared]
    newest = max((p.candidate.created for p in loads), default=0.0)
    if not loads or min(p.candidate.appeared for p in loads) > newest + LATE:
        return ()
    by_sub_pool: dict[str, list[Piece]] = defaultdict(list)
    for piece in loads:
        by_sub_pool[piece.candidate.sub_pool].append(piece)
    return tuple(sorted({object for pool in by_sub_pool.values() for object in _disputed(pool)}))


def _disputed(loads: list[Piece]) -> Iterator[str]:
    """Yields the disputed loads of one sub-pool."""
    loads.sort(key=lambda p: p.candidate.created, reverse=True)
    newer = _Arrivals([p.key_range for p in loads])
    for _, at_once in groupby(loads, key=lambda p: p.candidate.created):
        same = list(at_once)
        for piece in same:
            one = piece.candidate
            is_late = one.appeared > one.created + LATE
            if is_late and newer.has_before(one, piece.key_range):
                yield one.object
        for piece in same:
            newer.add(piece.candidate, piece.key_range)


_Arrival = tuple[float, str]
"""When the store got an object of a load, and the load's transaction."""


class _Arrivals:
    """The loads that were added, by their keys: a segment tree over the bounds of all ranges.

    A node stands for a range of keys.  It has the first two arrivals, of different transactions, of loads that
    cover all its keys (`_over`), and of loads that have some of its keys (`_within`).
    """

    def __init__(self, ranges: Sequence[KeyRange]) -> None:
        self._bounds = sorted({bound for one in ranges for bound in (one.low, one.high) if bound is not None})
        self._leaves = len(self._bounds)
        self._over: dict[int, tuple[_Arrival, ...]] = {}
        self._within: dict[int, tuple[_Arrival, ...]] = {}

    def add(self, load: Candidate, key_range: KeyRange) -> None:
        """Adds a load with these keys."""
        first, end = self._leaves_of(key_range)
        arrival = (load.appeared, load.transaction_id)
        nodes = set(_nodes(first, end))
        for node in nodes:
            self._over[node] = _two((*self._over.get(node, ()), arrival))
        for node in nodes.union(_above(first), _above(end - 1)):
            self._within[node] = _two((*self._within.get(node, ()), arrival))

    def has_before(self, load: Candidate, key_range: KeyRange) -> bool:
        """Whether the store got an added load of another transaction, with one of these keys, before this one."""
        first, end = self._leaves_of(key_range)
        arrivals = [one for node in _nodes(first, end) for one in self._within.get(node, ())]
        for node in {*_above(first), *_above(end - 1)}:
            arrivals += self._over.get(node, ())
        return any(at < load.appeared and by != load.transaction_id for at, by in arrivals)

    def _leaves_of(self, key_range: KeyRange) -> tuple[int, int]:
        """Returns the first leaf of the range, and the one after its last; leaf n begins at the n-th bound."""
        low = bisect_left(self._bounds, key_range.low)
        high = self._leaves if key_range.high is None else bisect_left(self._bounds, key_range.high)
        return self._leaves + low, self._leaves + max(high, low + 1)


def _two(arrivals: Iterable[_Arrival]) -> tuple[_Arrival, ...]:
    """Returns the first arrival, and the first of another transaction."""
    by_transaction: dict[str, float] = {}
    for at, transaction in arrivals:
        by_transaction[transaction] = min(at, by_transaction.get(transaction, at))
    return tuple(sorted((at, transaction) for transaction, at in by_transaction.items())[:2])


def _nodes(first: int, end: int) -> Iterator[int]:
    """Yields the fewest nodes whose leaves are those from `first` (inclusive) to `end` (exclusive)."""
    while first < end:
        if first & 1:
            yield first
            first += 1
        if end & 1:
            end -= 1
            yield end
        first, end = first >> 1, end >> 1


def _above(leaf: int) -> Iterator[int]:
    """Yields the leaf and the nodes above it."""
    while leaf:
        yield leaf
        leaf >>= 1
