"""Dropped pools: once the grace time is over, everything that they have on the store is deleted.

1. A dropped pool is old enough if its drop was recorded at least `vacuum.grace` ago (the pool's own setting), by
   the clock of the store (`vacuum.ages`).  A live lease on the pool keeps it, and so does a clone that needs it.
2. `delete_pool` is committed to the list of pools: from now on the pool cannot be restored.  Only one process can
   commit it for one drop.
3. The objects below the pool's folder are deleted, leases too.  Every process may do this, any number of times.
4. `forget_pool` is committed to the list of pools: nothing is left.

If a run is killed, the pool is still in the list, and the next run resumes with step 3.  A lease may come too
late for step 1.  But a reader takes its lease first and then checks whether the pool is dropped, so it does not
read on.
"""

from __future__ import annotations

import contextlib
import logging
from dataclasses import dataclass
from itertools import islice

from lake_core import naming
from lake_core.errors import Conflict, Corrupt, Unavailable
from lake_core.history import PoolState
from lake_core.history.activity import read_notes
from lake_core.ids import is_id
from lake_core.journal.ages import oldest_safe_of
from lake_core.phrases import counted, human_size
from lake_core.records.pools import DroppedPool, PoolConfig
from lake_core.store import ObjectInfo
from log_lake.lake import Lake
from log_lake.lake.holds import (
    clone_tags,
    end_unlisted,
    forget_note,
    holding,
    release_dropped,
    unlisted_clones,
)
from log_lake.leases import Leases
from log_lake.presence.lease_list import list_leases
from log_lake.settings import Settings
from log_lake.vacuum.execute import CHUNK, DeleteProgress, silent

log = logging.getLogger(__name__)

TRIES = 10
"""How often the folder is listed again for objects that are left: a process that was stalled may still
write."""


@dataclass(frozen=True)
class PlannedPool:
    """A dropped pool, and why it stays: `grace`, `lease` or `clone`; None if it may be deleted."""

    dropped: DroppedPool
    held: str | None

    @property
    def name(self) -> str:
        """The name that the pool had when it was dropped."""
        return self.dropped.pool.name


@dataclass(frozen=True)
class DeletedPool:
    """A dropped pool that was deleted: the number of its objects of all kinds, and their bytes."""

    pool: str
    id: str
    objects: int
    size: int


def plan_dropped(lake: Lake, *, grace: float | None = None) -> list[PlannedPool]:
    """Returns the dropped pools, oldest drop first; `grace`, in seconds, overrides their settings.  Raises
    Unavailable."""
    dropped = sorted(lake.catalog.load().state.dropped.values(), key=lambda d: d.version)
    journal = lake.catalog.journal
    infos = list(journal.store.list(journal.name)) if dropped else []
    return [PlannedPool(one, _held(lake, one, infos, grace=grace)) for one in dropped]


def _clones(lake: Lake, dropped: DroppedPool) -> tuple[bool, PoolState | None, list[str]]:
    """Whether a clone needs the pool; its state; and the clones that were never listed and must be ended first."""
    listed = lake.catalog.load().state
    state: PoolState | None = None
    with contextlib.suppress(Corrupt):  # then only the list of pools knows of clones
        state = lake.unlisted(dropped.pool).history.load().state
    before = lake.context.now() - Settings(dropped.pool.settings)["vacuum.grace"]
    young, old = ([], []) if state is None else unlisted_clones(lake.context, listed, state, before=before)
    return bool(young or holding(lake, listed, dropped.pool.id)), state, old


def _leases(lake: Lake, pool: PoolConfig, *, deletes: bool) -> Leases:
    return list_leases(
        lake.store,
        pool.id,
        id=lake.context.ids.new(),
        holder=lake.context.author,
        ttl=Settings(pool.settings)["lease.ttl"],
        why="vacuum of dropped pools",
        now=lake.context.now(),
        deletes=deletes,
    )


def _held(lake: Lake, dropped: DroppedPool, infos: list[ObjectInfo], *, grace: float | None) -> str | None:
    """Returns the reason that keeps a dropped pool; `infos` are the objects of the list's journal."""
    if dropped.is_deleted:
        return None
    settings = Settings(dropped.pool.settings)
    leases = _leases(lake, dropped.pool, deletes=False)
    age = settings["vacuum.grace"] if grace is None else grace
    safe = oldest_safe_of(
        infos,
        lake.catalog.journal,
        before=leases.now - age,
        now=leases.now,
        authors=lambda _: dropped.time / 1e6,
    )
    if age > 0 and safe < dropped.version:
        return "grace"
    if leases.live:
        return "lease"
    return "clone" if _clones(lake, dropped)[0] else None


def delete_dropped(
    lake: Lake, planned: list[PlannedPool], *, progress: DeleteProgress = silent
) -> list[DeletedPool]:
    """Deletes the pools of a plan that nothing keeps; skips those that were restored, or are gone, meanwhile.

    Raises Corrupt, OutcomeUnknown, Unavailable; then run it again.
    """
    deleted = []
    for one in planned:
        if one.held is None:
            done = _delete(lake, one.dropped, progress)
            if done is not None:
                deleted.append(done)
    _delete_left_notes(lake)
    return deleted


def _delete_left_notes(lake: Lake) -> None:
    """Deletes the activity notes of pools that are gone; a writer that still had the pool open may have written
    one.

    A note that is missing has one cost: agents look at the pool once more.
    """
    noted = read_notes(lake.store) or {}  # before the list: a pool of a note is listed by then
    state = lake.catalog.load().state
    gone = [id for id in noted if is_id(id) and id not in state.pools and id not in state.dropped]
    lake.store.delete_all([naming.activity(id) for id in gone])


def _delete(lake: Lake, dropped: DroppedPool, progress: DeleteProgress) -> DeletedPool | None:
    id, name = dropped.pool.id, dropped.pool.name
    of_clones: list[str] = []
    if not dropped.is_deleted:
        # a plan of a process that may not write rests on its own clock, which must delete nothing
        if _leases(lake, dropped.pool, deletes=True).live:
            return None
        needed, state, old = _clones(lake, dropped)
        for clone_id in old:
            assert state is not None  # it names them
            needed |= not end_unlisted(lake, lake.unlisted(dropped.pool), state, clone_id)
        if needed:
            return None
        of_clones = [] if state is None else list(clone_tags(state))
        try:
            lake.catalog.begin_delete(id, version=dropped.version)
        except Conflict as error:
            log.info("%s: %s", name, error)
            return None
    objects = size = 0
    for _ in range(TRIES):
        after, before = "", objects
        while batch := list(islice(lake.store.list(id, after=after), CHUNK)):  # bounded by the names there
            lake.store.delete_all([info.name for info in batch])
            after = batch[-1].name
            objects, size = objects + len(batch), size + sum(info.size for info in batch)
            progress(objects, size)
        if objects == before:
            break
    else:
        raise Unavailable(
            f"{lake.store.uri}/{id}: a process goes on writing here; stop it, then run this again"
        )
    lake.store.delete(naming.activity(id))
    release_dropped(lake, dropped.pool)
    for clone_id in of_clones:
        forget_note(lake.context, clone_id)
    try:
        lake.catalog.forget(id)
    except Conflict as error:  # another process was faster
        log.info("%s: %s", name, error)
    log.info("%s: deleted the pool, %s, %s", name, counted(objects, "object"), human_size(size))
    return DeletedPool(name, id, objects, size)
