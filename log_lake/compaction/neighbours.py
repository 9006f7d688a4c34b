"""Joins small objects that lie next to each other, because each object costs requests, and work in every plan.

The planner joins stretches of small islands (`joinable`) or of small references (`doubling`), in the order of
their low bounds.  Small means less than a quarter of the target size.  A stretch is worth joining if it has at
least `least` islands or references; it ends when it is as large as a whole object.  No large object is
rewritten for a small one beside it, and no stretch crosses a large object.

References of a stretch may overlap: loads whose keys follow time overlap a little, but never deeply.  Joining
makes no key deeper than the deepest key among the references of the plan was.  The proof: if a reference covers
a gap in the stretch and is not part of it, it begins before the stretch.  So it also overlaps the first
reference of the stretch, and the depth there was the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lake_core.history import Reference

SMALL = 4
"""Something is small if it has less than 1/SMALL of the target size."""


def joinable(
    islands: Sequence[Sequence[Reference]],
    *,
    target: int,
    least: int,
    fits: Callable[[int, int], bool],
) -> list[list[Reference]]:
    """Returns stretches of small islands (neighbouring groups of references), from `islands` in key order.  Each
    stretch fits into one job: `fits` says so from the number of inputs and their bytes."""
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


def doubling(
    stretch: Sequence[Reference],
    *,
    target: int,
    least: int,
    fits: Callable[[int, int], bool],
) -> list[list[Reference]]:
    """Returns parts of a stretch of small references, by key, that are worth a job.  Each part fits into one job:
    `fits` says so from the number of inputs and their bytes.

    A part has at least twice the size of its largest reference.  Otherwise the object at the end of a pool, to
    which each hour adds a little, would be rewritten each hour.  If a reference is too large for its
    surroundings, it begins the next part, or is left alone.  A part has at least `least` references.  If the
    next one does not fit into the job, two are enough, because a job may never have room for more.
    """
    parts: list[list[Reference]] = []
    group: list[Reference] = []

    def close(enough: int) -> None:
        """Takes the group as a part, if it has `enough` references and is large enough.  Otherwise shortens it
        from the left: to begin with its largest reference, or without it."""
        nonlocal group
        largest = max(range(len(group)), key=lambda i: group[i].size)
        if len(group) >= enough and size_of(group) >= 2 * group[largest].size:
            parts.append(group)
            group = []
        elif largest:
            parts.extend(doubling(group[:largest], target=target, least=least, fits=fits))
            group = group[largest:]
        else:
            group = group[1:]

    size = 0
    for reference in stretch:
        while group and not fits(len(group) + 1, size + reference.size):
            close(2)
            size = size_of(group)
        group.append(reference)
        size += reference.size
        if size >= target:
            close(least)
            size = size_of(group)
    while group:
        close(least)
    return parts


def size_of(references: Sequence[Reference]) -> int:
    """Bytes of the references."""
    return sum(r.size for r in references)
