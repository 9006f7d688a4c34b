"""Size ratio: runs of like sizes together, so that every byte is rewritten about log times.

Universal compaction, as in RocksDB: runs by age; a stretch of neighbours is merged when together they hold at least
`ratio` times what the largest of them holds.  Whatever is rewritten then becomes part of something `ratio` times as
large, so a byte that came with one of n equal loads is rewritten at most log(n) / log(ratio) times.  Stretches are
at least WIDTH runs wide: merging two at a time would rewrite more for less.
"""

from __future__ import annotations

from collections.abc import Sequence

from lake_core.agents.compact.layout import Run

WIDTH = 4
"""The fewest runs that are worth merging before the depth asks for it."""

MAX_RUNS = 256
"""How many of the newest runs are looked at."""


def alike(runs: Sequence[Run], *, ratio: float) -> Sequence[Run]:
    """The widest stretch of neighbours in age that are alike; of equally wide ones the smallest; or none."""
    newest = runs[-MAX_RUNS:]
    best: Sequence[Run] = ()
    least = 0
    for begin in range(len(newest)):
        if len(newest) - begin < max(WIDTH, len(best)):
            break
        total = largest = 0
        for end in range(begin, len(newest)):
            total += newest[end].size
            largest = max(largest, newest[end].size)
            width = end - begin + 1
            if width < WIDTH or total < ratio * largest:
                continue
            if width > len(best) or (width == len(best) and total < least):
                best, least = newest[begin : end + 1], total
    return best
