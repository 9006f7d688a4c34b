"""Finds which references must be merged with each other: those that overlap, directly or through others; pure.

A cluster is a group of such references.  A cluster of one reference needs no merge.  Clusters follow each other
in key order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from lake_core.history import Reference

MAX_COMPARED = 256
"""Above this number of references, skip the quadratic check and read per-record sequences."""

Cluster = tuple[Reference, ...]


def clusters(references: Iterable[Reference]) -> Iterator[Cluster]:
    """Yields the references in groups that share no key; `references` must be ordered by low bound."""
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
    """Whether the references' sequences alone order all records with equal keys.

    If not, the per-record columns `_seq` and `_place` must be read, for example when a compaction merged loads 1
    and 3 but not 2.
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
