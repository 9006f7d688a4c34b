"""The compact agent without Spark: which pools have work; `rewriting.compaction` does the jobs.

To look at a pool costs a look at its journal, and a plan, which is pure.  Callers: the DAG, the Spark application,
`lake compact`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lake_core.naming import MAIN
from lake_core.phrases import counted
from lake_core.records.pools import PoolConfig
from log_lake.agents.compact.plan import plan_branch
from log_lake.agents.compact.policy import policy_of
from log_lake.agents.compact.publication import publication_due
from log_lake.agents.compact.report import plan_lines
from log_lake.agents.finding import divided, handed_out, look_at_each
from log_lake.agents.quiet import Quiet
from log_lake.agents.request import OpenLake, Request, named_pools
from log_lake.agents.roster import AGENTS
from log_lake.compaction.gain import Standing, standing_of
from log_lake.compaction.jobs import CompactionJob, CompactionPlan, CompactionResult, jobs_still_there
from log_lake.compaction.strategies import check_name
from log_lake.lake import Lake
from log_lake.lake.view import View
from log_lake.rewriting.compaction import JobProgress, run_jobs
from log_lake.workers import Here

log = logging.getLogger(__name__)


def plan_pool(
    lake: Lake, name: str, *, branch: str = MAIN, strategy: str | None = None, now: float
) -> CompactionPlan:
    """The plan of the pool's policy, or of another strategy.  Raises NotFound, InvalidInput."""
    return _plan(lake.pool(name).at_branch(branch), strategy=strategy, now=now)


def _plan(view: View, *, strategy: str | None, now: float) -> CompactionPlan:
    policy = policy_of(view.settings)
    if strategy is not None:
        policy = replace(policy, strategy=strategy)
    return plan_branch(
        view.held, view.references, policy, key=view.config.key, kind=view.config.kind, now=now
    )


def jobs_now(lake: Lake, work: Mapping[str, Any]) -> tuple[list[CompactionJob], int, Standing]:
    """The jobs that `find` handed out, as they are now; how many of them have lost an input since; the standing.

    If one has, because deletes were applied or another compaction was faster, the pool is planned anew: what is
    left may still be too deep.
    """
    name, branch = work["pool"], work["branch"]
    references = lake.pool(name).at_branch(branch).references
    jobs = jobs_still_there(references, work["jobs"])
    lost = len(work["jobs"]) - len(jobs)
    if lost:
        plan = plan_pool(lake, name, branch=branch, strategy=work.get("strategy"), now=lake.context.now())
        jobs = list(plan.jobs)
    return jobs, lost, standing_of(references)


def compact_pool(
    lake: Lake,
    name: str,
    plan: CompactionPlan,
    *,
    branch: str = MAIN,
    progress: JobProgress = lambda job, result: None,
) -> list[CompactionResult]:
    """Carry out all jobs of a pool's plan, here."""
    target = lake.pool(name).branch(branch)
    return run_jobs(target, plan.jobs, Here.of(lake.context), progress=progress)


def find(
    params: Mapping[str, Any], *, open_lake: OpenLake = Lake.open, recurring: bool = False
) -> list[dict[str, Any]]:
    """The agent's first task: pools to compact or to publish as plain values, for one task `run` each.

    `params`: lake, pools (none named: all), branch, limit, strategy (instead of the pools' own), dry_run.  A dry
    run logs the plans and hands out nothing.  `recurring` is as of `Quiet.of`.
    """
    asked = Request.read(params, also=AGENTS["compact"].parameters)
    if asked.strategy is not None:
        check_name(asked.strategy)
    lake = open_lake(asked.lake)
    names, put_off = divided(named_pools(lake, asked.pools), lake, asked, agent="compact")
    quiet = Quiet.of(lake, asked, agent="compact", recurring=recurring)
    all_work: list[dict[str, Any]] = []

    def look(name: str) -> tuple[PoolConfig, CompactionPlan, str, bool]:
        now, pool = lake.context.now(), lake.pool(name)
        view, strategy = pool.at_branch(asked.branch), asked.strategy
        plan = _plan(view, strategy=strategy, now=now)
        due = publication_due(pool, branch=asked.branch)
        # whether time alone brings work while the look is remembered: any strategy may depend on the time
        later = now + AGENTS["compact"].remembers
        waits = not (plan.jobs or due) and bool(_plan(view, strategy=strategy, now=later).jobs)
        return pool.config, plan, due, waits

    looked_at = quiet.others(names)
    must_find = asked.branch != MAIN and looked_at == names and not put_off
    for name, seen in look_at_each(looked_at, look, named=bool(asked.pools), must_find=must_find):
        if seen is None:
            all_work.append(asked.work(name, "cannot be read", jobs=[]))
            continue
        pool, plan, due, waits = seen
        for line in plan_lines(name, plan):
            log.info("%s", line)
        if plan.jobs or due:
            jobs = [job.values for job in plan.jobs]
            why = counted(len(jobs), "job") if jobs else due
            all_work.append(asked.work(name, why, allowed=plan.allowed, jobs=jobs, strategy=asked.strategy))
        elif not waits:
            quiet.found_nothing(pool)
    quiet.write()
    return handed_out(
        all_work,
        put_off,
        dry_run=asked.dry_run,
        nothing="nothing to compact",
        not_done="nothing is rewritten",
        limit=asked.limit,
        now=lake.context.now(),
    )
