"""The compaction agent without Spark: which pools have work, the jobs themselves, and the report.

Looking at a pool that has none costs a look at its journal and a plan, which is pure.  A job is rewritten piece by
piece and committed as soon as it is finished; one that fails leaves the others standing, and one whose input
another compaction took is dropped.  `run_jobs` is given how a job's pieces are rewritten: here one after another,
in `spark_apps.compact` as Spark tasks.  Callers: the DAG, the Spark application, `lake compact`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from lake_core.agents.compact import CompactionPlan, plan_compaction, policy_of
from lake_core.agents.compact.rewrite import (
    PendingCompaction,
    begin_compaction,
    commit_compaction,
    pieces_for,
    rewrite,
)
from lake_core.agents.finding import handed_out, look_at_each
from lake_core.agents.reporting import Found, check_found, conclude, missing
from lake_core.agents.request import Request, named_pools
from lake_core.errors import Conflict, LakeError
from lake_core.history import Reference
from lake_core.history.state import MAIN
from lake_core.lake import Lake
from lake_core.lake.branch import Branch
from lake_core.objects.write import WrittenObject
from lake_core.phrases import counted, human_size

log = logging.getLogger(__name__)

Rewriter = Callable[[PendingCompaction], Sequence[WrittenObject]]


@dataclass(frozen=True)
class PoolPlan:
    """A pool, what should be compacted in it, and how many objects its policy lets overlap."""

    pool: str
    branch: str
    plan: CompactionPlan
    allowed: int


@dataclass(frozen=True)
class JobResult:
    """What became of one job.  `transaction` is None where its work was dropped, because another compaction took an
    input meanwhile; sizes in bytes."""

    pool: str
    why: str
    version: int | None
    inputs: int
    objects: int
    records: int
    size_in: int
    size_out: int


def plan_pool(
    lake: Lake, name: str, *, branch: str = MAIN, strategy: str | None = None, now: float
) -> PoolPlan:
    """The plan of the pool's policy, or of another strategy.  Raises NotFound, InvalidInput."""
    pool = lake.pool(name)
    policy = policy_of(pool.settings)
    if strategy is not None:
        policy = replace(policy, strategy=strategy)
    references = pool.at(branch).references
    plan = plan_compaction(references, policy, key=pool.config.key, kind=pool.config.kind, now=now)
    return PoolPlan(name, branch, plan, policy.depth)


def find_work(
    lake: Lake, *, pools: list[str] | None = None, branch: str = MAIN, now: float
) -> list[PoolPlan]:
    """Pools with something to gain; of `pools`, if any are named.  Pools without the branch are passed by."""
    names = pools or [p.name for p in lake.pools()]
    found = []
    for name in names:
        if not pools and branch not in lake.pool(name).history.load().state.branches:
            continue
        work = plan_pool(lake, name, branch=branch, now=now)
        if work.plan.jobs:
            found.append(work)
    return found


def rewrite_here(branch: Branch) -> Rewriter:
    """Rewrites the pieces of a job one after another in this process."""

    def run(work: PendingCompaction) -> list[WrittenObject]:
        pieces = (
            rewrite(work, n, branch.store, new_id=branch.context.ids.new) for n in range(len(work.pieces))
        )
        return [written for written in pieces if written is not None]

    return run


def run_jobs(
    branch: Branch,
    jobs: Sequence[tuple[Sequence[Reference], int, str]],
    rewriter: Rewriter,
    *,
    parallelism: int = 1,
    at_once: int = 1,
    progress: Callable[[JobResult], None] = lambda done: None,
) -> list[JobResult]:
    """Carry out jobs (inputs, outputs wanted, why), `at_once` at a time, each committed as it finishes.

    Raises the first failure after all jobs have been tried.
    """

    def run(job: tuple[Sequence[Reference], int, str]) -> JobResult | LakeError:
        inputs, outputs, why = job
        try:
            size = sum(r.size for r in inputs)
            wanted = pieces_for(outputs, size=size, parallelism=parallelism)
            try:
                work = begin_compaction(branch, inputs, outputs=wanted, message=f"compaction: {why}")
                result = commit_compaction(branch, work, rewriter(work))
            except Conflict:
                done = JobResult(branch.pool.name, why, None, len(inputs), 0, 0, size, 0)
            else:
                done = JobResult(
                    branch.pool.name,
                    why,
                    result.version,
                    result.inputs,
                    result.objects,
                    result.records,
                    result.size_in,
                    result.size_out,
                )
        except LakeError as error:
            return error
        progress(done)
        return done

    with ThreadPoolExecutor(max_workers=at_once) as threads:
        outcomes = list(threads.map(run, jobs))
    for outcome in outcomes:
        if isinstance(outcome, LakeError):
            raise outcome
    return [outcome for outcome in outcomes if isinstance(outcome, JobResult)]


def compact_pool(
    lake: Lake,
    work: PoolPlan,
    *,
    progress: Callable[[JobResult], None] = lambda done: None,
) -> list[JobResult]:
    """All jobs of a plan, here."""
    branch = lake.pool(work.pool).branch(work.branch)
    jobs = [(job.inputs, job.outputs, job.why) for job in work.plan.jobs]
    return run_jobs(branch, jobs, rewrite_here(branch), progress=progress)


def find(params: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The agent's first task: pools with work as plain values, for one mapped task each.

    `params`: lake, pools (none named: all), branch, dry_run.  A dry run logs the plans and gives none.
    """
    asked = Request.read(params, also=("branch",))
    lake = Lake.open(asked.lake)
    found: list[dict[str, Any]] = []

    def look(name: str) -> list[PoolPlan]:
        return find_work(lake, pools=[name], branch=asked.branch, now=lake.context.now())

    for name, work in look_at_each(named_pools(lake, asked.pools), look, named=bool(asked.pools)):
        if work is None:
            found.append(_handed_out(asked, name, None))
        for one in work or ():
            for line in describe(one):
                log.info("%s", line)
            found.append(_handed_out(asked, name, one.plan))
    return handed_out(
        found, dry_run=asked.dry_run, nothing="nothing to compact", not_done="nothing is rewritten"
    )


def _handed_out(asked: Request, pool: str, plan: CompactionPlan | None) -> dict[str, Any]:
    jobs = plan.jobs if plan is not None else ()
    return {
        "lake": asked.lake,
        "pool": pool,
        "branch": asked.branch,
        "title": f"{pool}: {counted(len(jobs), 'job') if plan is not None else 'cannot be read'}",
        "depth": plan.depth if plan is not None else 0,
        "jobs": [
            {"inputs": [[r.object, r.low.hex()] for r in job.inputs], "outputs": job.outputs, "why": job.why}
            for job in jobs
        ],
    }


def still_there(
    held: Iterable[Reference], jobs: Sequence[Mapping[str, Any]]
) -> list[tuple[list[Reference], int, str]]:
    """The jobs as `find` gave them, of which every input is still held; the others somebody has done."""
    known = {(r.object, r.low): r for r in held}
    found = []
    for job in jobs:
        names = [(str(object_id), bytes.fromhex(low)) for object_id, low in job["inputs"]]
        if all(name in known for name in names):
            found.append(([known[name] for name in names], int(job["outputs"]), str(job["why"])))
    return found


def describe(work: PoolPlan) -> list[str]:
    """A plan in lines: the pool, then each job."""
    plan = work.plan
    if not plan.jobs:
        return [
            f"{work.pool}: nothing to compact ({overlap(plan.depth)}; the policy allows {work.allowed:,})"
        ]
    return [
        f"{work.pool}: {overlap(plan.depth)}, {plan.depth_after:,} after {counted(len(plan.jobs), 'job')}: rewrite "
        f"{human_size(plan.rewritten)} of {human_size(plan.size)} (write amplification "
        f"{plan.write_amplification:.2f})",
        *(
            f"  merge {counted(len(job.inputs), 'object')}, {human_size(job.size)}, {job.depth:,} of them at one "
            f"key, into about {counted(job.outputs, 'object')}: {job.why}"
            for job in plan.jobs
        ),
    ]


def overlap(depth: int) -> str:
    """The depth of a pool, in words."""
    return f"at most {depth:,} objects overlap" if depth > 1 else "no objects overlap"


def job_line(done: JobResult) -> str:
    """What became of a job."""
    if done.version is None:
        return f"  dropped: another compaction was faster ({done.why})"
    return (
        f"  version {done.version:,}: merged {counted(done.inputs, 'object')} "
        f"({human_size(done.size_in)}) into {counted(done.objects, 'object')} ({human_size(done.size_out)}): "
        f"{done.why}"
    )


def pool_line(made: Mapping[str, Any]) -> str:
    """What became of a pool, from its `summary`."""
    return f"{made['pool']}: {_work_line(made)}; overlap {made['depth_before']:,} -> {made['depth_after']:,}"


def _work_line(made: Mapping[str, Any]) -> str:
    dropped = f" ({made['dropped']:,} dropped: another compaction was faster)" if made["dropped"] else ""
    return (
        f"{counted(made['jobs'], 'job')}{dropped} merged {counted(made['inputs'], 'object')} "
        f"({human_size(made['size_in'])}) into {counted(made['objects'], 'object')} "
        f"({human_size(made['size_out'])})"
    )


def report(found: Found | None, results: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """The agent's last task: a line a pool, and the totals.  Raises Incomplete if a pool failed."""
    for r in results:
        log.info("%s", pool_line(r))
    summed = ("jobs", "dropped", "inputs", "objects", "size_in", "size_out")
    totals = {"pools": len(results)} | {name: sum(int(r[name]) for r in results) for name in summed}
    conclude(
        f"{counted(totals['pools'], 'pool')}: {_work_line(totals)}" if results else "nothing was compacted",
        failed=missing(check_found(found), results, by="pool", task="run"),
        to_do="Jobs that were committed stay; the next run plans the others again",
    )
    return totals


def summary(pool: str, done: Sequence[JobResult], *, depth_before: int, depth_after: int) -> dict[str, Any]:
    """What was done in a pool, as plain values for the report."""
    kept = [d for d in done if d.version is not None]
    return {
        "pool": pool,
        "jobs": len(kept),
        "dropped": len(done) - len(kept),
        "inputs": sum(d.inputs for d in kept),
        "objects": sum(d.objects for d in kept),
        "size_in": sum(d.size_in for d in kept),
        "size_out": sum(d.size_out for d in kept),
        "depth_before": depth_before,
        "depth_after": depth_after,
    }
