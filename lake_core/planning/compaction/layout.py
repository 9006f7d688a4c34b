"""How references lie on the keys: depths, regions that are deep, and runs.

A *region* is a longest range of keys with at least so many references on each.  A *run* is what readers see as one
sorted file: references that share no key and have the same ages, such as the outputs of one compaction.  Runs are
what strategies compare, since a run of a hundred objects is as expensive to rewrite as one object of that size.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lake_core.commits import Reference
from lake_core.keys import KeyRange


@dataclass(frozen=True)
class Region:
    """A range of keys, the references that overlap it (by low bound), and how deep it is at its deepest."""

    span: KeyRange
    references: tuple[Reference, ...]
    depth: int


@dataclass(frozen=True)
class Run:
    """References that follow each other in key order, of the same ages."""

    references: tuple[Reference, ...]
    size: int

    @property
    def age(self) -> tuple[int, int]:
        """By the newest record, then by arrival: runs in this order are from old to new."""
        return self.references[0].seq, self.references[0].place


def depth_of(references: Iterable[Reference]) -> int:
    """The most references on one key."""
    depth = deepest = 0
    for _, step in _edges(references):
        depth += step
        deepest = max(deepest, depth)
    return deepest


def regions(references: Sequence[Reference], *, least: int) -> list[Region]:
    """The ranges of keys on which lie at least so many of the references (2 or more), by key."""
    found: list[tuple[bytes, bytes, int]] = []
    depth = deepest = 0
    begin: bytes | None = None
    for key, step in _edges(references):
        depth += step
        if begin is None and depth >= least:
            begin, deepest = key, depth
        elif begin is not None and depth < least:
            if begin < key:
                found.append((begin, key, deepest))
            begin = None
        deepest = max(deepest, depth)
    ordered = sorted(references, key=lambda r: r.order)
    lows = [r.low for r in ordered]
    reach = _reaches(ordered)
    made = []
    for low, high, deep in found:
        # what begins before the region's end, from the first that reaches into it on
        inside = ordered[bisect_left(reach, True, key=lambda high: high > low) : bisect_left(lows, high)]
        made.append(Region(KeyRange(low, high), tuple(r for r in inside if r.high > low), deep))
    return made


def runs(references: Sequence[Reference]) -> list[Run]:
    """The references as runs, from old to new."""
    by_age: dict[tuple[int, int, bool], list[list[Reference]]] = {}
    for reference in sorted(references, key=lambda r: r.order):
        alike = by_age.setdefault((reference.first_seq, reference.seq, reference.oldest is not None), [])
        for run in alike:
            if run[-1].high <= reference.low:
                run.append(reference)
                break
        else:
            alike.append([reference])
    found = [Run(tuple(run), sum(r.size for r in run)) for alike in by_age.values() for run in alike]
    return sorted(found, key=lambda run: (run.age, run.references[0].object))


def islands(references: Sequence[Reference]) -> list[list[Reference]]:
    """The references in groups that share no key with each other, by key."""
    found: list[list[Reference]] = []
    reach = b""
    for reference in sorted(references, key=lambda r: r.order):
        if found and reference.low < reach:
            found[-1].append(reference)
            reach = max(reach, reference.high)
        else:
            found.append([reference])
            reach = reference.high
    return found


def _edges(references: Iterable[Reference]) -> list[tuple[bytes, int]]:
    """Where depth changes; at equal bounds the ends come first, since ranges are half-open."""
    return sorted(edge for r in references for edge in ((r.low, 1), (r.high, -1)))


def _reaches(ordered: Sequence[Reference]) -> list[bytes]:
    """For each reference the farthest end of it and those before it."""
    reach: list[bytes] = []
    for reference in ordered:
        reach.append(max(reach[-1], reference.high) if reach else reference.high)
    return reach
