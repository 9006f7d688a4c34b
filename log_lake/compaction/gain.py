"""The gain of an agent's work: the figures of a pool before and after it; pure.

Figures come in pairs, `depth_before` and `depth_after`.  They come from states that the work loads anyway, so
they cost no request.  The cost of the work is in other figures: `size_in` and `size_out` are the bytes read and
written.  Callers: the agents compact, tombstones and retention.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lake_core.history import Reference
from log_lake.compaction.layout import depth_of


@dataclass(frozen=True)
class Standing:
    """Three figures of a branch.

    `depth`: the most objects that overlap at a key; a read of one key opens at most this many.  `objects`: how
    many objects a read of all records opens.  `size`: their bytes.
    """

    depth: int = 0
    objects: int = 0
    size: int = 0


def standing_of(references: Iterable[Reference]) -> Standing:
    """Returns the figures of a branch with these references; an object that several references name counts
    once."""
    listed = list(references)
    sizes = {reference.object: reference.size for reference in listed}
    return Standing(depth_of(r.key_range for r in listed), len(sizes), sum(sizes.values()))


@dataclass(frozen=True, kw_only=True)
class Gain:
    """The standing of a branch before and after an agent's work, as figures of a result; None if the agent did not
    look."""

    depth_before: int | None = None
    depth_after: int | None = None
    objects_before: int | None = None
    objects_after: int | None = None
    size_before: int | None = None
    size_after: int | None = None


def gain(before: Standing, after: Standing) -> Gain:
    """Returns the standing before and after the work as one value."""
    return Gain(
        depth_before=before.depth,
        depth_after=after.depth,
        objects_before=before.objects,
        objects_after=after.objects,
        size_before=before.size,
        size_after=after.size,
    )
