"""Cutting a key range into pieces of about equal weight, for parallel reads: pure.

The weight of a reference is taken to be spread evenly between the low bounds that fall into it, which is all
that a snapshot knows; where objects were made by compaction their bounds are dense and the pieces even.
"""

from __future__ import annotations

from collections.abc import Sequence

from lake_core.commits import Reference
from lake_core.keys import KeyRange


def split_range(references: Sequence[Reference], span: KeyRange, *, pieces: int) -> list[KeyRange]:
    """`span` as at most `pieces` ranges that follow each other and cover it."""
    inside = sorted({r.low for r in references if span.contains(r.low) and r.low > span.low})
    if pieces <= 1 or not inside:
        return [span]
    total = sum(r.size for r in references)
    cuts: list[bytes] = []
    weight = 0.0
    by_low = sorted(references, key=lambda r: r.low)
    at = 0
    for low in inside:
        while at < len(by_low) and by_low[at].low < low:
            weight += by_low[at].size
            at += 1
        if weight >= total * (len(cuts) + 1) / pieces and len(cuts) < pieces - 1:
            cuts.append(low)
    bounds = [span.low, *cuts]
    return [KeyRange(low, high) for low, high in zip(bounds, [*cuts, span.high], strict=True)]
