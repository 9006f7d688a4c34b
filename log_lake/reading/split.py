"""Cutting the records of references into key ranges for parallel tasks.

The state has the bounds of references.  If they do not suffice, the footers of the objects are read, the heaviest
first and at most `max_footers`; the others are small or spread over the same keys.  `reading.ranges` decides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from lake_core.history import Reference
from lake_core.keys import KeyRange
from lake_core.store import Store
from log_lake.objects.read import DataObject
from log_lake.reading.ranges import WeightedSample, blunt, split_range

MAX_FOOTERS = 64
"""Footers to read, at most: each is a request of the store."""
_AT_ONCE = 16


def split(
    references: Sequence[Reference],
    store: Store,
    *,
    pool_id: str,
    key_range: KeyRange,
    pieces: int,
    max_footers: int = MAX_FOOTERS,
) -> list[KeyRange]:
    """The key range, divided into at most `pieces` neighbouring ranges with about equal bytes of the references.

    Raises ObjectMissing, Corrupt, Unavailable.
    """
    samples = [WeightedSample.of_bounds(r.low, r.high, weight=r.size) for r in references]
    unclear = blunt(samples, key_range, pieces=pieces)[:max_footers]
    if unclear:
        with ThreadPoolExecutor(min(len(unclear), _AT_ONCE)) as threads:
            read = threads.map(
                lambda number: sample_of(
                    references[number], store, pool_id=pool_id, weight=references[number].size
                ),
                unclear,
            )
            for number, sample in zip(unclear, read, strict=True):
                samples[number] = sample
    return split_range(samples, key_range, pieces=pieces)


def samples_of(
    references: Sequence[Reference],
    store: Store,
    *,
    pool_id: str,
    weigh: Callable[[Reference], float],
    max_footers: int = MAX_FOOTERS,
) -> list[WeightedSample]:
    """A sample of each reference; `weigh` says its weight.  The heaviest by their footers, the others by bounds.

    Raises ObjectMissing, Corrupt, Unavailable.
    """
    weights = [weigh(r) for r in references]
    heaviest = sorted(range(len(references)), key=lambda number: -weights[number])[:max_footers]
    samples = [
        WeightedSample.of_bounds(r.low, r.high, weight=weight)
        for r, weight in zip(references, weights, strict=True)
    ]
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        read = threads.map(
            lambda number: sample_of(references[number], store, pool_id=pool_id, weight=weights[number]),
            heaviest,
        )
        for number, sample in zip(heaviest, read, strict=True):
            samples[number] = sample
    return samples


def sample_of(reference: Reference, store: Store, *, pool_id: str, weight: float) -> WeightedSample:
    """The keys in the object's footer that lie in the reference's range.  Raises ObjectMissing, Corrupt,
    Unavailable."""
    with DataObject.at(store, reference, pool_id=pool_id) as data:
        footer = data.metadata
    return WeightedSample.of_ranks(
        footer.sample, high=footer.high, records=footer.records, weight=weight
    ).within(reference.key_range)
