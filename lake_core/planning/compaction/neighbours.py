"""Small objects side by side, which overlap nothing, are joined: each costs requests, and a place in every plan.

Small is below a quarter of the target size.  A stretch is worth joining when it is `least` wide, or makes a whole
object.  Large objects are never rewritten for the sake of a small one between them.
"""

from __future__ import annotations

from collections.abc import Sequence

from lake_core.commits import Reference

SMALL = 4
"""The part of the target size below which an object is small."""


def joinable(alone: Sequence[Reference], *, target: int, least: int, most: int) -> list[list[Reference]]:
    """Stretches of small references, of references by key that overlap nothing; of at most `most` each."""
    found: list[list[Reference]] = []
    stretch: list[Reference] = []
    size = 0

    def end() -> None:
        nonlocal stretch, size
        if len(stretch) >= least or (len(stretch) > 1 and size >= target):
            found.append(stretch)
        stretch, size = [], 0

    for reference in alone:
        if reference.size * SMALL >= target:
            end()
            continue
        stretch.append(reference)
        size += reference.size
        if size >= target or len(stretch) == most:
            end()
    end()
    return found
