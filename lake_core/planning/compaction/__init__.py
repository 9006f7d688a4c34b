from lake_core.planning.compaction.jobs import CompactionJob, CompactionPlan
from lake_core.planning.compaction.layout import lay_out
from lake_core.planning.compaction.plan import plan_compaction
from lake_core.planning.compaction.policy import CompactionPolicy, policy_of

__all__ = ["CompactionJob", "CompactionPlan", "CompactionPolicy", "lay_out", "plan_compaction", "policy_of"]
