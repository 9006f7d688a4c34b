"""The strategy `size_ratio`: like sizes together, so that every byte is rewritten only about a logarithm of times.

Of the references on a key, in order of their shares, those are merged that together hold at least `ratio` times
what the largest of them holds.  So whatever is rewritten grows by that factor, and a byte that came with one of n
equal loads is rewritten at most log n / log ratio times.  Where nothing can be merged any more, every reference
holds more than 1/(ratio - 1) of all smaller ones together: the sums grow by ratio/(ratio - 1) from one to the next, and
at most 1 + log n / log(ratio/(ratio - 1)) references lie on a key.  A large ratio writes little and reads deep,
one near 1 the other way round; universal compaction is this rule for runs that all span the same keys.

The logarithm grows with the pool: where it lies deeper than the policy's depth, the strategy `depth` takes over.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np

from lake_core.planning.compaction import depth as depth_strategy
from lake_core.planning.compaction.claims import Claims


def choose(claims: Claims, stack: Sequence[int], depth: int) -> list[tuple[range, str]]:
    """Which neighbours of a stack to merge, and why."""
    layout, ratio = claims.layout, claims.policy.ratio
    found = [
        (stretch, f"{len(stretch)} alike on a key")
        for stretch in alike([float(layout.share[m]) for m in stack], ratio=ratio, spread=SPREAD)
        if _grows(claims, [stack[i] for i in stretch])
    ]
    return found or depth_strategy.choose(claims, stack, depth)


def _grows(claims: Claims, members: Sequence[int]) -> bool:
    """Whether what is alike on one key is so on most keys of the largest."""
    layout = claims.layout
    largest = max(members, key=lambda m: (layout.share[m], m))
    begin, end = int(layout.begin[largest]), int(layout.end[largest])
    others = layout.overlapping(begin, end)
    others = others[(layout.share[others] <= 2 * layout.share[largest]) & (claims.held[others] < 0)]
    common = (
        layout.held[np.minimum(layout.end[others], end)]
        - layout.held[np.maximum(layout.begin[others], begin)]
    )
    return bool((common * layout.share[others]).sum() >= FILL * claims.policy.ratio * layout.size[largest])


FILL = 1.0
import os

SPREAD = float(os.environ.get("SPREAD", "8"))


def alike(sizes: Sequence[float], *, ratio: float, enough: float = inf, spread: float = inf) -> list[range]:
    """The longest stretches of neighbours that together are `ratio` times their largest, or `enough`, in order.

    Each has at least two members.  Where a stretch is too little it is split at its largest, which is more than
    1/ratio of it: so the splits are few where sizes are spread, and none where they are alike.
    """
    found: list[range] = []
    left = [range(len(sizes))]
    while left:
        stretch = left.pop()
        if len(stretch) < 2:
            continue
        within = sizes[stretch.start : stretch.stop]
        largest = max(within)
        core = stretch
        if spread < inf:
            first, last = stretch.start, stretch.stop
            while sizes[first] * spread < largest:
                first += 1
            while sizes[last - 1] * spread < largest:
                last -= 1
            core = range(first, last)
        if len(core) > 1 and sum(sizes[core.start : core.stop]) >= min(ratio * largest, enough):
            found.append(core)
            left += [range(stretch.start, core.start), range(core.stop, stretch.stop)]
        else:
            at = stretch.start + within.index(largest)
            left += [range(stretch.start, at), range(at + 1, stretch.stop)]
    return sorted(found, key=lambda stretch: stretch.start)
