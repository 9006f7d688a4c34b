"""Describes how references lie on the ranges between a pool's split points; pure.

Split points are only layout, so a reference may *straddle* them: it lies in several ranges.  Called by the
planner of compaction, which keeps the ranges apart, by the split agent, and by `lake ranges`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

from lake_core.history import Reference
from lake_core.ids import id_seconds
from lake_core.keys import KeyRange
from log_lake.compaction.layout import depth_of, runs

ALWAYS_CUT, SMALLEST_CUT = 64, 1 << 20
"""A job may always be cut into `ALWAYS_CUT` outputs; into more only if an average output has at least
`SMALLEST_CUT` bytes.  Smaller ones cost more to open than they save (decision 302)."""


def ranges_of(points: Sequence[bytes]) -> list[KeyRange]:
    """Returns the ranges between ascending split points, in order; the ends are open."""
    return [KeyRange(low, high) for low, high in pairwise([b"", *points, None])]  # type: ignore[arg-type]


class Bounded(Protocol):
    """Anything with a low and a high bound of keys: a reference, a tombstone, or a range of keys."""

    @property
    def low(self) -> bytes: ...
    @property
    def high(self) -> bytes | None:
        """The high bound; None: an open end."""


def places(bounded: Bounded, points: Sequence[bytes]) -> range:
    """Returns the numbers of the ranges between ascending points in which `bounded` lies."""
    first = bisect_right(points, bounded.low)
    end = len(points) if bounded.high is None else bisect_left(points, bounded.high, lo=first)
    return range(first, end + 1)


def apart(references: Iterable[Reference], points: Sequence[bytes]) -> list[list[Reference]]:
    """Returns the references in groups, by key: no range has references of two groups.

    Without straddling references, each group lies in one range.
    """
    groups: list[list[Reference]] = []
    reach = -1
    for reference in sorted(references, key=lambda r: r.order):
        lies = places(reference, points)
        if not groups or lies.start > reach:
            groups.append([])
        groups[-1].append(reference)
        reach = max(reach, lies[-1])
    return groups


def cuts(points: Sequence[bytes], span: KeyRange, *, size: int, of: int = 1) -> list[bytes]:
    """Returns the split points inside `span` at which a job cuts its outputs of `size` bytes, in order.

    `of`: how many objects it writes in each part.

    With many points, a small job would leave an object of a few records in each range.  Then it uses only every
    second, fourth or eighth point of the pool, and so on: the same ones as other jobs of its size.
    """
    first = bisect_right(points, span.low)
    end = len(points) if span.high is None else bisect_left(points, span.high)
    step = 1
    while (end - first) // step >= max(1, ALWAYS_CUT // of, size // (SMALLEST_CUT * of)):
        step *= 2
    return [points[number] for number in range(first, end) if (number + 1) % step == 0]


@dataclass(frozen=True)
class RangeFigures:
    """A range of keys, and what a branch has there.

    `records` and `size` (bytes) count a straddling reference with an equal share in each of its ranges, so they
    are estimates if `straddling` is not 0.  `objects`: the references that overlap the range.  `depth`: the
    most of them that overlap at a key; `runs`: how many sorted files a reader of the whole range merges.
    `compacted`: when a compaction last wrote an object there, in seconds since 1970; None: never.
    """

    key_range: KeyRange
    records: int
    size: int
    objects: int
    straddling: int
    depth: int
    runs: int
    compacted: float | None


def figures(references: Sequence[Reference], points: Sequence[bytes]) -> list[RangeFigures]:
    """Returns what a branch has in each range between the split points."""
    ranges = ranges_of(points)
    inside: list[list[tuple[Reference, int]]] = [[] for _ in ranges]
    for reference in references:
        lies = places(reference, points)
        for number in lies:
            inside[number].append((reference, len(lies)))
    return [_figures(key_range, of_range) for key_range, of_range in zip(ranges, inside, strict=True)]


def _figures(key_range: KeyRange, inside: Sequence[tuple[Reference, int]]) -> RangeFigures:
    compacted = max((r.object for r, _ in inside if r.oldest is not None), default="")
    return RangeFigures(
        key_range,
        records=round(sum(r.records / shares for r, shares in inside)),
        size=round(sum(r.size / shares for r, shares in inside)),
        objects=len(inside),
        straddling=sum(shares > 1 for _, shares in inside),
        depth=depth_of(r.key_range.intersect(key_range) for r, _ in inside),
        runs=len(runs([r for r, _ in inside])),
        compacted=id_seconds(compacted) if compacted else None,
    )
