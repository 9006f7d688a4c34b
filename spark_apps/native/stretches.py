"""Cutting keys into stretches at the bounds of references, and joining key ranges again: pure.

A stretch is a range of keys that the same references hold.  Called by `plan`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from lake_core.history import Reference
from lake_core.keys import KeyRange


@dataclass(frozen=True)
class Stretch:
    """A range of keys in which the same references lie at every key; `alone` is the reference if there is only
    one."""

    key_range: KeyRange
    alone: Reference | None
    size: int = 0


def stretches(references: Iterable[Reference], asked: KeyRange) -> Iterator[Stretch]:
    """Yields the stretches of the range that references cover, in key order.  Each begins and ends where some
    reference does."""
    edges: list[tuple[bytes, int, Reference]] = []
    for reference in references:
        key_range = reference.key_range.intersect(asked)
        if not key_range.empty:
            assert key_range.high is not None
            edges += [(key_range.low, 1, reference), (key_range.high, -1, reference)]
    edges.sort(key=lambda edge: edge[0])
    active: dict[tuple[str, bytes], Reference] = {}
    begin = b""
    for bound, at_bound in groupby(edges, key=lambda edge: edge[0]):
        if active:
            alone = next(iter(active.values())) if len(active) == 1 else None
            yield Stretch(KeyRange(begin, bound), alone, alone.size if alone else 0)
        for _, step, reference in at_bound:
            if step > 0:
                active[reference.object, reference.low] = reference
            else:
                del active[reference.object, reference.low]
        begin = bound


def highest(ranges: Iterable[KeyRange]) -> bytes | None:
    highs = [r.high for r in ranges]
    return None if None in highs else max(high for high in highs if high is not None)


def joined(ranges: Iterable[KeyRange]) -> list[KeyRange]:
    """Returns the ranges, with neighbours that touch joined into one; they do not overlap and are in key
    order."""
    together: list[KeyRange] = []
    for key_range in sorted(ranges, key=lambda r: r.low):
        if together and together[-1].high == key_range.low:
            together[-1] = KeyRange(together[-1].low, key_range.high)
        else:
            together.append(key_range)
    return together


def overlapping(references: Iterable[Reference], ranges: Sequence[KeyRange]) -> list[Reference]:
    """Returns the references that overlap one of the ranges, which are in key order."""
    lows = [key_range.low for key_range in ranges]
    last = ((r, bisect_left(lows, r.high) - 1) for r in references)  # the last range that begins within it
    return [r for r, index in last if index >= 0 and ranges[index].overlaps(r.key_range)]


def with_few_ranges(cut: Sequence[Stretch], most: int) -> list[bool]:
    """Returns, for each stretch, whether Spark's reader reads it.

    If the data source would get more than `most` key ranges, it also reads the smallest stretches between two
    that it reads anyway, which joins their ranges.  Keys without a reference do not divide a range.
    """
    native = [stretch.alone is not None for stretch in cut]
    runs = [(is_native, list(run)) for is_native, run in groupby(range(len(cut)), key=native.__getitem__)]
    excess = sum(not is_native for is_native, _ in runs) - most
    if excess <= 0:
        return native
    between = [run for is_native, run in runs[1:-1] if is_native]
    for run in sorted(between, key=lambda run: sum(cut[index].size for index in run))[:excess]:
        for index in run:
            native[index] = False
    return native
