"""Size ratio: merges runs of similar sizes, so that each byte is rewritten about log(n) times for n loads.

This is universal compaction, as in RocksDB.  A stretch of runs, neighbours in age, is merged if together they
have at least `ratio` times the size of the largest.  So each rewrite moves a byte into a run `ratio` times as
large, and with n equal loads a byte is rewritten at most log(n) / log(ratio) times.  Stretches have at least
WIDTH runs (`planner`).
"""

from __future__ import annotations

from collections.abc import Sequence

from lake_core.history import Reference
from lake_core.keys import KeyRange
from log_lake.compaction.layout import Run
from log_lake.compaction.planner import WIDTH, ChosenRuns, Planner
from log_lake.compaction.strategies.depth import depth

MAX_RUNS = 256
"""Only so many of the newest runs are considered, because the search takes quadratic time."""


def size_ratio(planner: Planner) -> None:
    """Merges runs of similar sizes, then runs where the pool is still too deep, then small neighbours."""
    merge_alike(planner, planner.references)
    depth(planner)
    planner.join(planner.references)


def merge_alike(planner: Planner, references: Sequence[Reference]) -> None:
    """Merges runs of similar sizes among the references."""

    def choose(runs: Sequence[Run], taken: Sequence[KeyRange]) -> ChosenRuns:
        chosen = alike(runs, ratio=planner.policy.ratio)
        return chosen, f"{len(chosen):,} runs of like sizes"

    planner.claim(references, least=WIDTH, choose=choose)


def alike(runs: Sequence[Run], *, ratio: float) -> Sequence[Run]:
    """Returns the stretch with the most runs of similar sizes, neighbours in age; among equal ones the smallest.

    Returns no run if there is no such stretch.
    """
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
