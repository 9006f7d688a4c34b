"""Expires records: plans what a branch loses, commits it, and plans again if the branch has changed meanwhile.

One transaction removes references and deletes by condition.  Only in append pools, where references do not
depend on each other, several transactions may remove more than `MAX_REMOVED`.  No object changes: `lake undo` or
`lake revert` restores the records until the vacuum has deleted the objects.  Callers: `run`, `lake expire`.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

from lake_core.errors import Conflict
from lake_core.ids import id_seconds
from lake_core.journal.ages import oldest_safe
from lake_core.naming import MAIN
from lake_core.phrases import counted, listed
from lake_core.records import Action
from lake_core.records.transactions import version_of
from log_lake.agents.retention.plan import AGE, ExpirePlan, plan_expiry
from log_lake.agents.retention.policy import policy_of
from log_lake.lake.branch import Branch
from log_lake.lake.counting import removed_metadata
from log_lake.lake.delete_spec import DeleteSpec, may_delete
from log_lake.lake.pool import Pool
from log_lake.reading.live import LiveCount, live_count_of
from log_lake.reading.revision import Revision
from log_lake.rewriting.exchange import Exchange, LostRace, exchange

log = logging.getLogger(__name__)

TRIES = 10
"""How often the expiry is planned again because the branch has changed meanwhile."""

MAX_REMOVED = 10_000
"""References of an append pool that one transaction removes: about 500 KB."""


@dataclass(frozen=True)
class ExpireResult:
    """What expired from a branch: references, their records and bytes; and whether records were also deleted by
    the time in a field.

    `version` is that of the last transaction, None if nothing expired.
    """

    pool: str
    branch: str
    version: int | None = None
    objects: int = 0
    records: int = 0
    size: int = 0
    deleted: bool = False


def plan(pool: Pool, *, branch: str = MAIN, ahead: float = 0.0) -> ExpirePlan:
    """Returns what will expire within `ahead` seconds from now, by the clock of the store, if nothing is written
    until then.

    Raises NotFound, ObjectMissing, Corrupt, Unavailable.
    """
    return _plan(pool, branch=branch, ahead=ahead)[1]


def _plan(pool: Pool, *, branch: str, ahead: float = 0.0) -> tuple[Revision, ExpirePlan]:
    """Returns the revision, and what expires of it."""
    policy = policy_of(pool.settings)
    target = pool.branch(branch)
    now, loaded_before = None, 0
    if policy.age is not None:
        now = pool.leases().now + ahead
    revision = target.revision(now=now)
    if policy.age is not None and now is not None:

        def authors(version: int) -> float | None:
            loads = (r for r in revision.references if version_of(r.seq) <= version)
            return max((id_seconds(r.object) for r in loads), default=None)

        loaded_before = oldest_safe(pool.history.journal, before=now - policy.age, now=now, authors=authors)
    if not policy.expires:
        return revision, ExpirePlan(revision.version)
    work = plan_expiry(revision, policy, loaded_before=loaded_before)
    return revision, work if _may_delete(target, revision, work) else replace(work, tombstone=None)


def _may_delete(branch: Branch, revision: Revision, work: ExpirePlan) -> bool:
    """Whether the tombstone may hide a live record; False only if there certainly is none."""
    if work.tombstone is None:
        return True
    spec = DeleteSpec(work.tombstone.key_range, work.tombstone.condition)
    return may_delete(revision, spec, branch.history, branch.store)


def expire(pool: Pool, *, branch: str = MAIN) -> ExpireResult:
    """Removes from a branch what expires now.

    Raises NotFound, Conflict (the branch keeps changing), ObjectMissing, Corrupt, OutcomeUnknown, Unavailable;
    after any of these, run it again.
    """
    return expire_and_look(pool, branch=branch)[0]


def expire_and_look(pool: Pool, *, branch: str) -> tuple[ExpireResult, Revision]:
    """Like `expire`; also returns the branch as it was before.  Raises what `expire` raises."""
    done = ExpireResult(pool.name, branch)
    before: Revision | None = None
    lost: Conflict | None = None
    for _ in range(TRIES):
        try:
            revision, work = _plan(pool, branch=branch)
            before = before or revision
            for part in _parts(work, keeps_all=pool.branch(branch).rule.keeps_all):
                outcome = _commit(pool.branch(branch), revision, part, done)
                if isinstance(outcome, LostRace):
                    lost = outcome.error
                    break
                done = outcome
            else:
                return done, before
        except Conflict as error:  # of a plan whose objects an erasure took
            lost = error
    raise Conflict(
        f"pool {pool.name!r}: branch {branch!r} changed each of {TRIES} times before what expires was removed; run "
        f"it again when fewer writers are at work; at last: {lost}"
    ) from lost


def _parts(work: ExpirePlan, *, keeps_all: bool) -> list[ExpirePlan]:
    if work.idle:
        return []
    most = MAX_REMOVED if keeps_all else max(1, len(work.removed))
    starts = range(0, max(1, len(work.removed)), most)
    parts = [replace(work, removed=work.removed[at : at + most], tombstone=None) for at in starts]
    return [*parts[:-1], replace(parts[-1], tombstone=work.tombstone)]


def _commit(
    branch: Branch, revision: Revision, work: ExpirePlan, done: ExpireResult
) -> ExpireResult | LostRace:
    id, reason, hidden = branch.context.ids.new(), _reason(branch, work), work.tombstone
    others: list[Action] = []
    if hidden is not None:
        others.append(DeleteSpec(hidden.key_range, hidden.condition).tombstone(id, reason=reason))
    change = Exchange(
        id,
        work.read_version,
        f"expires {counted(len(work.removed), 'object')}",
        removed=[e.reference for e in work.removed],
        others=others,
        message=reason,
        metadata=branch.own_metadata(removed_metadata(_removed(revision, work))),
        oldest_only=bool(work.removed),
    )
    committed = exchange(branch, change)
    if isinstance(committed, LostRace):
        return committed
    return replace(
        done,
        version=committed.version,
        objects=done.objects + len(work.removed),
        records=done.records + work.records,
        size=done.size + work.size,
        deleted=done.deleted or hidden is not None,
    )


def _removed(revision: Revision, work: ExpirePlan) -> LiveCount | None:
    """Returns how many of the records that readers see expire with whole references; None if others expire too, or
    may reappear."""
    if work.tombstone is not None or not revision.rule.keeps_all:
        return None
    return live_count_of(revision, [one.reference for one in work.removed])


def _reason(branch: Branch, work: ExpirePlan) -> str:
    """Returns the settings that make records expire, as they are spelled."""
    names = sorted({e.why for e in work.removed} | ({AGE} if work.tombstone is not None else set()))
    names += ["expire.by"] if work.by and AGE in names else []
    return "expired: " + listed([f"{name}={branch.settings.text(name)}" for name in names])
