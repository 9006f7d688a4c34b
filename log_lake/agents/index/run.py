"""The index agent: finds objects that lack an index, and has their indexes made on any workers.

To look, it lists the pool's index objects and reads a share of them; to work, it reads the indexed fields.  It
commits nothing, so a run may be stopped and repeated at any point.  What a vacuum or a compaction takes meanwhile
gets no index.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from lake_core.phrases import counted
from log_lake.agents.agent import Agent, AgentRun, OpenWorkers, PoolLook
from log_lake.agents.index.plan import of_today, policy_of
from log_lake.agents.index.report import IndexResult, plan_line, pool_line, work_line
from log_lake.agents.reporting import missing
from log_lake.agents.work import Found, Work
from log_lake.indexes.lookup import faults_of
from log_lake.indexes.names import list_indexes
from log_lake.lake import Lake
from log_lake.rewriting.indexing import lacking, make_indexes

log = logging.getLogger(__name__)


class IndexWork(Work, frozen=True, kw_only=True):
    """A pool with objects that lack an index; `size` is that of these objects, in bytes.

    `damaged` are the names of index objects that the look found damaged.
    """

    size: int = 0
    damaged: tuple[str, ...] = ()


class IndexAgent(Agent[IndexWork, IndexResult]):
    """The agent for pools with index rules."""

    work, result = IndexWork, IndexResult
    nothing = "every object has its indexes"
    not_done = "no index is made"
    none_done = "no index was made"
    to_do = "What was made stays; the next run makes the rest"
    sums = ("objects", "size", "damaged", "gone", "left")

    def look(self, run: AgentRun, name: str) -> PoolLook[IndexWork]:
        """Returns the objects that lack an index as work.  A pool with rules never rests: each day the indexes of
        another share are read."""
        pool = run.lake.pool(name)
        if not pool.settings.index_rules:
            return PoolLook(rests=pool.config)
        there = list(list_indexes(pool.store, pool.config.id))
        damaged = faults_of(pool.store, of_today(there, now=run.lake.context.now()))
        whole = [one for one in there if one.info.name not in damaged]
        tasks = lacking(pool, pool.history.load_open().state, whole)
        if not tasks:
            return PoolLook()
        size = sum(task.size for task in tasks)
        line = plan_line(name, objects=len(tasks), size=size, damaged=len(damaged))
        title = counted(len(tasks), "object")
        work = run.asked.work(IndexWork, name, title, size=size, damaged=tuple(damaged))
        return PoolLook(lines=[line], work=[work])

    def run(self, lake: Lake, work: IndexWork, open_workers: OpenWorkers) -> IndexResult:
        """Makes the indexes of one pool, up to the limit of its setting."""
        pool = lake.pool(work.pool)
        most = policy_of(pool.settings).most_bytes
        with open_workers(lake.context, f"lake index {work.pool}", size=min(work.size, most)) as workers:
            indexes = make_indexes(
                pool, checks=set(work.damaged).__contains__, workers=workers, most_bytes=most
            )
        result = IndexResult(work.pool, None, **vars(indexes))
        log.info("%s", pool_line(result))
        return result

    def line(self, result: IndexResult) -> str:
        return pool_line(result)

    def total(self, totals: Mapping[str, int]) -> str:
        return f"{counted(totals['pools'], 'pool')}: {work_line(totals)}"

    def failures(self, handed: Found[IndexWork], results: Sequence[IndexResult]) -> list[str]:
        """Returns a line for each pool that failed, and for each object that cannot be read."""
        faults = [f"{one.pool}: {fault}" for one in results for fault in one.faults]
        return [*missing(handed.work, results), *faults]


AGENT = IndexAgent()
