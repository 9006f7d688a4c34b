"""The compact agent without Spark: finds the pools that have work.  `rewriting.compaction` does the jobs.

A look at a pool reads the end of its journal, and makes a plan, which is pure.  Callers: the driver of agents, the
operator, `lake compact`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

import msgspec

from lake_core.naming import MAIN
from lake_core.phrases import counted
from log_lake.agents.agent import Agent, AgentRun, OpenWorkers, PoolLook
from log_lake.agents.compact.plan import FULL, are_many, jobs_of_inlined, pieces_of, plan_branch
from log_lake.agents.compact.policy import policy_of
from log_lake.agents.compact.publication import publication_due, published
from log_lake.agents.compact.report import (
    CompactResult,
    job_line,
    lag_text,
    plan_lines,
    pool_line,
    start_line,
    summary,
    work_line,
)
from log_lake.agents.finding import in_turns
from log_lake.agents.request import Request
from log_lake.agents.roster import AGENTS
from log_lake.agents.work import Found, Work
from log_lake.compaction.gain import Standing, standing_of
from log_lake.compaction.jobs import (
    CompactionJob,
    CompactionPlan,
    CompactionResult,
    NamedJob,
    jobs_still_there,
)
from log_lake.compaction.policy import CompactionPolicy
from log_lake.compaction.strategies import check_name
from log_lake.indexes.hashes import indexed_field
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.lake.view import View
from log_lake.rewriting.compaction import JobProgress, run_jobs
from log_lake.workers import Here, Workers

log = logging.getLogger(__name__)


def plan_pool(
    lake: Lake, name: str, *, branch: str = MAIN, strategy: str | None = None, now: float
) -> CompactionPlan:
    """Returns the compaction that the pool's policy, or another strategy, plans for a branch.  Raises NotFound,
    InvalidInput."""
    return _plan(lake.pool(name).at_branch(branch), strategy=strategy, now=now)


def _plan(view: View, *, strategy: str | None, now: float) -> CompactionPlan:
    policy = policy_of(view.settings)
    if strategy is not None:
        policy = replace(policy, strategy=strategy)
    plan = plan_branch(
        view.held,
        view.references,
        policy,
        key=view.config.key,
        kind=view.config.kind,
        now=now,
        points=view.points,
        cluster=view.cluster,
        schemas=_divided(view),
    )
    more = [job for name in _sub_pools(view, policy) for job in _inlined_of(view, name, policy, now=now)]
    return replace(plan, jobs=(*plan.jobs, *more)) if more else plan


def _divided(view: View) -> list[str]:
    """Returns the schemas of the view in which the field of the pool's clusters has a hash."""
    if (rule := view.cluster) is None:
        return []
    ids = view.snapshot.schemas(view.sub_pool)
    return [id for id in ids if indexed_field(view.state.schema(id), rule.field) is not None]


def _sub_pools(view: View, policy: CompactionPolicy) -> Iterator[str]:
    """Yields the sub-pools of a pool whose inlined references must be written out."""
    for name in _with_inlined(view):
        references = view.of_sub_pool(name).references
        if policy.strategy == FULL or are_many(references, policy):
            yield name


def _with_inlined(view: View) -> Sequence[str]:
    """Returns the sub-pools of a pool that may have inlined references."""
    return () if view.sub_pool or not view.snapshot.inlined else tuple(view.snapshot.sub_pools())


def _inlined_of(view: View, sub_pool: str, policy: CompactionPolicy, *, now: float) -> list[CompactionJob]:
    of = view.of_sub_pool(sub_pool)
    return jobs_of_inlined(view.held, sub_pool, policy, key=of.key, kind=of.rule.kind, now=now)


class CompactWork(Work, frozen=True, kw_only=True):
    """A pool to compact or to publish: the depth that its policy allowed, the jobs, and the strategy that the run
    names.

    `others`: how many jobs of the pool the other pieces of work of the same run have.  `turn`: how many pieces
    the pool may have in a turn.
    """

    allowed: int | msgspec.UnsetType = msgspec.UNSET
    jobs: tuple[NamedJob, ...] = ()
    others: int = 0
    turn: int = 1
    strategy: str | msgspec.UnsetType | None = msgspec.UNSET

    @property
    def weight(self) -> int:
        return max(1, len(self.jobs))

    @property
    def share(self) -> int:
        return self.turn


def jobs_now(lake: Lake, work: CompactWork) -> tuple[list[CompactionJob], int, Standing]:
    """Returns the jobs that `find` handed out, in their current form; how many of these jobs have lost an input
    since; and the standing of the pool.

    A job loses an input if deletes were applied, or if another compaction was faster.  Then the pool is planned
    again, because it may still be too deep; but not if other pieces of work have jobs of the pool.
    """
    view = lake.pool(work.pool).at_branch(work.branch)
    references = view.references
    of_sub_pools = (view.of_sub_pool(name).references for name in _with_inlined(view))
    jobs = jobs_still_there([*references, *chain.from_iterable(of_sub_pools)], work.jobs)
    lost = len(work.jobs) - len(jobs)
    if lost and not work.others:
        strategy = work.strategy or None
        plan = plan_pool(lake, work.pool, branch=work.branch, strategy=strategy, now=lake.context.now())
        jobs = list(plan.jobs)
    return jobs, lost, standing_of(references)


def log_job(job: CompactionJob, result: CompactionResult) -> None:
    """Logs a line that says what a job merged."""
    log.info("%s", job_line(job, result))


def compact_pool(
    lake: Lake,
    name: str,
    plan: CompactionPlan,
    *,
    branch: str = MAIN,
    workers: Workers | None = None,
    progress: JobProgress = lambda job, result: None,
) -> list[CompactionResult]:
    """Carries out all jobs of a pool's plan, on these workers (default: in this process)."""
    target = lake.pool(name).branch(branch)
    return run_jobs(target, plan.jobs, workers or Here.of(lake.context), progress=progress)


def finished(
    pool: Pool, results: Sequence[CompactionResult], *, branch: str, before: Standing
) -> CompactResult:
    """Publishes the pool if a publication is due, measures its standing, and returns the result for the
    pool."""
    after = standing_of(pool.at_branch(branch).references)
    publication = published(pool, branch=branch)
    return summary(pool.name, results, before=before, after=after, publication=publication)


class CompactAgent(Agent[CompactWork, CompactResult]):
    """The agent for pools that must be compacted or published."""

    work, result = CompactWork, CompactResult
    nothing = "nothing to compact"
    not_done = "nothing is rewritten"
    none_done = "nothing was compacted"
    to_do = "Jobs that were committed stay; the next run plans the others again"
    sums = ("jobs", "dropped", "inputs", "objects", "size_in", "size_out")

    def check(self, asked: Request) -> None:
        """Raises InvalidInput for an unknown strategy."""
        if asked.strategy is not None:
            check_name(asked.strategy)

    def look(self, run: AgentRun, name: str) -> PoolLook[CompactWork]:
        """Returns the jobs that the pool's policy plans, and whether a publication is due."""
        now, pool, asked = run.lake.context.now(), run.lake.pool(name), run.asked
        view = pool.at_branch(asked.branch)
        plan = _plan(view, strategy=asked.strategy, now=now)
        due = publication_due(pool, branch=asked.branch)
        lines = list(plan_lines(name, plan))
        if plan.jobs or due:
            turns = pieces_of(plan.jobs, view.points, now=now)
            work = [
                asked.work(
                    CompactWork,
                    name,
                    counted(len(turn), "job") if turn else due,
                    allowed=plan.allowed,
                    jobs=turn,
                    others=len(plan.jobs) - len(turn),
                    turn=view.settings["compact.share"],
                    piece=f"{name} {number}" if len(turns) > 1 else "",
                    strategy=asked.strategy,
                )
                for number, turn in enumerate(turns)
            ]
            return PoolLook(lines=lines, work=work)
        # whether time alone brings work while the look is remembered: any strategy may depend on the time
        later = now + AGENTS["compact"].remembers
        waits = _plan(view, strategy=asked.strategy, now=later).jobs
        return PoolLook(lines=lines, rests=None if waits else pool.config)

    def merged(self, all_work: Sequence[CompactWork], *, now: float) -> list[CompactWork]:
        return in_turns(all_work, now=now)

    def run(self, lake: Lake, work: CompactWork, open_workers: OpenWorkers) -> CompactResult:
        """Carries out the jobs of a pool.  Without jobs, as when the pool is only published, Spark does not
        start."""
        pool = lake.pool(work.pool)
        jobs, lost, before = jobs_now(lake, work)
        log.info("%s", start_line(work.pool, jobs, lost=lost))
        results: list[CompactionResult] = []
        if jobs:
            size = sum(job.size for job in jobs)
            with open_workers(lake.context, f"lake compact {work.pool}", size=size) as workers:
                results = run_jobs(pool.branch(work.branch), jobs, workers, progress=log_job)
        done = finished(pool, results, branch=work.branch, before=before)
        log.info("%s", pool_line(done))
        return done

    def line(self, result: CompactResult) -> str:
        return pool_line(result)

    def lags(self, all_work: Sequence[CompactWork], results: Sequence[CompactResult]) -> dict[str, str]:
        """Returns the pools that are deeper after the run than their policy allows, each with a line about
        it."""
        allowed = {work.pool: work.allowed for work in all_work}
        last = {one.pool: one for one in sorted(results, key=lambda one: -(one.depth_after or 0))}
        return {
            one.pool: lag_text(one.depth_after, allowed=most)
            for one in last.values()
            if not one.dropped  # it lost to another job, not to loads
            and isinstance(most := allowed.get(one.pool), int)
            and one.depth_after is not None
            and one.depth_after > most
        }

    def totals(self, handed: Found[CompactWork], results: Sequence[CompactResult]) -> dict[str, int]:
        pools = len({one.pool for one in results})
        return super().totals(handed, results) | {
            "pools": pools,
            "late": len(self.lags(handed.work, results)),
        }

    def total(self, totals: Mapping[str, int]) -> str:
        return f"{counted(totals['pools'], 'pool')}: {work_line(totals)}"


AGENT = CompactAgent()
