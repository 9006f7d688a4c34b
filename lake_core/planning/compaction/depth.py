"""Depth: bring a spot that is too deep below the bound, for the fewest bytes.

The runs on the spot by age; of all stretches of neighbours that are wide enough to bring the depth to the bound,
the one that holds least is merged.
"""

from __future__ import annotations

from collections.abc import Sequence

from lake_core.planning.compaction.layout import Run


def cheapest(runs: Sequence[Run], *, bound: int) -> Sequence[Run]:
    """The stretch to merge so that at most `bound` runs are left; none where there are no more."""
    width = len(runs) - bound + 1
    if width < 2:
        return ()
    stretches = [runs[begin : begin + width] for begin in range(len(runs) - width + 1)]
    return min(stretches, key=lambda stretch: sum(run.size for run in stretch))
