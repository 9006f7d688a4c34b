"""What compaction plans and what it did, in words: for the agent's logs, its last task and `lake compact`."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lake_core.phrases import counted, human_size
from log_lake.agents.reporting import Found, check_found, conclude, missing, newest_version, sums
from log_lake.compaction.gain import Standing, gain
from log_lake.compaction.jobs import CompactionJob, CompactionPlan, CompactionResult

log = logging.getLogger(__name__)


def plan_lines(pool_name: str, plan: CompactionPlan) -> Iterator[str]:
    """A plan in lines: what is decided for the pool and why, then each job."""
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
    """The depth of a pool, in words."""
    return f"at most {depth:,} objects overlap" if depth > 1 else "no objects overlap"


def start_line(pool_name: str, jobs: Sequence[CompactionJob], *, lost: int) -> str:
    """What a task is about to do; `lost` jobs were planned before, and an input of each is gone."""
    size = human_size(sum(job.size for job in jobs))
    again = f"; planned again, because inputs of {counted(lost, 'job')} are gone" if lost else ""
    return f"{pool_name}: {counted(len(jobs), 'job')}, {size} to rewrite{again}"


def job_line(job: CompactionJob, result: CompactionResult) -> str:
    """What became of a job."""
    if result.version is None:
        return f"  dropped: an input changed ({job.why})"
    return (
        f"  version {result.version:,}: merged {counted(result.inputs, 'object')} "
        f"({human_size(result.size_in)}) into {counted(result.objects, 'object')} "
        f"({human_size(result.size_out)}): {job.why}"
    )


def summary(
    pool_name: str, results: Sequence[CompactionResult], *, before: Standing, after: Standing
) -> dict[str, Any]:
    """What was done in a pool, as plain values for the report; `version`: of the newest job, None without one."""
    kept = [result for result in results if result.version is not None]
    return {
        "pool": pool_name,
        "version": newest_version(result.version for result in kept),
        "jobs": len(kept),
        "dropped": len(results) - len(kept),
        "inputs": sum(result.inputs for result in kept),
        "objects": sum(result.objects for result in kept),
        "size_in": sum(result.size_in for result in kept),
        "size_out": sum(result.size_out for result in kept),
        **vars(gain(before, after)),
    }


def pool_line(done: Mapping[str, Any]) -> str:
    """What became of a pool, from its `summary` and its publication."""
    publication = f"; {done['publication']}" if "publication" in done else ""
    work = _work_line(done) if done["jobs"] or done["dropped"] else "nothing was merged"
    return f"{done['pool']}: {work}; overlap {done['depth_before']:,} -> {done['depth_after']:,}{publication}"


def _work_line(done: Mapping[str, Any]) -> str:
    dropped = f" ({done['dropped']:,} dropped: an input changed)" if done["dropped"] else ""
    return (
        f"{counted(done['jobs'], 'job')}{dropped} merged {counted(done['inputs'], 'object')} "
        f"({human_size(done['size_in'])}) into {counted(done['objects'], 'object')} "
        f"({human_size(done['size_out'])})"
    )


def lag_lines(all_work: Found, results: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The pools in which more objects overlap after the run than the policy allows, a line each."""
    allowed = {work["pool"]: work["allowed"] for work in all_work if "allowed" in work}
    for result in results:
        most = (
            None if result["dropped"] else allowed.get(result["pool"])
        )  # it lost to another job, not to loads
        if most is not None and result["depth_after"] > most:
            yield (
                f"{result['pool']}: the agent lags: {overlap(result['depth_after'])}, the policy allows {most:,}; "
                "more is loaded than is merged. If this stays, run it more often, or give it more slots"
            )


def report(all_work: Found | None, results: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """The agent's last task: a line a pool, where it lags, the totals.  Raises Incomplete if a pool failed."""
    for result in results:
        log.info("%s", pool_line(result))
    lagging = list(lag_lines(all_work or (), results))
    for line in lagging:
        log.warning("%s", line)
    totals = sums(results, "pools", of=("jobs", "dropped", "inputs", "objects", "size_in", "size_out"))
    totals["late"] = len(lagging)
    conclude(
        f"{counted(totals['pools'], 'pool')}: {_work_line(totals)}" if results else "nothing was compacted",
        failed=missing(check_found(all_work), results),
        to_do="Jobs that were committed stay; the next run plans the others again",
    )
    return totals
