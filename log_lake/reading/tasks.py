"""Divides a key range among parallel tasks. It cuts at the pool's split points first.

A share lies within one range, or is several whole ranges that follow each other. So an object that compaction
has cut at the points is read by one task only. Called by reads of Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lake_core.history import Reference
from lake_core.keys import KeyRange
from log_lake.compaction.ranges import places

DivideInto = Callable[[KeyRange, int], list[KeyRange]]
"""A function that cuts a range into at most the given number of pieces with about equal bytes."""


def shares(
    references: Sequence[Reference],
    points: Sequence[bytes],
    key_range: KeyRange,
    *,
    pieces: int,
    split: DivideInto,
) -> list[KeyRange]:
    """Returns the key range as about `pieces` neighbouring shares, each with about equal bytes of the
    references."""
    inside = [p for p in points if key_range.low < p and (key_range.high is None or p < key_range.high)]
    if not inside or pieces == 1:
        return split(key_range, pieces)
    sizes = _sizes(references, inside)
    share = sum(sizes) / pieces
    shared: list[KeyRange] = []
    gathered, size = KeyRange(key_range.low, key_range.low), 0.0
    for (low, high), own in zip(
        zip([key_range.low, *inside], [*inside, key_range.high], strict=True), sizes, strict=True
    ):
        if size and size + own > share:
            shared.append(gathered)
            gathered, size = KeyRange(low, low), 0.0
        gathered, size = KeyRange(gathered.low, high), size + own
        if size == own > 1.5 * share:
            shared += split(gathered, round(own / share))
            gathered, size = KeyRange(b"" if high is None else high, high), 0.0
    if gathered.high is None and gathered.low == b"" and shared:  # the last range was cut
        return shared
    if size or not shared:
        return [*shared, gathered]
    return [*shared[:-1], KeyRange(shared[-1].low, key_range.high)]  # nothing is behind the last share


def _sizes(references: Sequence[Reference], points: Sequence[bytes]) -> list[float]:
    """Returns the bytes in each range between the points; an object that straddles them counts equally in
    each."""
    sizes = [0.0] * (len(points) + 1)
    for reference in references:
        lies = places(reference, points)
        for number in lies:
            sizes[number] += reference.size / len(lies)
    return sizes
