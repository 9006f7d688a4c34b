"""A plan of compaction: lay out the references, let the strategy choose, bound, check, describe: pure."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from math import inf

import numpy as np

from lake_core.commits import Reference
from lake_core.keys import KeyRange, PoolKey
from lake_core.planning.compaction import depth, size_ratio
from lake_core.planning.compaction.claims import FREE, Claims, Group
from lake_core.planning.compaction.full import claim_overlaps
from lake_core.planning.compaction.jobs import CompactionJob, CompactionPlan
from lake_core.planning.compaction.layout import Layout, covering, lay_out
from lake_core.planning.compaction.neighbours import claim_neighbours
from lake_core.planning.compaction.policy import CompactionPolicy
from lake_core.planning.compaction.ripe import claim_ripe
from lake_core.planning.compaction.seams import close_seams
from lake_core.planning.compaction.sweep import sweep
from lake_core.planning.compaction.time_window import claim_windows


def plan_compaction(
    references: Sequence[Reference], policy: CompactionPolicy, *, key: PoolKey, kind: str, now: float
) -> CompactionPlan:
    """The jobs that are worth it now, for references of one (sub-)pool in any order.

    `kind` is the pool's.  Raises InvalidInput for `time_window` where the leading key field cannot be a time.
    """
    layout = lay_out(references)
    claims = Claims(layout, policy)
    by_arrival = kind == "aggregate"
    everything = range(len(layout.references))
    match policy.strategy:
        case "full":
            claim_overlaps(claims, everything, "they overlap", by_arrival=by_arrival)
            claim_neighbours(claims, ratio=1.0)
        case "time_window":
            claim_windows(claims, key=key, now=now, by_arrival=by_arrival)
        case strategy:
            rule = size_ratio.choose if strategy == "size_ratio" else depth.choose
            if strategy == "size_ratio" and not os.environ.get("OLD"):
                claim_ripe(claims, everything)
                rule = depth.choose
            sweep(claims, everything, partial(rule, claims), by_arrival=by_arrival)
            close_seams(claims, since=0)
            claim_neighbours(claims, ratio=policy.ratio)
    groups = [group for group in claims.groups if group]
    return CompactionPlan(
        jobs=tuple(_job(layout, policy, group) for group in groups),
        references=len(layout.references),
        size=int(layout.size.sum()),
        depth=int(layout.depth.max(initial=0)),
        depth_after=_depth_after(claims, groups),
        stands_until=inf,
    )


def _job(layout: Layout, policy: CompactionPolicy, group: Group) -> CompactionJob:
    members = sorted(group.members)
    inputs = tuple(layout.references[m] for m in members)
    depths = covering(
        layout.begin[members] - group.begin,
        layout.end[members] - group.begin,
        intervals=group.end - group.begin,
    )
    return CompactionJob(
        inputs=inputs,
        why=group.why,
        span=KeyRange(layout.bounds[group.begin], layout.bounds[group.end]),
        size=group.size,
        records=sum(r.records for r in inputs),
        depth=int(depths.max()),
        outputs=max(1, round(group.size / policy.target_size)),
    )


def _depth_after(claims: Claims, groups: Sequence[Group]) -> int:
    layout = claims.layout
    left = [m for m, holder in enumerate(claims.holder) if holder == FREE]
    begin = np.concatenate((layout.begin[left], np.array([g.begin for g in groups], np.int64)))
    end = np.concatenate((layout.end[left], np.array([g.end for g in groups], np.int64)))
    return int(covering(begin, end, intervals=max(0, len(layout.bounds) - 1)).max(initial=0))
