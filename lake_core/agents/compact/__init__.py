"""The compact agent: merges objects that overlap, so that reading stays fast.

`policy` reads a pool's settings, `plan` decides which references to merge (both pure); `run` does it and `report`
puts it into words.  `jobs` has the shapes that go between them, `rewrite` carries out one job.

The measure is the depth: how many references overlap at a key, which is what a reader of that key must merge.  A
strategy (`strategies`) claims references for jobs; `planner` makes jobs of them and bounds them; `neighbours` joins
small objects that overlap nothing.  Jobs of a plan share no input, and planning what its own jobs leave comes to an
end, since every job leaves fewer references, or less overlap, than it takes.

The theory, and what the simulator measured, is in docs/compaction.md.
"""

from typing import TYPE_CHECKING

from lake_core.faces import on_demand

if TYPE_CHECKING:
    from lake_core.agents.compact.jobs import CompactionJob, CompactionPlan, CompactionResult
    from lake_core.agents.compact.plan import plan_compaction
    from lake_core.agents.compact.policy import CompactionPolicy, policy_of

__all__ = [
    "CompactionJob",
    "CompactionPlan",
    "CompactionPolicy",
    "CompactionResult",
    "plan_compaction",
    "policy_of",
]

__getattr__ = on_demand(
    __name__,
    {
        "CompactionJob": "jobs",
        "CompactionPlan": "jobs",
        "CompactionPolicy": "policy",
        "CompactionResult": "jobs",
        "plan_compaction": "plan",
        "policy_of": "policy",
    },
)
