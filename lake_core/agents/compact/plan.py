"""A plan of compaction: references, a policy and a time give jobs, the same in every process; pure."""

from __future__ import annotations

from collections.abc import Sequence

from lake_core.agents.compact.between import Ages
from lake_core.agents.compact.jobs import CompactionPlan
from lake_core.agents.compact.planner import Planner
from lake_core.agents.compact.policy import CompactionPolicy
from lake_core.agents.compact.strategies import find_strategy
from lake_core.history import Reference
from lake_core.keys import PoolKey


def plan_compaction(
    references: Sequence[Reference], policy: CompactionPolicy, *, key: PoolKey, kind: str, now: float
) -> CompactionPlan:
    """The jobs that are worth it now, for references of one (sub-)pool in any order.

    `kind` is the pool's: jobs of aggregate pools take everything between their inputs in age (`between`).  `now`
    is in seconds since 1970.  Raises InvalidInput if the strategy does not suit the key.
    """
    ordered = sorted(references, key=lambda r: r.order)
    ages = Ages(ordered) if kind == "aggregate" else None
    planner = Planner(ordered, policy, key=key, now=now, ages=ages)
    find_strategy(policy.strategy)(planner)
    return planner.plan()
