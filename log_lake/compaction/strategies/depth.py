"""Depth: where the pool is too deep, reduces the depth to the bound, for the fewest bytes over time.

Candidates are stretches of runs that are neighbours in age.  They are wide enough for the deepest key, and
wider if another key would stay too deep.  The cheapest stretch now is not always the cheapest over time: small
runs behind a large newer one would stay, and later runs would be merged into that one again and again.  So a
stretch is judged by how much the run of each byte grows.  If a run of size s becomes part of one of size t,
each of its bytes counts log2(t / s) doublings; with n equal loads a byte has at most log2(n) doublings in all.
If there are stretches with at least one doubling per byte on average, the cheapest of them is merged; otherwise
the one with the most doublings per byte.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import log2

from lake_core.history.snapshot.reference import span_of
from lake_core.keys import KeyRange
from log_lake.compaction.layout import Run, depth_of, islands
from log_lake.compaction.planner import ChosenRuns, Planner

WORTH = 1.0
"""A stretch is worth merging if its bytes have at least this many doublings on average."""


def depth(planner: Planner) -> None:
    """Merges runs where the pool is deeper than the policy allows."""
    bound = planner.policy.depth

    def choose(runs: Sequence[Run], taken: Sequence[KeyRange]) -> ChosenRuns:
        return cheapest(runs, taken, bound=bound), f"deeper than {bound:,}"

    planner.claim(planner.references, least=bound + 1, choose=choose)


def cheapest(runs: Sequence[Run], taken: Sequence[KeyRange], *, bound: int) -> Sequence[Run]:
    """Returns the stretch of runs to merge so that the depth, with the outputs of other jobs (`taken`), is at most
    `bound`.

    Returns no run if the depth is within the bound already; all runs if `taken` alone exceeds it.
    """
    most = min(len(runs), len(runs) + len(taken) - bound + 1)
    width = max(2, _depth(runs, taken) - bound + 1)
    while width < most:
        begin = _begin(runs, width)
        merged = islands([r for run in runs[begin : begin + width] for r in run.references])
        kept = [*runs[:begin], *runs[begin + width :]]
        if _depth(kept, [*taken, *(span_of(island) for island in merged)]) <= bound:
            break
        width *= 4  # a few looks, however many runs
    width = min(width, most)
    if width < 2:
        return ()
    begin = _begin(runs, width)
    return runs[begin : begin + width]


def _begin(runs: Sequence[Run], width: int) -> int:
    """Returns the index at which the stretch of that width to merge begins."""
    sizes = [max(1, run.size) for run in runs]
    totals = [0, *accumulate(sizes)]
    logs = [0.0, *accumulate(size * log2(size) for size in sizes)]

    def rank(first: int) -> tuple[bool, float, int]:
        total = totals[first + width] - totals[first]
        doublings = log2(total) - (logs[first + width] - logs[first]) / total
        return (False, 0.0, total) if doublings >= WORTH else (True, round(-doublings, 6), total)

    return min(range(len(runs) - width + 1), key=rank)


def _depth(runs: Sequence[Run], taken: Sequence[KeyRange]) -> int:
    return depth_of([*(r.key_range for run in runs for r in run.references), *taken])
