"""The split agent: finds pools with ranges that are too large or too small, and commits new split points.

To look, it reads no object; to work, it reads only footers.  So neither needs Spark.  A run may be stopped and
repeated at any point: all changes of a pool are one transaction.  Changes that another writer has made
meanwhile are not made again.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from lake_core.naming import MAIN
from lake_core.phrases import counted
from lake_core.records import Action, Join, Split
from log_lake.agents.agent import Agent, AgentRun, OpenWorkers, PoolLook
from log_lake.agents.split.plan import RangesPlan, cuts_of, plan_ranges
from log_lake.agents.split.policy import policy_of
from log_lake.agents.split.report import RangesResult, plan_line, pool_line, work_line
from log_lake.agents.work import Work
from log_lake.lake import Lake
from log_lake.lake.branches import planned
from log_lake.lake.pool import Pool
from log_lake.lake.view import View
from log_lake.presence.absence import planning_again
from log_lake.reading.split import samples_of, whole_keys

log = logging.getLogger(__name__)


def plan_view(view: View) -> RangesPlan:
    """Returns which ranges of the pool to split and to join, by what the view shows."""
    return plan_ranges(view.references, view.points, policy_of(view.settings))


def split_pool(pool: Pool) -> RangesResult:
    """Splits and joins the ranges of a pool by its settings and by the objects of `main`.

    Raises InvalidInput, ObjectMissing, Corrupt, OutcomeUnknown, Unavailable.
    """
    return planned(lambda: _split_pool(pool))


def _split_pool(pool: Pool) -> RangesResult:
    view = pool.at_branch(MAIN)
    plan, policy = plan_view(view), policy_of(view.settings)
    log.info("%s", plan_line(pool.name, plan, policy, ranges=len(view.points) + 1))
    points: list[bytes] = []
    with planning_again(pool.history):
        for key_range, _ in plan.splits:
            inside = view.references_in(key_range)
            samples = samples_of(inside, pool.store, pool_id=pool.config.id, weigh=policy.part)
            points += (p for p in whole_keys(cuts_of(samples, key_range), view.key) if p != key_range.low)
    actions: list[Action] = [Join(plan.joins)] if plan.joins else []
    actions += [Split(tuple(points))] if points else []
    ranges = len(view.points) + 1 + len(points) - len(plan.joins)
    if not actions:
        return RangesResult(pool.name, None, 0, 0, ranges)
    message = f"split at {counted(len(points), 'key')}, join at {len(plan.joins):,}"
    done = pool.commit_actions(tuple(actions), on=view.version, message=message)
    if done.unchanged:
        return RangesResult(pool.name, None, 0, 0, ranges)
    return RangesResult(pool.name, done.version, len(points), len(plan.joins), ranges)


class SplitAgent(Agent[Work, RangesResult]):
    """The agent for pools whose ranges are too large or too small."""

    work, result = Work, RangesResult
    nothing = "no range to split or to join"
    not_done = "no split point is added or removed"
    none_done = "no range was split or joined"
    to_do = "The next run plans again"
    sums = ("added", "removed", "ranges")

    def look(self, run: AgentRun, name: str) -> PoolLook[Work]:
        """Returns the ranges that the state alone shows to be too large or too small, as work."""
        pool = run.lake.pool(name)
        view = pool.at_branch(MAIN)
        plan = plan_view(view)
        lines = [plan_line(name, plan, policy_of(view.settings), ranges=len(view.points) + 1)]
        if not plan.has_work:
            return PoolLook(lines=lines, rests=pool.config)
        title = counted(len(plan.splits) + len(plan.joins), "change")
        return PoolLook(lines=lines, work=[run.asked.work(Work, name, title)])

    def run(self, lake: Lake, work: Work, open_workers: OpenWorkers) -> RangesResult:
        """Splits and joins the ranges of one pool."""
        return split_pool(lake.pool(work.pool))

    def line(self, result: RangesResult) -> str:
        return pool_line(result)

    def total(self, totals: Mapping[str, int]) -> str:
        return f"{counted(totals['pools'], 'pool')}: {work_line(totals)}"


AGENT = SplitAgent()
