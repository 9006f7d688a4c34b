"""Describes how references lie on the keys: depths, regions that are deep, islands, and runs.

A *region* is a range of keys, as wide as possible, in which every key has at least half the depth of the
deepest one.  It does not end at a gap between two objects of one run, because every run would be divided there.
An *island* is a group of references that are connected by overlaps, and overlap no other.  A *run* is what
readers see as one sorted file: references that share no key, such as the outputs of one compaction.  Strategies
compare runs, because a run of a hundred objects is as expensive to rewrite as one object of that size.

Runs are built as blocks are stacked: from old to new, each reference falls until it rests on one that it
overlaps, and each layer is a run.  So at every key the runs are in order of age, whichever jobs made them.  If
only ages were compared, a run whose objects were rewritten by different jobs would be divided.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from lake_core.history import Reference
from lake_core.keys import KeyRange


@dataclass(frozen=True)
class Region:
    """A deep range of keys: the references that overlap it (by low bound), and the outputs of other jobs that
    overlap it."""

    key_range: KeyRange
    references: tuple[Reference, ...]
    taken: tuple[KeyRange, ...]


@dataclass(frozen=True)
class Run:
    """References that share no key, by key; `size` in bytes."""

    references: tuple[Reference, ...]
    size: int


def depth_of(spans: Iterable[KeyRange]) -> int:
    """Returns how many ranges overlap at the key where most of them do."""
    depth = deepest = 0
    for _, step in _edges(spans):
        depth += step
        deepest = max(deepest, depth)
    return deepest


def regions(references: Sequence[Reference], *, taken: Sequence[KeyRange], least: int) -> list[Region]:
    """Returns the regions, in key order.  In each, some key has at least `least` (2 or more) overlapping ranges,
    and every key has half as many.

    The ranges are those of the references, and `taken`: the ranges that the outputs of other jobs will have.
    """
    bounds: list[tuple[bytes, bytes]] = []
    depth = deepest = 0
    begin: bytes | None = None
    for key, step in _edges([*(r.key_range for r in references), *taken]):
        depth += step
        if begin is None and 2 * depth >= least:
            begin, deepest = key, depth
        elif begin is not None and 2 * depth < least:
            if deepest >= least:
                bounds.append((begin, key))
            begin = None
        deepest = max(deepest, depth)
    spans = [KeyRange(low, high) for low, high in bounds]
    ordered = sorted(references, key=lambda r: r.order)
    own_positions = _overlapping(spans, [r.key_range for r in ordered])
    others = _overlapping(spans, taken)
    return [
        Region(key_range, tuple(ordered[i] for i in mine), tuple(taken[i] for i in theirs))
        for key_range, mine, theirs in zip(spans, own_positions, others, strict=True)
    ]


def _overlapping(regions: Sequence[KeyRange], spans: Sequence[KeyRange]) -> list[list[int]]:
    """For each region, the positions of the spans that overlap it.  Regions are in order and share no key."""
    positions: list[list[int]] = [[] for _ in regions]
    ends = [region.high or b"" for region in regions]
    for i, key_range in enumerate(spans):
        for number in range(bisect_right(ends, key_range.low), len(regions)):
            if not regions[number].overlaps(key_range):
                break
            positions[number].append(i)
    return positions


def runs(references: Sequence[Reference]) -> list[Run]:
    """Returns the references as runs (groups that share no key), from old to new."""
    starts, heights = [b""], [0]  # from each start on, so many runs lie at a key
    layers: list[list[Reference]] = []
    for reference in sorted(references, key=lambda r: (r.seq, r.ordinal, r.low, r.object)):
        first = bisect_right(starts, reference.low) - 1
        last = bisect_left(starts, reference.high)
        height = max(heights[first:last])
        kept = [(starts[first], heights[first])] if starts[first] < reference.low else []
        changed = [*kept, (reference.low, height + 1), (reference.high, heights[last - 1])]
        if last < len(starts) and starts[last] == reference.high:
            changed.pop()
        starts[first:last] = [start for start, _ in changed]
        heights[first:last] = [high for _, high in changed]
        if height == len(layers):
            layers.append([])
        layers[height].append(reference)
    return [Run(tuple(sorted(layer, key=lambda r: r.order)), sum(r.size for r in layer)) for layer in layers]


def islands(references: Sequence[Reference]) -> list[list[Reference]]:
    """Returns the references in groups, by key; references of two groups share no key."""
    groups: list[list[Reference]] = []
    reach = b""
    for reference in sorted(references, key=lambda r: r.order):
        if groups and reference.low < reach:
            groups[-1].append(reference)
            reach = max(reach, reference.high)
        else:
            groups.append([reference])
            reach = reference.high
    return groups


def _edges(spans: Iterable[KeyRange]) -> Iterator[tuple[bytes, int]]:
    """Yields the keys at which the depth changes, in order, and by how much; ends come first, because ranges are
    half-open.

    Every range must have a high bound, as references and jobs do.
    """
    all_spans = list(spans)
    highs = sorted(key_range.high or b"" for key_range in all_spans)
    ended = 0
    for low in sorted(key_range.low for key_range in all_spans):
        while highs[ended] <= low:
            yield highs[ended], -1
            ended += 1
        yield low, 1
    for high in highs[ended:]:
        yield high, -1
