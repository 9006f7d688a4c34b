"""The strategy `full`: all that overlaps is merged, all that is too small is joined.

Where the pool, or an island of references that overlap, is larger than a job, it is cut into jobs of neighbours.
Their outputs still overlap at the seams, so the next plan merges these, and the one after finds nothing.  Where
more lie on a key than a job can take, they are first brought together as they arrived.
"""

from __future__ import annotations

from collections.abc import Sequence

from lake_core.planning.compaction.claims import Claims
from lake_core.planning.compaction.islands import islands
from lake_core.planning.compaction.layout import covering
from lake_core.planning.compaction.sweep import sweep


def claim_overlaps(claims: Claims, members: Sequence[int], why: str, *, by_arrival: bool) -> None:
    """Claim the islands of the members, which are free."""
    layout, policy = claims.layout, claims.policy
    for island in islands(layout, members):
        if not claims.fits(len(island), int(layout.size[island].sum())) and _deep(claims, island):
            sweep(claims, island, lambda stack, _: [(range(len(stack)), why)], by_arrival=by_arrival)
            continue
        for portion in claims.portions(island):
            for piece in islands(layout, portion):
                claims.claim(piece, why)


def _deep(claims: Claims, island: Sequence[int]) -> bool:
    layout = claims.layout
    low = int(layout.begin[island].min())
    high = int(layout.end[island].max())
    depth = covering(layout.begin[island] - low, layout.end[island] - low, intervals=high - low)
    return int(depth.max()) > claims.policy.most_inputs // 2
