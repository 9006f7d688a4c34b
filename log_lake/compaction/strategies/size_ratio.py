"""Size ratio: runs of like sizes together, so that every byte is rewritten about log times.

Universal compaction, as in RocksDB: runs by age; a stretch of neighbours is merged when together they hold at least
`ratio` times what the largest of them holds.  Whatever is rewritten then becomes part of something `ratio` times as
large, so a byte that came with one of n equal loads is rewritten at most log(n) / log(ratio) times.  Stretches are
at least WIDTH runs wide (`planner`).
"""

from __future__ import annotations

from collections.abc import Sequence

from lake_core.history import Reference
from lake_core.keys import KeyRange
from log_lake.compaction.layout import Run
from log_lake.compaction.planner import WIDTH, ChosenRuns, Planner
from log_lake.compaction.strategies.depth import depth

MAX_RUNS = 256
"""The most of the newest runs that are considered, because the search takes quadratic time."""


def size_ratio(planner: Planner) -> None:
    """Merge runs of like sizes, then what is still too deep, then small neighbours."""
    merge_alike(planner, planner.references)
    depth(planner)
    planner.join(planner.references)


def merge_alike(planner: Planner, references: Sequence[Reference]) -> None:
    """Merge runs of like sizes among the references."""

    def choose(runs: Sequence[Run], taken: Sequence[KeyRange]) -> ChosenRuns:
        chosen = alike(runs, ratio=planner.policy.ratio)
        return chosen, f"{len(chosen):,} runs of like sizes"

    planner.claim(references, least=WIDTH, choose=choose)


def alike(runs: Sequence[Run], *, ratio: float) -> Sequence[Run]:
    """The widest stretch of neighbours in age with like sizes; of equally wide ones the smallest; empty if
    there is none."""
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
