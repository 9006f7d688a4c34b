"""Does a vacuum, chunk by chunk.  After a kill at any moment, nothing that is needed is lost.

1. `begin_vacuum`: the objects leave the list of removed objects.  From now on no writer can refer to them again,
   and a reader who takes a lease on an older version learns that it comes too late.
2. The leases are listed once more.  A lease that was there before step 1 is in this listing.
3. `confirm_vacuum`: what such a lease needs goes back onto the list.  Only one process can confirm.
4. The other objects are deleted, each after its index objects.  They never come back, so every process may do this,
   any number of times.
5. `end_vacuum`: the state forgets the vacuum.

The state shows a vacuum that was killed: the next run resumes with step 2 or step 4.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import msgspec

from lake_core import naming
from lake_core.errors import Conflict, Corrupt, Denied, NotFound, PlanAgain
from lake_core.history import Draft
from lake_core.history.removal import Vacuum
from lake_core.history.vacuuming import held_objects
from lake_core.ids import first_id, home_of, is_id
from lake_core.journal.ages import oldest_safe
from lake_core.journal.store_time import earlier
from lake_core.phrases import counted, human_size
from lake_core.records import BeginVacuum, ConfirmVacuum, EndVacuum, ScanOrphans
from lake_core.records.decoding import decoded_json
from log_lake.indexes.names import indexes_of
from log_lake.lake.pool import Pool
from log_lake.leases import HeldLease, LeaseNote, Leases, read_leases, remove_dead
from log_lake.leases.lease import VACUUM
from log_lake.presence.roots import tagged_objects
from log_lake.vacuum.indexes import sweep_indexes
from log_lake.vacuum.plan import (
    MAX_OBJECTS,
    Keeping,
    Plan,
    PlannedObject,
    begun_objects,
    choose,
    still_allowed,
)
from log_lake.workers import Here, Worker, Workers

log = logging.getLogger(__name__)

CHUNK = 10_000
"""Objects that one transaction takes: about 300 KB of ids.  After a kill, at most this many deletions are
repeated."""

TRIES = 10
"""Times to plan again because the pool has changed meanwhile."""

DeleteProgress = Callable[[int, int], None]
"""Called with the objects and bytes that were deleted so far."""

BATCH, ALONE = 1_000, 5
"""BATCH: how many names one task deletes, which is what one request of S3 can delete.  ALONE: up to this many
batches are deleted by this process, without tasks."""


@dataclass(frozen=True)
class Vacuumed:
    """The result of a vacuum: the objects and bytes that it deleted, and the objects that a lease kept.

    `resumed` counts objects of earlier vacuums that were interrupted.  `version`: the newest version that it
    committed, None if it committed nothing.
    """

    pool: str
    objects: int = 0
    size: int = 0
    spared: int = 0
    resumed: int = 0
    version: int | None = None


def silent(objects: int, size: int) -> None:
    """Ignores progress."""


def vacuum_lease(pool: Pool, why: str, *, planning: bool = False) -> HeldLease:
    """Returns the lease of a vacuum.  It keeps no data object; a vacuum writes it because the store dates it,
    which shows the store's current time.

    A process that only plans (`planning`), and may not write, continues without it.
    """
    note = LeaseNote(VACUUM, 0, pool.context.author, pool.settings["lease.ttl"], why)
    return HeldLease(pool.store, pool.config.id, pool.context.ids.new(), note, optional=planning)


def leases_now(pool: Pool, lease: HeldLease) -> Leases:
    """Returns all leases of the pool; writes the lease of the vacuum again, so that the store's current time is
    known.

    If a process that only plans may not write, its own clock counts.  A process that deletes raises Denied.
    """
    try:
        lease.renew()
    except Denied:
        if not lease.is_optional:
            raise
        return read_leases(pool.store, pool.config.id, own="", now=pool.context.now())
    return read_leases(pool.store, pool.config.id, own=lease.id)


def checked_leases(pool: Pool, lease: HeldLease) -> Leases:
    """Returns the leases as `leases_now` does, for work that computes ages from the leases' time.

    Raises ClocksApart, Unavailable.
    """
    leases = leases_now(pool, lease)
    earlier(own=pool.context.now(), store=leases.now, most=pool.history.journal.limits.clock_skew)
    return leases


def make_plan(pool: Pool, lease: HeldLease, *, grace: float | None = None) -> Plan:
    """Returns the objects that a vacuum would delete now.  `grace`, in seconds, overrides the pool's settings.

    Raises ClocksApart, Corrupt if the state of a tag cannot be read, Unavailable.
    """
    settings = pool.settings
    age = max(settings["vacuum.grace"], settings["history.keep"]) if grace is None else grace
    leases = checked_leases(pool, lease) if age > 0 else leases_now(pool, lease)
    loaded = pool.history.load_open()
    state = loaded.state
    removed = dict(islice(state.removed.items(), MAX_OBJECTS))

    def authors(version: int) -> float | None:
        return max((r.time / 1e6 for r in removed.values() if r.version <= version), default=None)

    limits = Keeping(
        # without a grace time there is no age to prove
        oldest_safe(pool.history.journal, before=leases.now - age, now=leases.now, authors=authors)
        if age > 0
        else loaded.version,
        leases.oldest_version,
        held_objects(state, removed),
        tagged_objects(pool.history, state, removed, now=leases.now),
    )
    objects, reasons = choose(removed.items(), limits)
    begun = begun_objects(state.removed.vacuums.values())
    return Plan(pool.context.ids.new(), pool.config.id, loaded.version, leases.now, objects, reasons, begun)


def write_plan(pool: Pool, plan: Plan) -> str:
    """Stores a plan beside the pool, to be carried out later; returns its name.  Raises InvalidInput if the lake's
    format is too old for the actions of a vacuum."""
    first = ScanOrphans(first_id(plan.time), first_id(plan.time))  # what the vacuum would begin with
    pool.history.check_draft(Draft(plan.id, "", plan.version, pool.context.author, (first,)))
    name = naming.plan(pool.config.id, plan.id)
    pool.store.put(name, msgspec.json.encode(plan))
    return name


def read_plan(pool: Pool, id: str) -> Plan:
    """Returns a stored plan.  Raises NotFound, Corrupt."""
    name = naming.plan(pool.config.id, id)
    data = pool.store.get(name) if is_id(id) else None
    if data is None:
        raise NotFound(
            f"pool {pool.name!r} has no plan {id!r}; make one with: lake vacuum {pool.name} --dry-run"
        )
    plan: Plan = decoded_json(data, Plan, name=name, what="not a plan", advice="make another one")
    if (plan.id, plan.pool) != (id, pool.config.id):
        raise Corrupt(f"{name}: the plan {plan.id} of {plan.pool}; make another one")
    return plan


def vacuum(
    pool: Pool,
    *,
    plan: Plan | None = None,
    grace: float | None = None,
    chunk: int = CHUNK,
    progress: DeleteProgress = silent,
    workers: Workers | None = None,
) -> Vacuumed:
    """Deletes objects that nothing needs, on these workers (default: in this process); with `plan`, only objects
    that it names.

    It first finishes vacuums that were interrupted; with `plan`, those that it names.  It also deletes dead
    leases and, without `plan`, index objects that nothing uses.

    Raises Conflict (the pool keeps changing), Corrupt, OutcomeUnknown, Unavailable; then run it again.
    """
    means = _Means(workers or Here.of(pool.context), progress)
    with vacuum_lease(pool, "vacuum") as lease:
        done = resume(pool, lease, means, plan=plan)
        for tries in range(1, TRIES + 1):
            now = make_plan(pool, lease, grace=grace)
            allowed = now.objects if plan is None else still_allowed(plan, now.objects)
            try:
                for start in range(0, len(allowed), chunk):
                    done = _chunk(
                        pool, lease, allowed[start : start + chunk], done, means, planned_on=now.version
                    )
                break
            except PlanAgain:
                if tries == TRIES:
                    raise
        remove_dead(pool.store, pool.config.id, leases_now(pool, lease))
        if plan is None:
            done = replace(done, size=done.size + sweep_indexes(pool))
    log.info("%s: vacuumed %s, %s", pool.name, counted(done.objects, "object"), human_size(done.size))
    return done


@dataclass(frozen=True)
class _Means:
    """The workers that delete objects, and the function that shows progress."""

    workers: Workers
    progress: DeleteProgress

    def delete(self, names: Sequence[str]) -> None:
        """Deletes objects by their names.  Raises Unavailable if some may remain.

        A single worker takes them as one batch, whose parts a store deletes side by side.
        """
        few = len(names) <= ALONE * BATCH or self.workers.size == 1
        size = len(names) if few else BATCH
        batches = [tuple(names[at : at + size]) for at in range(0, len(names), max(1, size))]
        self.workers.map(delete_batch, batches, alone=1)


def delete_batch(worker: Worker, names: Sequence[str]) -> None:
    """Deletes objects by their names, in a worker.  Raises Unavailable if some may remain."""
    worker.store.delete_all(names)


def resume(pool: Pool, lease: HeldLease, means: _Means, *, plan: Plan | None = None) -> Vacuumed:
    """Finishes the vacuums that were interrupted; with `plan`, those that it names."""
    done = Vacuumed(pool.name)
    for _, vacuum in sorted(pool.history.load_open().state.removed.vacuums.items()):
        if plan is not None and not plan.covers(vacuum):
            log.info("%s: the plan does not name the vacuum of %s", pool.name, vacuum.transaction_id)
            continue
        before = done.objects
        done = _finish(pool, lease, vacuum.transaction_id, done, means)
        done = replace(done, resumed=done.resumed + done.objects - before)
        log.info("%s: went on with the vacuum of transaction %s", pool.name, vacuum.transaction_id)
    return done


def _chunk(
    pool: Pool,
    lease: HeldLease,
    objects: tuple[PlannedObject, ...],
    done: Vacuumed,
    means: _Means,
    *,
    planned_on: int,
) -> Vacuumed:
    begin = BeginVacuum(tuple(planned.object for planned in objects))
    message = f"vacuum {counted(len(objects), 'object')}"
    committed = pool.commit_actions((begin,), on=planned_on, message=message)
    done = replace(done, version=committed.version)
    return _finish(pool, lease, committed.transaction_id, done, means)


def _finish(pool: Pool, lease: HeldLease, transaction_id: str, done: Vacuumed, means: _Means) -> Vacuumed:
    """Does steps 2 to 5 for a vacuum that has begun: confirms it, deletes its objects, and ends it.  Another
    process may do the same at any time."""
    loaded = pool.history.load_open()
    seq = loaded.state.removed.begun_by(transaction_id)
    if seq is None:  # another process has ended it
        return done
    begun = loaded.state.removed.vacuums[seq]
    if not begun.confirmed:
        spared = _spared(begun, leases_now(pool, lease))
        confirm = ConfirmVacuum(seq, spared)
        try:
            message = "vacuum: the leases were looked at"
            version = pool.commit_actions((confirm,), on=loaded.version, message=message).version
            done = replace(done, version=version)
        except Conflict as error:
            log.info("%s: %s", pool.name, error)
        loaded = pool.history.load_open()
        if seq not in loaded.state.removed.vacuums:
            return done
        begun = loaded.state.removed.vacuums[seq]
        assert begun.confirmed  # by us, or by the process that was faster
        done = replace(done, spared=done.spared + len(spared))
    # objects in the folders of other pools are let go: deleting is a matter of these pools
    own = {id: removal for id, removal in begun.by_object().items() if not home_of(id)}
    indexes = indexes_of(pool.store, pool.config.id, own)
    if indexes:
        means.delete([one.info.name for one in indexes])
    means.delete([naming.data_object(pool.config.id, id) for id in own])
    # a process that lost its lease may have made one meanwhile; later it finds its object gone (decision 510)
    if (indexes or pool.settings.index_rules) and (late := indexes_of(pool.store, pool.config.id, own)):
        means.delete([one.info.name for one in late])
    size = sum(removal.size for removal in own.values()) + sum(one.info.size for one in indexes)
    done = replace(done, objects=done.objects + len(own), size=done.size + size)
    means.progress(done.objects, done.size)
    message = f"vacuumed {counted(len(begun.objects), 'object')}"
    try:
        version = pool.commit_actions((EndVacuum(seq),), on=loaded.version, message=message).version
        done = replace(done, version=version)
    except Conflict as error:
        log.info("%s: %s", pool.name, error)
    return done


def _spared(begun: Vacuum, leases: Leases) -> tuple[str, ...]:
    """Returns the objects that live leases need."""
    oldest = leases.oldest_version
    if oldest is None:
        return ()
    pairs = zip(begun.objects, begun.removals, strict=True)
    return tuple(id for id, removal in pairs if removal.version > oldest)
