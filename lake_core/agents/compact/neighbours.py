"""Joining small objects side by side: each object costs requests, and work in every plan.

What is joined are stretches of small islands (`settle`) or of small references (`join`), in the order of their low
bounds.  Small is what holds less than a quarter of the target size.  A stretch is worth joining if it holds `least`
of them; it ends when it makes a whole object.  What is large is never rewritten for something small beside it, and
nothing is joined across it.

References of a stretch may overlap: loads whose keys follow time do, a little, and are never deep.  Joining makes
no key deeper than the deepest key was.  A reference that lies over a gap in the stretch, and is no part of it,
begins before the stretch.  So it lies over the first reference of the stretch too, where the depth was the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lake_core.history import Reference

SMALL = 4
"""Something is small if it holds less than one in SMALL parts of the target size."""


def joinable(
    islands: Sequence[Sequence[Reference]],
    *,
    target: int,
    least: int,
    fits: Callable[[int, int], bool],
) -> list[list[Reference]]:
    """Stretches of small islands, given islands by key; each stretch `fits` one job (inputs, bytes)."""
    stretches: list[list[Reference]] = []
    stretch: list[Reference] = []
    count = size = 0

    def end() -> None:
        nonlocal stretch, count, size
        if count >= least:
            stretches.append(stretch)
        stretch, count, size = [], 0, 0

    for island in islands:
        island_size = sum(r.size for r in island)
        if island_size * SMALL >= target:
            end()
            continue
        if not fits(len(stretch) + len(island), size + island_size):
            end()
        stretch.extend(island)
        count += 1
        size += island_size
        if size >= target:
            end()
    end()
    return stretches


def growing(stretch: Sequence[Reference], *, least: int, ratio: float) -> list[Sequence[Reference]]:
    """The parts of a stretch whose bytes come to be in something at least `ratio` times as large.

    A reference that holds too much of its stretch parts it.  Otherwise the object at the end of a pool, to which
    each hour adds a little, would be rewritten each hour.  Each part has at least `least` references.
    """
    parts: list[Sequence[Reference]] = []
    waiting = [stretch]
    while waiting:  # bounded: what is parted gets shorter
        part = waiting.pop()
        if len(part) < least:
            continue
        largest = max(range(len(part)), key=lambda i: part[i].size)
        if sum(r.size for r in part) >= ratio * part[largest].size:
            parts.append(part)
        else:
            waiting += [part[largest + 1 :], part[:largest]]
    return parts
