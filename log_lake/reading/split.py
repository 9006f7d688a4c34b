"""Cuts the records of references into key ranges for parallel tasks.

The state has the bounds of references.  If they do not suffice, the footers of the objects are read, the
heaviest first and at most `max_footers`; the others are small or spread over the same keys.  `reading.ranges`
decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from lake_core.history import Reference
from lake_core.keys import KeyRange, PoolKey
from lake_core.keys.encoding import decode_key, encode_key
from lake_core.store import Store
from log_lake.objects.read import DataObject
from log_lake.reading.ranges import WeightedSample, blunt, split_range

MAX_FOOTERS = 64
"""The most footers that are read; each takes a request to the store."""
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
    """Returns the key range, divided into at most `pieces` neighbouring ranges with about equal bytes of the
    references.

    Raises ObjectMissing, Corrupt, Unavailable.
    """
    weights = [float(r.size) for r in references]
    bounds = [WeightedSample.of_bounds(r.low, r.high, weight=r.size) for r in references]
    unclear = blunt(bounds, key_range, pieces=pieces)[:max_footers]
    samples = _with_footers(bounds, unclear, references, weights, store, pool_id)
    return split_range(samples, key_range, pieces=pieces)


def samples_of(
    references: Sequence[Reference],
    store: Store,
    *,
    pool_id: str,
    weigh: Callable[[Reference], float],
    max_footers: int = MAX_FOOTERS,
) -> list[WeightedSample]:
    """Returns a sample of each reference; `weigh` returns its weight.  The heaviest are sampled from their
    footers, the others from their bounds.

    Raises ObjectMissing, Corrupt, Unavailable.
    """
    weights = [weigh(r) for r in references]
    bounds = [
        WeightedSample.of_bounds(r.low, r.high, weight=w) for r, w in zip(references, weights, strict=True)
    ]
    heaviest = sorted(range(len(references)), key=lambda number: -weights[number])[:max_footers]
    return _with_footers(bounds, heaviest, references, weights, store, pool_id)


def _with_footers(
    samples: Sequence[WeightedSample],
    numbers: Sequence[int],
    references: Sequence[Reference],
    weights: Sequence[float],
    store: Store,
    pool_id: str,
) -> list[WeightedSample]:
    """Replaces the samples with these numbers by those in the footers of the references' objects; returns all
    samples."""
    read = list(samples)
    if numbers:
        with ThreadPoolExecutor(min(len(numbers), _AT_ONCE)) as threads:
            sampled = threads.map(
                lambda number: sample_of(references[number], store, pool_id=pool_id, weight=weights[number]),
                numbers,
            )
            for number, sample in zip(numbers, sampled, strict=True):
                read[number] = sample
    return read


def sample_of(reference: Reference, store: Store, *, pool_id: str, weight: float) -> WeightedSample:
    """Returns a sample made of the keys in the object's footer that lie in the reference's range; `weight` is the
    weight of the reference.  Raises ObjectMissing, Corrupt, Unavailable."""
    with DataObject.at(store, reference, pool_id=pool_id) as data:
        footer = data.metadata
    return WeightedSample.of_ranks(
        footer.sample, high=footer.high, records=footer.records, weight=weight
    ).within(reference.key_range)


def whole_keys(cuts: Iterable[bytes], key: PoolKey) -> tuple[bytes, ...]:
    """Returns the whole keys at which these cuts lie, ascending.  A cut may lie just after a key, at a place that
    no user can name."""
    return tuple(sorted({encode_key(list(decode_key(cut, key)), key) for cut in cuts} - {b""}))
