"""Which references have to be merged with each other: those that overlap, directly or through others; pure.

A cluster of one is passed through as it is decoded.  Clusters follow each other in key order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lake_core.commits import Reference

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
