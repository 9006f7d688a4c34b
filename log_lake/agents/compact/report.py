"""The words for what compaction plans and did: for the agent's logs, its report and `lake compact`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from lake_core.phrases import counted, human_size
from log_lake.agents.reporting import newest_version
from log_lake.agents.work import Result, Written
from log_lake.compaction.gain import Gain, Standing, gain
from log_lake.compaction.jobs import CompactionJob, CompactionPlan, CompactionResult


@dataclass(frozen=True)
class _Merged(Result):
    """The figures of jobs: inputs of `size_in` bytes became objects of `size_out`; `dropped` jobs lost an input.

    `version` is that of the newest job, None if no job was committed.
    """

    version: int | None
    jobs: int
    dropped: int
    inputs: int
    objects: int
    size_in: int
    size_out: int

    @property
    def wrote(self) -> Written:
        return Written(version=self.version, objects=self.objects, size=self.size_out)


@dataclass(frozen=True)
class CompactResult(Gain, _Merged):
    """What the agent did in a pool.

    If the pool is published, `published` is the version that its table shows (None: Iceberg cannot express the
    pool), and `publication` a line about it.
    """

    published: int | msgspec.UnsetType | None = msgspec.UNSET
    publication: str | msgspec.UnsetType = msgspec.UNSET


def plan_lines(pool_name: str, plan: CompactionPlan) -> Iterator[str]:
    """Yields a compaction's plan as lines: the decision for the pool with its reason, then each job."""
    if not plan.jobs:
        yield f"{pool_name}: nothing to compact ({overlap(plan.depth)}; the policy allows {plan.allowed:,})"
        return
    yield (
        f"{pool_name}: {overlap(plan.depth)} (the policy allows {plan.allowed:,}), {plan.depth_after:,} after "
        f"{counted(len(plan.jobs), 'job')} of {plan.strategy}: rewrite {human_size(plan.rewritten)} of "
        f"{human_size(plan.size)} (write amplification {plan.write_amplification:.2f})"
    )
    for job in plan.jobs:
        yield (
            f"  merge {counted(len(job.inputs), 'object')}, {human_size(job.size)}, {job.depth:,} of them at one "
            f"key, into about {counted(job.outputs, 'object')}: {job.why}"
        )


def overlap(depth: int) -> str:
    """Returns the depth of a pool in words."""
    return f"at most {depth:,} objects overlap" if depth > 1 else "no objects overlap"


def start_line(pool_name: str, jobs: Sequence[CompactionJob], *, lost: int) -> str:
    """Returns the line that a task logs before its work begins.  `lost` jobs were planned, but another writer has
    removed one of their inputs."""
    size = human_size(sum(job.size for job in jobs))
    again = f"; planned again, because inputs of {counted(lost, 'job')} are gone" if lost else ""
    return f"{pool_name}: {counted(len(jobs), 'job')}, {size} to rewrite{again}"


def job_line(job: CompactionJob, result: CompactionResult) -> str:
    """Returns a line that says what a job merged."""
    if result.version is None:
        return f"  dropped: an input changed ({job.why})"
    return (
        f"  version {result.version:,}: merged {counted(result.inputs, 'object')} "
        f"({human_size(result.size_in)}) into {counted(result.objects, 'object')} "
        f"({human_size(result.size_out)}): {job.why}"
    )


def summary(
    pool_name: str,
    results: Sequence[CompactionResult],
    *,
    before: Standing,
    after: Standing,
    publication: Mapping[str, Any] | None = None,
) -> CompactResult:
    """Returns the result for a pool, summed up from the results of its jobs."""
    kept = [result for result in results if result.version is not None]
    return CompactResult(
        pool_name,
        newest_version(result.version for result in kept),
        jobs=len(kept),
        dropped=len(results) - len(kept),
        inputs=sum(result.inputs for result in kept),
        objects=sum(result.objects for result in kept),
        size_in=sum(result.size_in for result in kept),
        size_out=sum(result.size_out for result in kept),
        **vars(gain(before, after)),
        **(publication or {}),
    )


def pool_line(done: CompactResult) -> str:
    """Returns a line that says what was done in a pool."""
    publication = f"; {done.publication}" if done.publication else ""
    work = work_line(vars(done)) if done.jobs or done.dropped else "nothing was merged"
    return f"{done.pool}: {work}; overlap {done.depth_before:,} -> {done.depth_after:,}{publication}"


def work_line(done: Mapping[str, Any]) -> str:
    """Returns words for what was merged, from the figures of one pool or of all pools."""
    dropped = f" ({done['dropped']:,} dropped: an input changed)" if done["dropped"] else ""
    return (
        f"{counted(done['jobs'], 'job')}{dropped} merged {counted(done['inputs'], 'object')} "
        f"({human_size(done['size_in'])}) into {counted(done['objects'], 'object')} "
        f"({human_size(done['size_out'])})"
    )


def lag_text(depth: int, *, allowed: int) -> str:
    """Returns words that say that the pool is still deeper than the policy allows after the agent worked on
    it."""
    return (
        f"the agent lags: {overlap(depth)}, the policy allows {allowed:,}; more is loaded than is merged. If this "
        "stays, run it more often, or give it more slots"
    )
