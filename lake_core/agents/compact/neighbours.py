"""Small objects side by side are joined: each costs requests, and a place in every plan.

What is joined are islands (`layout.islands`), most of them one object.  Small is below a quarter of the target
size.  A stretch is worth joining when it holds `least` islands; it ends when it makes a whole object.  Large
islands are never rewritten for the sake of a small one between them, and nothing is joined across them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lake_core.history import Reference

SMALL = 4
"""The part of the target size below which an island is small."""


def joinable(
    islands: Sequence[Sequence[Reference]],
    *,
    target: int,
    least: int,
    fits: Callable[[int, int], bool],
) -> list[list[Reference]]:
    """Stretches of small islands, of islands by key; each stretch such as `fits` a job (inputs, bytes)."""
    found: list[list[Reference]] = []
    stretch: list[Reference] = []
    count = size = 0

    def end() -> None:
        nonlocal stretch, count, size
        if count >= least:
            found.append(stretch)
        stretch, count, size = [], 0, 0

    for island in islands:
        held = sum(r.size for r in island)
        if held * SMALL >= target:
            end()
            continue
        if not fits(len(stretch) + len(island), size + held):
            end()
        stretch.extend(island)
        count += 1
        size += held
        if size >= target:
            end()
    end()
    return found
