"""The retention agent without Spark: finds the pools that have work, and does the work.

    expire             removes old records from the branch (`expire.*`); their objects join the list of removed ones
    end of holds       deletes tags that keep a version for a clone, if the clone needs nothing here any more
    scan for orphans   puts objects that were never committed onto that list too
    vacuum             deletes objects of the list once `vacuum.grace` and `history.keep` are over
    purge              deletes entries older than `history.keep`, after a checkpoint

A run for all pools also deletes dropped pools whose `vacuum.grace` is over, ends transactions over several
pools that have been open for too long, and deletes the decisions that no journal needs any more.

The purge comes last, because the vacuum reads from the journal's entries when an object was removed.  After a
purge only a checkpoint is left, which is younger.  Every step may be repeated: if the agent is killed at any
point, the next run plans again.  Any `Workers` list and delete objects.  Callers: the DAG, the Spark
application; `lake expire`, `lake vacuum` and `lake purge` do single steps.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice

import msgspec

from lake_core.history import PoolState
from lake_core.history.removal import Removal
from lake_core.naming import MAIN
from lake_core.phrases import counted, listed
from log_lake.agents.agent import Agent, AgentRun, OpenWorkers, PoolLook
from log_lake.agents.checkpoint.run import checkpoint_and_purge, purgeable
from log_lake.agents.quiet import ALWAYS
from log_lake.agents.reporting import newest_version
from log_lake.agents.retention import expire as expiry
from log_lake.agents.retention.plan import RetentionPlan
from log_lake.agents.retention.policy import policy_of
from log_lake.agents.retention.report import (
    RetentionResult,
    pool_line,
    retention_lines,
    transactions_line,
    work_line,
)
from log_lake.agents.roster import AGENTS
from log_lake.agents.work import Work
from log_lake.compaction.gain import Gain, Standing, gain, standing_of
from log_lake.lake import Lake
from log_lake.lake.holds import clone_tags, end_holds, ended
from log_lake.lake.open_transactions import clean, due
from log_lake.lake.pool import Pool
from log_lake.reading.revision import Revision
from log_lake.vacuum.dropped import delete_dropped, plan_dropped
from log_lake.vacuum.execute import make_plan, vacuum, vacuum_lease
from log_lake.vacuum.indexes import unused_indexes
from log_lake.vacuum.orphans import due_from, is_due, scan_orphans
from log_lake.vacuum.plan import MAX_OBJECTS, begun_objects
from log_lake.workers import Workers

log = logging.getLogger(__name__)

AHEAD = AGENTS["retention"].remembers
"""The agent may skip a pool only if time alone brings it no work for this many seconds."""

SHORTEST_REST = 3600.0
"""Seconds: a pool in which an object's grace time ends sooner is looked at in each run."""

DROPPED = "dropped pools"
"""A name for the dropped pools where a task names a pool; no pool can have this name."""


TRANSACTIONS = "transactions over pools"
"""A name for the transactions over several pools, used in the same way."""


def plan(lake: Lake, pool_name: str, *, branch: str = MAIN) -> RetentionPlan:
    """Returns the work in a pool.  If nothing was ever removed there, this costs a look at the journal and two
    listings.

    Raises NotFound, ObjectMissing, Corrupt, Unavailable.
    """
    return _plan(lake, lake.pool(pool_name), branch=branch, now=lake.context.now())


def _plan(lake: Lake, pool: Pool, *, branch: str, now: float) -> RetentionPlan:
    work = expiry.plan(pool, branch=branch)
    loaded = pool.history.load_open()
    removed = loaded.state.removed
    # a list in a checkpoint may be empty
    listed_some = {} if removed.is_empty() else dict(islice(removed.items(), MAX_OBJECTS))

    def entries(moment: float) -> int:
        return purgeable(pool, newest=loaded.version, now=moment)

    holds = clone_tags(loaded.state)  # they end when something changes in other pools
    may_rest = work.idle and not (work.stays or removed.vacuums or holds)
    scan_due = due_from(pool, since=removed.scanned, ahead=AHEAD)
    until = min(scan_due, _grace_ends(pool, listed_some.values()))
    later = min(now + AHEAD, until)
    may_rest &= now + SHORTEST_REST < until
    if may_rest and not (entries(later) or _expires_later(pool, branch=branch)):
        # what is not due later is not due now
        unused = len(unused_indexes(pool, loaded.state))
        return RetentionPlan(work, held=_in_grace(listed_some), unused=unused, rests=not unused, until=until)
    # to plan a vacuum takes a lease and some ten requests
    deletable, size, kept = _plan_vacuum(pool) if listed_some else (0, 0, {})
    begun = begun_objects(removed.vacuums.values())
    other = RetentionPlan(
        work,
        deletable=deletable,
        size=size,
        held=kept,
        unfinished=len(removed.vacuums),
        begun=len(begun),
        begun_size=sum(one.size for one in begun),
        has_new_names=scan_due < now,
        entries=entries(now),
        ended=len(list(ended(lake, pool, loaded.state, grace=pool.settings["vacuum.grace"]))),
    )
    # if there is other work, its vacuum deletes unused indexes too
    return replace(other, unused=len(unused_indexes(pool, loaded.state))) if other.idle else other


def _grace_ends(pool: Pool, removals: Iterable[Removal]) -> float:
    """Returns when a vacuum may delete the first of these objects, by the clocks of those who removed them, in
    seconds since 1970."""
    age = max(pool.settings["vacuum.grace"], pool.settings["history.keep"])
    return min((removal.time / 1e6 + age for removal in removals), default=ALWAYS)


def _in_grace(objects: Mapping[str, Removal]) -> dict[str, int]:
    return {"grace": len(objects)} if objects else {}


def _expires_later(pool: Pool, *, branch: str) -> bool:
    """Whether something expires within `AHEAD`, or would expire but must stay, if nothing is written until
    then."""
    if policy_of(pool.settings).age is None:  # nothing else is a matter of time
        return False
    later = expiry.plan(pool, branch=branch, ahead=AHEAD)
    return not later.idle or bool(later.stays)


def _plan_vacuum(pool: Pool) -> tuple[int, int, Mapping[str, int]]:
    with vacuum_lease(pool, "plan a vacuum", planning=True) as lease:
        vacuum_plan = make_plan(pool, lease)
    return len(vacuum_plan.objects), vacuum_plan.size, vacuum_plan.held


def retain(
    lake: Lake,
    pool_name: str,
    *,
    branch: str = MAIN,
    workers: Workers | None = None,
) -> RetentionResult:
    """Does all steps of the work in a pool.

    Raises NotFound, Conflict (the pool keeps changing), ObjectMissing, Corrupt, OutcomeUnknown, Unavailable.
    Finished steps stay, and the next run continues.
    """
    pool = lake.pool(pool_name)
    expired, before = expiry.expire_and_look(pool, branch=branch)
    # a scan commits; without new names it would keep an idle pool from ever being purged
    scanned = pool.history.load_open().state.removed.scanned
    is_time = is_due(pool, since=scanned, now=lake.context.now())
    scan = scan_orphans(pool, workers=workers) if is_time else None
    released = end_holds(lake, pool, grace=pool.settings["vacuum.grace"])
    vacuumed = vacuum(pool, workers=workers)
    now = lake.context.now()
    purged, loaded = 0, pool.history.load_open()
    if purgeable(pool, newest=loaded.version, now=now):
        purged = checkpoint_and_purge(lake, pool_name, now=now).entries
    result = RetentionResult(
        pool_name,
        branch,
        newest_version([expired.version, scan.version if scan else None, vacuumed.version]),
        expired=expired.objects,
        records=expired.records,
        expired_size=expired.size,
        deletes=int(expired.deleted),
        orphans=scan.orphans if scan else 0,
        vacuumed=vacuumed.objects,
        freed=vacuumed.size,
        spared=vacuumed.spared,
        purged=purged,
        released=len(released),
        **vars(_gain(before, loaded.state, branch) if expired.version is not None else Gain()),
    )
    log.info("%s", pool_line(result))
    return result


def _gain(before: Revision, after: PoolState, branch: str) -> Gain:
    """Returns what the expiry gained; reads references that it has read before.  Another writer may have deleted
    the branch meanwhile."""
    present = after.branches.get(branch)
    left = Standing() if present is None else standing_of(present.snapshot.overlapping())
    return gain(standing_of(before.references), left)


def retain_dropped(lake: Lake) -> RetentionResult:
    """Deletes the dropped pools that nothing keeps any more.

    Raises Corrupt, OutcomeUnknown, Unavailable; after any of these, run it again.
    """
    deleted = delete_dropped(lake, plan_dropped(lake))
    vacuumed, freed = sum(one.objects for one in deleted), sum(one.size for one in deleted)
    result = replace(_nothing(DROPPED), vacuumed=vacuumed, freed=freed)
    log.info("%s", pool_line(result))
    return result


def end_transactions(lake: Lake) -> RetentionResult:
    """Ends the transactions over several pools that have been open for too long, and deletes the decisions that no
    journal needs.

    Raises Corrupt, OutcomeUnknown, Unavailable; after any of these, run it again.
    """
    done = clean(lake)
    result = replace(_nothing(TRANSACTIONS), ended=len(done.ended), forgotten=len(done.forgotten))
    log.info("%s", pool_line(result))
    return result


def _nothing(name: str) -> RetentionResult:
    """Returns the result of a run that found nothing there."""
    return RetentionResult(
        name,
        MAIN,
        None,
        expired=0,
        records=0,
        expired_size=0,
        deletes=0,
        orphans=0,
        vacuumed=0,
        freed=0,
        spared=0,
        purged=0,
    )


class RetentionWork(Work, frozen=True, kw_only=True):
    """A pool in which something expires or is to be deleted; `says` is the plan, in lines."""

    says: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET

    @property
    def questions(self) -> tuple[str, ...]:
        """What a person is asked before the work is done: the lines of the plan.  For a pool that could not be
        read, it is one line that says so (`Work.title`)."""
        return self.says or (self.title,)


class RetentionAgent(Agent[RetentionWork, RetentionResult]):
    """The agent for pools in which something expires, or objects are to be deleted."""

    work, result = RetentionWork, RetentionResult
    nothing = "nothing expires, nothing to delete"
    not_done = "nothing is changed"
    none_done = "nothing was changed"
    to_do = "What was done stays; the next run goes on with the rest"
    sums = (
        *("expired", "records", "expired_size", "deletes", "orphans"),
        *("vacuumed", "freed", "spared", "purged", "ended", "forgotten", "released"),
    )

    def look(self, run: AgentRun, name: str) -> PoolLook[RetentionWork]:
        """Returns what expires in a pool, and which objects are to be deleted, as work."""
        pool = run.lake.pool(name)
        planned = _plan(run.lake, pool, branch=run.asked.branch, now=run.lake.context.now())
        lines = tuple(retention_lines(name, planned))
        work = [] if planned.idle else [run.asked.work(RetentionWork, name, "retention", says=lines)]
        rests = pool.config if planned.rests else None
        return PoolLook(lines=lines, work=work, rests=rests, until=planned.until)

    def beside(self, run: AgentRun) -> Sequence[RetentionWork]:
        """Returns the work on dropped pools and on transactions over pools; only in a run for all pools."""
        if run.asked.pools:
            return ()
        dropped = [p.name for p in plan_dropped(run.lake) if p.held is None]
        lines = {DROPPED: f"{DROPPED}: delete {listed(dropped)}"} if dropped else {}
        over = due(run.lake)
        if over.ended or over.forgotten:
            lines[TRANSACTIONS] = transactions_line(TRANSACTIONS, over)
        for line in lines.values():
            log.info("%s", line)
        titles = {DROPPED: "delete", TRANSACTIONS: "end"}
        return [
            run.asked.work(RetentionWork, name, titles[name], says=(line,)) for name, line in lines.items()
        ]

    def run(self, lake: Lake, work: RetentionWork, open_workers: OpenWorkers) -> RetentionResult:
        """Does the work that is due now.  Spark starts only if there are many names to list or to delete."""
        if work.pool == DROPPED:
            return retain_dropped(lake)
        if work.pool == TRANSACTIONS:
            return end_transactions(lake)
        with open_workers(lake.context, f"lake retention {work.pool}") as workers:
            return retain(lake, work.pool, branch=work.branch, workers=workers)

    def line(self, result: RetentionResult) -> str:
        return pool_line(result)

    def total(self, totals: Mapping[str, int]) -> str:
        return f"{counted(totals['pools'], 'pool')}: {work_line(totals)}"


AGENT = RetentionAgent()
