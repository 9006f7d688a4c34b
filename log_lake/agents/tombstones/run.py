"""The tombstones agent without Spark: removes deleted records from the objects, and retires tombstones.

    search -> mark references without deleted records -> rewrite the others -> retire finished tombstones

Every step is its own transaction and may be repeated: if the agent is killed at any point, the next run plans
again. Loads, deletes and compactions continue meanwhile; if a compaction rewrites a reference first, it has
applied the tombstones itself.  Any `Workers` search and rewrite references.  Callers: the DAG, the Spark
application, `lake tombstones`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from lake_core.ids import first_above
from lake_core.phrases import counted
from lake_core.records import Action, MarkApplied, RemoveTombstone
from log_lake.agents.agent import Agent, AgentRun, OpenWorkers, PoolLook
from log_lake.agents.compact.report import job_line
from log_lake.agents.reporting import newest_version
from log_lake.agents.tombstones.plan import ApplyPlan, CoverSearch, plan_apply, plan_jobs, searches
from log_lake.agents.tombstones.policy import policy_of
from log_lake.agents.tombstones.report import ApplyResult, plan_line, pool_line, search_line, work_line
from log_lake.agents.work import Work
from log_lake.compaction.gain import gain, standing_of
from log_lake.lake import Lake
from log_lake.lake.branch import Branch
from log_lake.lake.branches import planned
from log_lake.presence.absence import planning_again
from log_lake.reading.deleted import Hiding, needs_sequences
from log_lake.reading.merge.streams import ReferenceReading, read_reference
from log_lake.rewriting.compaction import run_jobs
from log_lake.rewriting.exchange import Exchange, LostRace, exchange
from log_lake.workers import Here, Worker, Workers

log = logging.getLogger(__name__)

SEARCHES = 64
"""The most references that one task searches."""


def plan(branch: Branch, *, now: float, at_once: bool = False) -> ApplyPlan:
    """Returns the work on a branch that is due at `now`.  Raises Unavailable, Corrupt."""
    return plan_apply(branch.revision(now=now), policy_of(branch.settings, now=now, at_once=at_once))


def holds_covered(worker: Worker, search: CoverSearch) -> bool:
    """Whether the reference holds a record that one of the tombstones covers.

    Raises ObjectMissing, Corrupt, Unavailable.
    """
    key_range = search.reference.key_range
    reading = ReferenceReading(
        worker.store, search.pool_id, search.key, key_range, search.schema, lifts=search.lifts
    )
    has_sequence = needs_sequences(search.tombstones, [search.reference])
    hiding = Hiding(search.tombstones, key=search.key, has_markers=False)
    for table in read_reference(search.reference, reading, has_sequence=has_sequence):
        if hiding.left(table).num_rows < table.num_rows:
            return True
    return False


def apply(
    branch: Branch,
    *,
    now: float,
    at_once: bool = False,
    workers: Workers | None = None,
) -> ApplyResult:
    """Does the work that is due at `now`, on these workers (default: in this process).

    Raises InvalidInput (`Branch.revision_to_rewrite`), ObjectMissing, Corrupt, OutcomeUnknown, Unavailable.
    """
    return planned(lambda: _apply(branch, workers or Here.of(branch.context), now=now, at_once=at_once))


def _apply(branch: Branch, workers: Workers, *, now: float, at_once: bool) -> ApplyResult:
    revision = branch.revision_to_rewrite(now=now)
    work = plan_apply(revision, policy_of(branch.settings, now=now, at_once=at_once))
    log.info("%s", plan_line(branch.config.name, work))
    suspects = list(searches(revision, work.suspects))
    context, floor = branch.context, revision.state.removed.floor
    first = first_above(floor, now=context.now())
    lease = branch.write_lease(
        context.ids.new(), read_version=revision.version, first=first, why="search deletes"
    )
    with planning_again(branch.history), lease:
        are_dirty = workers.map(holds_covered, suspects, each=SEARCHES)
    dirty = [s.reference for s, holds in zip(suspects, are_dirty, strict=True) if holds]
    clean = [s.reference for s, holds in zip(suspects, are_dirty, strict=True) if not holds]
    if suspects:
        log.info("%s", search_line(branch.config.name, dirty=dirty, clean=clean))
    marked_at = _commit(
        branch,
        revision.version,
        [MarkApplied(r.object, r.low, revision.version) for r in clean],
        does=f"marks {counted(len(clean), 'object')} without deleted records",
        message="searched for deleted records",
    )
    jobs = plan_jobs(work, dirty, target_size=branch.settings["compact.target_size"])
    results = run_jobs(branch, jobs, workers, progress=lambda job, one: log.info("%s", job_line(job, one)))
    done = [one for one in results if one.version is not None]
    retired, retired_at = retire(branch, now=now)
    after = branch.revision(now=now)
    left = after.held.tombstones.values()
    result = ApplyResult(
        pool=branch.config.name,
        version=newest_version([marked_at, *(one.version for one in done), retired_at]),
        searched=len(suspects),
        marked=0 if marked_at is None else len(clean),
        rewritten=sum(one.inputs for one in done),
        size_in=sum(one.size_in for one in done),
        size_out=sum(one.size_out for one in done),
        retired=retired,
        left=len(left),
        covered=len({(r.object, r.low) for t in left for r in after.may_hide(t)}),
        **vars(gain(standing_of(revision.references), standing_of(after.references))),
    )
    log.info("%s", pool_line(result))
    return result


def retire(branch: Branch, *, now: float) -> tuple[int, int | None]:
    """Retires the tombstones that can cover nothing any more.  Returns how many, and the version that retired them
    (None if there were no such tombstones)."""
    revision = branch.revision(now=now)
    work = plan_apply(revision, policy_of(branch.settings, now=now))
    actions = [RemoveTombstone(name) for name in work.retirable]
    does = f"retires {counted(len(actions), 'delete')}"
    version = _commit(branch, revision.version, actions, does=does, message="drop finished deletes")
    return 0 if version is None else len(actions), version


def _commit(
    branch: Branch, read_version: int, actions: Sequence[Action], *, does: str, message: str
) -> int | None:
    """Commits the actions.  Returns the version, or None if another writer changed what they name: the next run
    plans them again."""
    if not actions:
        return None
    change = Exchange(branch.context.ids.new(), read_version, does, others=actions, message=message)
    committed = exchange(branch, change)
    return None if isinstance(committed, LostRace) else committed.version


class TombstonesWork(Work, frozen=True, kw_only=True):
    """A pool whose deletes are to be applied; `at_once`: all deletes, whatever their age."""

    at_once: bool = False


class TombstonesAgent(Agent[TombstonesWork, ApplyResult]):
    """The agent for pools in which deletes are due."""

    work, result = TombstonesWork, ApplyResult
    nothing = "no deletes to apply"
    not_done = "nothing is rewritten"
    none_done = "no deletes were applied"
    to_do = "What was rewritten stays; the next run plans the rest again"
    sums = ("searched", "rewritten", "size_in", "size_out", "retired", "left")

    def look(self, run: AgentRun, name: str) -> PoolLook[TombstonesWork]:
        """Returns the deletes of the pool that are due, as work."""
        branch = run.lake.pool(name).branch(run.asked.branch)
        at_once = run.asked.at_once
        due = plan(branch, now=run.lake.context.now(), at_once=at_once)
        lines = [plan_line(name, due)]
        if due.idle:
            return PoolLook(lines=lines, rests=None if due.waits else branch.config)
        return PoolLook(
            lines=lines,
            work=[run.asked.work(TombstonesWork, name, counted(due.due, "delete"), at_once=at_once)],
        )

    def run(self, lake: Lake, work: TombstonesWork, open_workers: OpenWorkers) -> ApplyResult:
        """Applies the deletes of a pool that are due now."""
        branch = lake.pool(work.pool).branch(work.branch)
        now, at_once = branch.context.now(), work.at_once
        due = plan(branch, now=now, at_once=at_once)
        if not (due.removable or due.suspects):  # Spark is not worth starting
            return apply(branch, now=now, at_once=at_once)
        size = sum(reference.size for reference in branch.revision(now=now).references)
        with open_workers(lake.context, f"lake tombstones {work.pool}", size=size) as workers:
            return apply(branch, now=branch.context.now(), at_once=at_once, workers=workers)

    def line(self, result: ApplyResult) -> str:
        return pool_line(result)

    def total(self, totals: Mapping[str, int]) -> str:
        return f"{counted(totals['pools'], 'pool')}: {work_line(totals)}; {totals['left']:,} left"


AGENT = TombstonesAgent()
