"""The derive agent: finds derived pools that are behind their sources, and does their steps.

To look, it reads journals; to work, it reads what is touched, in this process.  Each step is one transaction, so a
run may be stopped and repeated at any point.  A pool that cannot be kept fails alone, and the report says why.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from itertools import islice

from lake_core.phrases import counted
from log_lake.agents.agent import Agent, AgentRun, OpenWorkers, PoolLook
from log_lake.agents.derive.plan import MOST_STEPS, DeriveWork, is_due, policy_of, sources_first
from log_lake.agents.derive.report import DeriveResult, pool_line, work_line
from log_lake.derived.standing import standing_of
from log_lake.derived.step import keep_all
from log_lake.lake import Lake

log = logging.getLogger(__name__)


class DeriveAgent(Agent[DeriveWork, DeriveResult]):
    """The agent for derived pools."""

    work, result = DeriveWork, DeriveResult
    nothing = "every derived pool is up to date"
    not_done = "nothing is computed"
    none_done = "nothing was computed"
    to_do = "The next run computes again"
    sums = ("steps", "groups", "wholes", "records")

    def look(self, run: AgentRun, name: str) -> PoolLook[DeriveWork]:
        """Returns work if the pool is derived and behind its source.  Such a pool never rests, because its source
        changes."""
        pool = run.lake.pool(name)
        if policy_of(pool.settings) is None:
            return PoolLook()
        standing = standing_of(run.lake, pool)
        if standing is None or not is_due(standing):
            return PoolLook()
        line = f"{name}: {standing.line}"
        work = run.asked.work(DeriveWork, name, standing.line, source=standing.source)
        return PoolLook(lines=[line], work=[work])

    def merged(self, all_work: Sequence[DeriveWork], *, now: float) -> list[DeriveWork]:
        """Returns the work in an order in which the source of a pool comes before that pool."""
        by_pool = {work.pool: work for work in all_work}
        return [
            by_pool[pool] for pool in sources_first([*by_pool], {p: w.source for p, w in by_pool.items()})
        ]

    def run(self, lake: Lake, work: DeriveWork, open_workers: OpenWorkers) -> DeriveResult:
        """Does the steps of one pool."""
        done = list(islice(keep_all(lake, lake.pool(work.pool)), MOST_STEPS))
        for step in done:
            log.info("%s", step.line)
        last = done[-1] if done else None
        return DeriveResult(
            work.pool,
            None if last is None else last.version,
            work.source,
            0 if last is None else last.upto,
            steps=len(done),
            groups=sum(step.groups or 0 for step in done),
            wholes=sum(step.groups is None for step in done),
            records=sum(step.records for step in done),
        )

    def line(self, result: DeriveResult) -> str:
        return pool_line(result) if result.steps else f"{result.pool}: another process was faster"

    def total(self, totals: Mapping[str, int]) -> str:
        return f"{counted(totals['pools'], 'pool')}: {work_line(totals)}"


AGENT = DeriveAgent()
