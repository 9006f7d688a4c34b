"""Which references have to be merged with each other: those that overlap, directly or through others; pure.

A cluster of one is passed through as it is decoded.  Clusters follow each other in key order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from lake_core.history import Reference

MAX_COMPARED = 256
"""Of more references it is not tried to tell which of their records is older."""

Cluster = tuple[Reference, ...]


def clusters(references: Iterable[Reference]) -> Iterator[Cluster]:
    """Groups of references given by low bound; groups share no key."""
    gathered: list[Reference] = []
    reach = b""
    for reference in references:
        if gathered and reference.low >= reach:
            yield tuple(gathered)
            gathered = []
        reach = max(reach, reference.high) if gathered else reference.high
        gathered.append(reference)
    if gathered:
        yield tuple(gathered)


def decided_by_age(cluster: Sequence[Reference]) -> bool:
    """Whether of two records with one key the older is always that of the older reference, by sequence and place.

    Else the records have to say themselves when they were written: a compaction may take the first and the third
    load and leave the second.
    """
    rewritten = [r for r in cluster if r.oldest is not None]
    return not rewritten or (
        len(cluster) <= MAX_COMPARED
        and not any(
            a.first_seq <= b.seq and b.first_seq <= a.seq and a.key_range.overlaps(b.key_range)
            for a in rewritten
            for b in cluster
            if a is not b
        )
    )
