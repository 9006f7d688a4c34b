"""Finds which references must be merged with each other: those that overlap, directly or through others; pure.

A cluster is a group of such references.  A cluster of one reference needs no merge.  Clusters follow each other
in key order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from lake_core.history import Reference

MAX_COMPARED = 256
"""The most references that are compared pair by pair; with more, the sequences of single records are read
instead."""

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
    """Whether the sequences of the references alone give the order of all records with equal keys.

    They do not if, for example, a compaction merged loads 1 and 3 but not 2. Then the columns `_seq` and
    `_place` of the records must be read.
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
