"""Small references side by side are joined, whatever the strategy: each object costs requests and a place in the plan.

A reference is small below half of the target size.  Neighbours are joined like sizes of a stack: when together
they are `ratio` times their largest, or reach the target size.  So a byte is rewritten a logarithm of times until
its object is large, and a large object never.  Between two of them no reference may lie that would be overlapped
by what joins them more than it was: the depth must not grow.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lake_core.planning.compaction.claims import FREE, Claims
from lake_core.planning.compaction.size_ratio import alike


def claim_neighbours(claims: Claims, *, ratio: float, within: Sequence[int] | None = None) -> None:
    """Claim free neighbours; with `within` only those of one number, and none whose number is below 0."""
    layout, policy = claims.layout, claims.policy
    if len(layout.references) < 2:
        return
    small = (np.array(claims.holder) == FREE) & (2 * layout.size < policy.target_size)
    linked = small[:-1] & small[1:]
    if within is not None:
        number = np.asarray(within)
        linked &= (number[:-1] == number[1:]) & (number[:-1] >= 0)
    end, begin = layout.end[:-1], layout.begin[1:]
    depth = np.append(layout.depth, 0)
    linked &= (end >= begin) | (depth[end] < np.maximum(depth[end - 1], depth[begin]))
    for chain in _chains(linked.tolist()):
        sizes = layout.size[chain.start : chain.stop].tolist()
        for stretch in alike(sizes, ratio=ratio, enough=policy.target_size):
            for portion in claims.portions(chain[stretch.start : stretch.stop]):
                claims.claim(portion, f"{len(portion)} small neighbours")


def _chains(linked: Sequence[bool]) -> list[range]:
    chains: list[range] = []
    first = 0
    for at, link in enumerate([*linked, False]):
        if not link:
            if at > first:
                chains.append(range(first, at + 1))
            first = at + 1
    return chains
