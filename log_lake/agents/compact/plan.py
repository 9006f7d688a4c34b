"""Plans a compaction: makes jobs from references, a policy and a time, the same in every process; pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from hashlib import sha256

from lake_core.history import Reference
from lake_core.history.between import Ages
from lake_core.history.branch_state import BranchState
from lake_core.history.limits import MOST_INLINED
from lake_core.keys import PoolKey
from log_lake.compaction.gain import standing_of
from log_lake.compaction.jobs import CompactionJob, CompactionPlan, NamedJob
from log_lake.compaction.layout import depth_of
from log_lake.compaction.planner import Planner
from log_lake.compaction.policy import CompactionPolicy
from log_lake.compaction.ranges import apart, places
from log_lake.compaction.strategies import find_strategy
from log_lake.indexes.cluster import NO_BUCKET, bucket_by, by_bucket
from log_lake.indexes.cluster_rule import ClusterRule, depths_of

FULL = "full"
"""The name of the strategy that merges all references that overlap."""

PIECE = 64
"""The most jobs of a pool in one piece of work.  The task that does a piece takes minutes, and other pools wait no
longer than that."""

DIVIDE = "objects that are not divided by the cluster"
"""The reason, for people, of a job that divides an object by the rule of clusters."""

WRITE_OUT = "small loads that lie in the journal"
"""The reason, for people, of a job that writes inlined references as objects."""


def plan_branch(
    branch: BranchState,
    references: Sequence[Reference],
    policy: CompactionPolicy,
    *,
    key: PoolKey,
    kind: str,
    now: float,
    points: Sequence[bytes] = (),
    cluster: ClusterRule | None = None,
    schemas: Collection[str] = (),
) -> CompactionPlan:
    """Like `plan_compaction`, for the references of a branch: no job mixes merged and unmerged records.

    It plans each side of the branch by itself (`history.branch_state`), each bucket of the rule `cluster`, and the
    references of no bucket; and each range between the split points.  Ranges that a straddling reference connects
    are planned together, because a job takes such a reference whole.  `schemas` is as in `to_divide`.
    """
    sides = [[r for r in references if branch.is_unmerged(r) == side] for side in (False, True)]
    groups = [group for side in sides for group in by_bucket(side, cluster)]
    parts = [part for group in groups for part in apart(group, points)]
    many = are_many(references, policy)
    plans = [plan_compaction(part, policy, key=key, kind=kind, now=now, writes_out=many) for part in parts]
    if not points and len(plans) < 2 and cluster is None:
        return plans[0] if plans else plan_compaction((), policy, key=key, kind=kind, now=now)
    all_jobs = (piece for plan in plans for job in plan.jobs for piece in job.apart(points))
    jobs = tuple(sorted(all_jobs, key=lambda job: job.inputs[0].order))
    if cluster is not None and policy.strategy == FULL:
        jobs += tuple(to_divide(references, jobs, cluster, policy, schemas=schemas))
    taken = {(r.object, r.low) for job in jobs for r in job.inputs}
    left = [r.key_range for r in references if (r.object, r.low) not in taken]
    return CompactionPlan(
        jobs=jobs,
        references=len(references),
        size=sum(plan.size for plan in plans),
        standing=standing_of(references),
        depth_after=depth_of([*left, *(job.key_range for job in jobs)]),
        strategy=policy.strategy,
        allowed=policy.depth * depths_of(cluster),
    )


def to_divide(
    references: Sequence[Reference],
    jobs: Sequence[CompactionJob],
    rule: ClusterRule,
    policy: CompactionPolicy,
    *,
    schemas: Collection[str],
) -> list[CompactionJob]:
    """Returns jobs that divide single objects of no bucket, which no other job takes, such as those older than the
    rule.  `schemas`: those in which the field has a hash, so that each new object has a bucket."""
    taken = {(r.object, r.low) for job in jobs for r in job.inputs}
    return [
        CompactionJob((r,), max(1, round(r.size / policy.target_size)), DIVIDE)
        for r in references
        if (r.object, r.low) not in taken
        and bucket_by(rule, r.columns) == NO_BUCKET
        and rule.divides(r.size)
        and r.schema in schemas
    ]


def plan_compaction(
    references: Sequence[Reference],
    policy: CompactionPolicy,
    *,
    key: PoolKey,
    kind: str,
    now: float,
    writes_out: bool = False,
) -> CompactionPlan:
    """Returns the jobs that are worthwhile now, for references of one pool or sub-pool in any order.

    `kind` is the kind of the pool: jobs of aggregate pools also take every reference between their inputs in
    age (`between`).  `now` is in seconds since 1970.  `writes_out`: inlined references become objects on the
    store before the strategy plans the rest.  Raises InvalidInput if the strategy does not suit the key.
    """
    ordered = sorted(references, key=lambda r: r.order)
    ages = Ages(ordered) if kind == "aggregate" else None
    planner = Planner(ordered, policy, key=key, now=now, ages=ages)
    if writes_out:
        planner.write_out(WRITE_OUT)
    find_strategy(policy.strategy)(planner)
    if policy.strategy == FULL:
        planner.write_out(WRITE_OUT)
    return planner.plan()


def are_many(references: Sequence[Reference], policy: CompactionPolicy) -> bool:
    """Whether so many references, or so many bytes, are inlined that all inlined references must be written to
    files."""
    inlined = [len(r.data) for r in references if r.data]
    return len(inlined) > policy.max_inputs or sum(inlined) > MOST_INLINED // 2


def jobs_of_inlined(
    branch: BranchState,
    sub_pool: str,
    policy: CompactionPolicy,
    *,
    key: PoolKey,
    kind: str,
    now: float,
    points: Sequence[bytes] = (),
) -> list[CompactionJob]:
    """Returns jobs that only write the inlined references of a pool or sub-pool as objects on the store.

    `key` and `kind` are those of that pool or sub-pool.
    """
    references = branch.snapshot.overlapping(sub_pool=sub_pool)
    jobs: list[CompactionJob] = []
    for side in (False, True):
        ours = [r for r in references if branch.is_unmerged(r) == side]
        ages = Ages(ours) if kind == "aggregate" else None
        planner = Planner(ours, policy, key=key, now=now, ages=ages)
        planner.write_out(WRITE_OUT)
        jobs += planner.jobs
    return [piece for job in jobs for piece in job.apart(points)]


def pieces_of(
    jobs: Sequence[CompactionJob], points: Sequence[bytes], *, now: float
) -> list[tuple[NamedJob, ...]]:
    """Returns the jobs in pieces, each for one task, taking one job of each range in turn.  Without jobs it
    returns one empty piece.

    The time of the run decides which range comes first.  So if a run has a limit, or ends early, the next run
    does not begin at the same keys.  A job over several ranges counts for the first of them.
    """
    by_range: dict[int, list[CompactionJob]] = defaultdict(list)
    for job in jobs:
        by_range[places(job.key_range, points).start].append(job)
    ranges = sorted(by_range)
    first = int.from_bytes(sha256(f"{now}".encode()).digest()[:8]) % max(1, len(ranges))
    turns = [by_range[number] for number in ranges[first:] + ranges[:first]]
    longest = max(map(len, turns), default=0)
    ordered = [of_range[turn].named for turn in range(longest) for of_range in turns if turn < len(of_range)]
    return [tuple(ordered[at : at + PIECE]) for at in range(0, len(ordered), PIECE)] or [()]
