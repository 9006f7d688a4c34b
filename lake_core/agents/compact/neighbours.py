"""Joining small objects side by side: each object costs requests, and work in every plan.

The planner joins islands (`layout.islands`); most islands are one object.  An island below a quarter of the
target size is small.  A stretch of them is worth joining if it holds `least` islands; it ends when it makes a
whole object. A large island is never rewritten for a small one beside it, and nothing is joined across it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lake_core.history import Reference

SMALL = 4
"""An island is small if it holds less than one in SMALL parts of the target size."""


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
