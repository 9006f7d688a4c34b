"""The words for what the split agent plans and did: for its logs and its report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lake_core.phrases import counted
from log_lake.agents.split.plan import RangesPlan
from log_lake.agents.split.policy import RangePolicy
from log_lake.agents.work import Result


@dataclass(frozen=True)
class RangesResult(Result):
    """What the agent did in a pool: the split points that it added and removed, and how many ranges there are now.

    `version` is None if nothing was to be done.
    """

    version: int | None
    added: int
    removed: int
    ranges: int


def plan_line(pool_name: str, plan: RangesPlan, policy: RangePolicy, *, ranges: int) -> str:
    """Returns a line that says which ranges are split and joined; `ranges` is how many ranges the pool has
    now."""
    has = counted(ranges, "range")
    if policy.is_off:
        return f"{pool_name}: range.bytes and range.records are 0; {has}"
    if not plan.has_work:
        return f"{pool_name}: nothing to split or to join; {has}"
    steps = [
        f"split {counted(len(plan.splits), 'range')}" if plan.splits else "",
        f"join at {counted(len(plan.joins), 'split point')}" if plan.joins else "",
    ]
    return f"{pool_name}: {has}: {', '.join(step for step in steps if step)}"


def pool_line(done: RangesResult) -> str:
    """Returns a line that says what was done in a pool."""
    return f"{done.pool}: {work_line(vars(done))}; {counted(done.ranges, 'range')} now"


def work_line(done: Mapping[str, Any]) -> str:
    """Returns words for what was split and joined, from the figures of one pool or of all pools."""
    return f"added {counted(done['added'], 'split point')}, removed {done['removed']:,}"
