"""Joins many overlapping spans into segments that do not overlap.

For a thousand deletes of ranges, a record, or a batch, then needs one binary search instead of a thousand
comparisons.  Called for spans of keys (`reading.deleted`) and of values (`many`).
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush
from typing import Any


def segments(spans: Iterable[tuple[Any, Any, int]]) -> tuple[list[Any], list[int]]:
    """Returns the bounds of the segments, ascending, and for each segment the greatest mark of a span that covers
    it.

    A span is `(low, high, mark)`: it covers values from `low` to before `high`, and its mark (a positive
    number) tells the spans apart.  A `high` of None means no bound.  A segment reaches to the next bound, the
    last one to the end.  Its mark is 0 if no span covers it.
    """
    opening = sorted(spans, key=lambda span: span[0], reverse=True)
    bounds: list[Any] = []
    marks: list[int] = []
    covering: list[
        tuple[int, int, Any]
    ] = []  # by mark, the greatest first; the number tells equal marks apart
    edges = {low for low, _, _ in opening} | {high for _, high, _ in opening if high is not None}
    for edge in sorted(edges):
        while opening and opening[-1][0] == edge:
            _, high, mark = opening.pop()
            heappush(covering, (-mark, len(opening), high))
        while covering and covering[0][2] is not None and covering[0][2] <= edge:
            heappop(covering)
        mark = -covering[0][0] if covering else 0
        if not marks or marks[-1] != mark:
            bounds.append(edge)
            marks.append(mark)
    return bounds, marks
