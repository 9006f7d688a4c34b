"""Decides a compaction: which references to merge, in which jobs; pure, and without any pool.

    layout       references as runs, regions and islands
    neighbours   small runs beside each other
    strategies   which runs are worth merging: one function per file
    planner      makes jobs from the claims of a strategy, and limits them by the policy
    jobs         jobs, plans, and the results of jobs
    gain         the depth, objects and bytes of a branch before and after

The measure is the depth: how many references overlap at a key, and so must be merged by a reader of that key.
Jobs of a plan share no input.  Repeated planning comes to an end, because every job leaves fewer references, or
less overlap, than it takes.

The agent (`agents.compact`) passes a branch's references, a policy and the time, and carries out the jobs.
docs/compaction.md explains each strategy.
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
