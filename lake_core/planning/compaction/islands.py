"""References that hang together by the keys they share."""

from __future__ import annotations

from collections.abc import Iterable

from lake_core.planning.compaction.layout import Layout


def islands(layout: Layout, members: Iterable[int]) -> list[list[int]]:
    """The members as sets of two or more, in order of their low bounds; no two sets share a key."""
    found: list[list[int]] = []
    reach = -1
    for member in sorted(members):
        if int(layout.begin[member]) >= reach:
            found.append([])
        found[-1].append(member)
        reach = max(reach, int(layout.end[member]))
    return [island for island in found if len(island) > 1]
