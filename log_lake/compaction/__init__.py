"""Compaction as a decision: which references to merge, in which jobs; pure, and without any pool.

    layout       references as runs, regions and islands
    neighbours   small runs beside each other
    strategies   which runs are worth merging: one function a file
    planner      makes jobs of what a strategy claims, and bounds them by the policy
    jobs         jobs, a plan, and what became of a job
    gain         how a branch stood before and after

The measure is the depth: how many references overlap at a key, which is what a reader of that key must merge.
Jobs of a plan share no input.  Planning what its own jobs leave comes to an end, because every job leaves fewer
references, or less overlap, than it takes.

The agent (`agents.compact`) gives it a branch's references, a policy and the time, and does the jobs.
docs/compaction.md says why each strategy chooses as it does.
"""

from typing import TYPE_CHECKING

from lake_core.faces import on_demand

if TYPE_CHECKING:
    from log_lake.compaction.jobs import CompactionJob, CompactionPlan, CompactionResult
    from log_lake.compaction.policy import CompactionPolicy

__all__ = ["CompactionJob", "CompactionPlan", "CompactionPolicy", "CompactionResult"]

__getattr__ = on_demand(
    __name__,
    {
        "CompactionJob": "jobs",
        "CompactionPlan": "jobs",
        "CompactionPolicy": "policy",
        "CompactionResult": "jobs",
    },
)
