"""Plans a compaction: makes jobs from references, a policy and a time, the same in every process; pure."""

from __future__ import annotations

from collections.abc import Sequence

from lake_core.history import Reference
from lake_core.history.between import Ages
from lake_core.history.branch_state import BranchState
from lake_core.keys import PoolKey
from log_lake.compaction.gain import standing_of
from log_lake.compaction.jobs import CompactionPlan
from log_lake.compaction.layout import depth_of
from log_lake.compaction.planner import Planner
from log_lake.compaction.policy import CompactionPolicy
from log_lake.compaction.ranges import apart
from log_lake.compaction.strategies import find_strategy


def plan_branch(
    branch: BranchState,
    references: Sequence[Reference],
    policy: CompactionPolicy,
    *,
    key: PoolKey,
    kind: str,
    now: float,
    points: Sequence[bytes] = (),
) -> CompactionPlan:
    """Like `plan_compaction`, for the references of a branch: no job mixes merged and unmerged records.

    It plans each side of the branch by itself (`history.branch_state`), and each range between the split points.
    Ranges that a straddling reference connects are planned together, because a job takes it whole.
    """
    sides = [[r for r in references if branch.is_unmerged(r) == side] for side in (False, True)]
    parts = [part for side in sides for part in apart(side, points)]
    plans = [plan_compaction(part, policy, key=key, kind=kind, now=now) for part in parts]
    if not points and len(plans) < 2:
        return plans[0] if plans else plan_compaction((), policy, key=key, kind=kind, now=now)
    all_jobs = (piece for plan in plans for job in plan.jobs for piece in job.apart(points))
    jobs = tuple(sorted(all_jobs, key=lambda job: job.inputs[0].order))
    taken = {(r.object, r.low) for job in jobs for r in job.inputs}
    left = [r.key_range for r in references if (r.object, r.low) not in taken]
    return CompactionPlan(
        jobs=jobs,
        references=len(references),
        size=sum(plan.size for plan in plans),
        standing=standing_of(references),
        depth_after=depth_of([*left, *(job.key_range for job in jobs)]),
        strategy=policy.strategy,
        allowed=policy.depth,
    )


def plan_compaction(
    references: Sequence[Reference], policy: CompactionPolicy, *, key: PoolKey, kind: str, now: float
) -> CompactionPlan:
    """The jobs that are worthwhile now, for references of one pool or sub-pool in any order.

    `kind` is the pool's: jobs of aggregate pools also take every reference between their inputs in age
    (`between`).  `now` is in seconds since 1970.  Raises InvalidInput if the strategy does not suit the key.
    """
    ordered = sorted(references, key=lambda r: r.order)
    ages = Ages(ordered) if kind == "aggregate" else None
    planner = Planner(ordered, policy, key=key, now=now, ages=ages)
    find_strategy(policy.strategy)(planner)
    return planner.plan()
