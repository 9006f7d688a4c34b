"""Orphans: objects that were written and never committed.

The scan looks only at names that no scan has looked at: ids sort by time.  It puts orphans onto the list of
removed objects; the vacuum deletes them from there, so there is one place that deletes.

1. `upto` is the grace time before now.  It is not beyond the first id of any writer that holds a lease.  Nor is
   it beyond an unreferenced object that the store got within the grace time: the clock of its writer is behind,
   and the writer may be about to commit.
2. `scan_orphans`: from now on no writer can commit a new object with a smaller id.  A writer that was stalled
   is refused and starts again.
3. The names below `upto` are listed.  An object that is then in no branch, in no tag and not on the list of removed
   objects stays an orphan forever.
4. `discard`: the orphans go onto the list of removed objects, and the next scan begins at `upto`.

An object that a lost part of the journal may have committed is not an orphan (`presence.extent`).  So a scan
stays below two kinds of unknown objects:

- An object that is newer than the newest write to a branch: the end of the journal may be lost.  The scan waits
  until a later write shows that the journal goes on.
- An object that is older than the first entry: an earlier journal may be lost.  The scan waits until that entry is
  purged.

A scan raises Corrupt if there are objects and no journal, or if HEAD names a version that is gone.  In an empty
journal a scan commits nothing: its entry would be the first one, and hide that a journal is lost.

A kill between 2 and 4 leaves the names to the next scan.  Older programs did not list removed objects
(`Removed.known_from`: the id from which on this pool lists them).  So an unknown object with a smaller id may be a
removed one.  It waits for the grace time, as removed objects do.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice, pairwise

from lake_core import naming
from lake_core.errors import ClocksApart, Corrupt
from lake_core.history import PoolState
from lake_core.history.vacuuming import unlisted_objects
from lake_core.ids import ID_LENGTH, first_above, first_id, id_seconds
from lake_core.journal.hints import read_head_hint
from lake_core.phrases import counted
from lake_core.records import Discard, ScanOrphans
from lake_core.store import ObjectInfo, Store
from log_lake.lake.branches import planned
from log_lake.lake.pool import Pool
from log_lake.leases import HeldLease, Leases
from log_lake.presence.extent import journal_extent
from log_lake.presence.roots import tagged_objects
from log_lake.vacuum.execute import CHUNK, checked_leases, vacuum_lease
from log_lake.workers import Here, Worker, Workers

log = logging.getLogger(__name__)


WRITE, PURGE = "write", "purge"

LAST = "~"
"""Greater than any id."""

MOST_AHEAD = 10 * 366 * 86_400.0
"""A scan goes beyond an id that is at most this many seconds ahead of the clock.  A scan beyond the greatest
possible id would leave no id for new objects."""


@dataclass(frozen=True)
class Scanned:
    """The result of a scan: orphans and their bytes among the names that it listed; the next scan begins at
    `upto`.

    A lost entry may have committed the object at `upto`.  `waits_for` says what must happen before a scan goes
    beyond it: a `WRITE` that is newer than the object, or the `PURGE` of entries that are younger; "" if it need
    not wait.  `version`: the newest version that it committed, None if it committed nothing.
    """

    pool: str
    listed: int
    orphans: int
    size: int
    upto: str
    waits_for: str = ""
    version: int | None = None


ALONE = 5_000
"""Names that a scan lists itself: that takes less time than a task of Spark takes to start."""

SPANS = 4
"""How many spans of time are listed for each worker.  It is more than one, because some spans hold more names than
others."""


def scan_orphans(
    pool: Pool,
    *,
    grace: float | None = None,
    dry_run: bool = False,
    every_name: bool = False,
    workers: Workers | None = None,
) -> Scanned:
    """Puts orphans older than the grace time (seconds) onto the list of removed objects.

    `every_name`: also lists names that earlier scans have passed, and names that are ahead of the clock.  A
    writer may have stopped before it wrote an object, and have died afterwards; then an earlier scan has passed
    the object's name.  A name is ahead if its writer's clock was.  If the scan finds orphans among these, it
    sets the floor above them: running loads without a lease are then refused, and start again.  The names are
    listed on these workers (default: in this process).

    Raises Conflict (other scans run all the time), Corrupt, OutcomeUnknown, Unavailable; then run it again.
    """
    with vacuum_lease(pool, "scan for orphans", planning=dry_run) as lease:
        return planned(
            lambda: _scan(pool, lease, grace, dry_run, every_name, workers or Here.of(pool.context))
        )


def scan_before_vacuum(
    pool: Pool, *, grace: float | None, dry_run: bool = False, every_name: bool = False
) -> Scanned | None:
    """Runs `scan_orphans` before a vacuum with the same grace time.

    Returns None, without a scan, if the clocks are too far apart and the grace time is 0.  A vacuum without a
    grace time computes no age, so it can run then.  But a scan would make the store's time the smallest id of
    new objects, whichever of the clocks is wrong (decision 196).

    Raises ClocksApart if the grace time is not 0, or with `every_name`; and what `scan_orphans` raises.
    """
    try:
        return scan_orphans(pool, grace=grace, dry_run=dry_run, every_name=every_name)
    except ClocksApart as error:
        if grace != 0 or every_name:
            raise
        log.warning("%s: does not look for objects that were never committed: %s", pool.name, error)
        return None


def is_due(pool: Pool, *, since: str, now: float) -> bool:
    """Whether there is an object that is old enough for a scan and that no scan has looked at.  Sends one listing.

    `now`: seconds since 1970.  `since`: the id up to which scans have looked.
    """
    before = first_id(now - pool.settings["vacuum.grace"])
    names = iter_names(pool.store, pool.config.id, since, before)
    return any(object_id(info) is not None for info in names)


def due_from(pool: Pool, *, since: str, ahead: float) -> float:
    """Returns the time from which a scan is due, in seconds since 1970; infinity if no name is younger than
    `since` and at most `ahead` seconds in the future.  Sends one listing."""
    before = first_id(pool.context.now() + ahead)
    ids = map(object_id, iter_names(pool.store, pool.config.id, since, before))
    first = next((id for id in ids if id is not None), None)
    return math.inf if first is None else id_seconds(first) + pool.settings["vacuum.grace"]


def _scan(
    pool: Pool, lease: HeldLease, grace: float | None, dry_run: bool, every_name: bool, workers: Workers
) -> Scanned:
    leases = checked_leases(pool, lease)
    before = leases.now - (pool.settings["vacuum.grace"] if grace is None else grace)
    hint = read_head_hint(pool.store, pool.history.journal.name)
    loaded = pool.history.load_open()
    state = loaded.state
    _check_end(pool, hint, loaded.version)
    since, floor = "" if every_name else state.removed.scanned, state.removed.floor
    upto = max(min(first_id(before), oldest_of_writers(leases)), floor)
    waits_for = ""
    if every_name or upto > floor:
        extent = journal_extent(pool.history, state)
        unknown = unknown_objects(pool, state, list_names(pool, since, LAST if every_name else upto, workers))
        if extent.first is None:
            if not unknown:
                return Scanned(pool.name, 0, 0, 0, since)
            raise Corrupt(
                f"{naming.pool_journal(pool.config.id)}: there is no entry, but "
                f"{counted(len(unknown), 'data object')}: the journal is lost, or no load ever succeeded; put it "
                f"back from a backup, or run: lake rebuild {pool.name}"
            )
        if every_name:
            ahead = _above_those_ahead(unknown, upto, before=before, now=leases.now)
            upto = max(min(ahead, oldest_of_writers(leases)), floor)
        young = [i for i in unknown if i.modified > before or extent.may_be_lost(i.modified)]
        oldest = min(young, key=_id, default=None)
        if oldest is not None and _id(oldest) <= upto:
            upto = max(_id(oldest), floor)
            if oldest.modified <= before:
                waits_for = PURGE if oldest.modified < extent.first else WRITE
    if upto <= since:
        return Scanned(pool.name, 0, 0, 0, since, waits_for)
    if upto > floor and not dry_run:
        scan = ScanOrphans(upto, first_id(leases.now))
        pool.commit_actions((scan,), on=loaded.version, message="scan for orphans")
    loaded = pool.history.load_open()
    state = loaded.state
    names = list_names(pool, since, upto, workers)
    orphans = unknown_objects(pool, state, names)
    version = None if dry_run else _discard(pool, state, orphans, upto=upto, on=loaded.version)
    log.info("%s: %s in %s", pool.name, counted(len(orphans), "orphan"), counted(len(names), "name"))
    size = sum(info.size for info in orphans)
    return Scanned(pool.name, len(names), len(orphans), size, upto, waits_for, version)


def _above_those_ahead(unknown: list[ObjectInfo], upto: str, *, before: float, now: float) -> str:
    """Returns the smallest id above the old objects at or above `upto`, whose writers' clocks were ahead.

    Returns `upto` if there are none.
    """
    old = [_id(info) for info in unknown if info.modified <= before]
    ahead = [id for id in old if id >= upto and id_seconds(id) <= now + MOST_AHEAD]
    return first_above(max(ahead), now=0.0) if ahead else upto


def oldest_of_writers(leases: Leases) -> str:
    """Returns the smallest id that a new object of a writer with a lease may have.

    Without such writers, returns a value greater than any id.
    """
    return leases.oldest_object if leases.oldest_object is not None else LAST


def _check_end(pool: Pool, hint: int, version: int) -> None:
    """Raises Corrupt if HEAD names a later version than this; HEAD was read before the state of `version`."""
    if hint > version:
        raise Corrupt(
            f"{naming.head(pool.history.journal.name)}: names version {hint}, and the newest is {version}: entries "
            f"are lost; look at it with: lake fsck {pool.name}"
        )


def _discard(pool: Pool, state: PoolState, orphans: list[ObjectInfo], *, upto: str, on: int) -> int:
    """Put the orphans onto the list of the removed; returns the newest version."""
    known_from = state.removed.known_from
    new = [info for info in orphans if _id(info) >= known_from]
    old = [info for info in orphans if _id(info) < known_from]
    for infos, never_read in ((new, True), (old, False)):
        for start in range(0, len(infos), CHUNK):
            part = infos[start : start + CHUNK]
            discard = Discard(tuple(map(_id, part)), tuple(info.size for info in part), never_read=never_read)
            pool.commit_actions((discard,), on=on, message=f"found {counted(len(part), 'orphan')}")
    return pool.commit_actions((Discard(scanned=upto),), on=on, message="scanned for orphans").version


def iter_names(store: Store, pool_id: str, since: str, upto: str) -> Iterator[ObjectInfo]:
    """Yields the names of data objects with ids from `since` (inclusive) to `upto` (exclusive), by name.

    Other names between them are included.  Raises Unavailable.
    """
    folder = naming.data(pool_id)
    # a listing leaves the name out that it begins after: of an object in zng or zst the id with its format
    after = f"{folder}/{since[:ID_LENGTH]}" if since else ""
    for info in store.list(folder, after=after):
        id = object_id(info)
        if (info.name[len(folder) + 1 :] if id is None else id) >= upto:
            break  # names sort by time
        yield info


def list_names(
    pool: Pool, since: str, upto: str, workers: Workers, *, alone: int = ALONE
) -> list[ObjectInfo]:
    """Like `iter_names`, as a list.

    If the store can list from any name on, many workers list a span of time each, after the first names; on
    other stores each worker would list everything.  Raises Unavailable.
    """
    rest = iter_names(pool.store, pool.config.id, since, upto)
    if not pool.store.lists_from_name:
        return list(rest)
    first = list(islice(rest, alone))
    if len(first) < alone or (size := workers.size) == 1:
        return [*first, *rest]
    after = max((id for info in first if (id := object_id(info)) is not None), default=since)
    bounds = spans(after, upto, size * SPANS)
    listed = workers.map(partial(_list_span, pool.config.id), list(pairwise(bounds)))
    return first + [info for part in listed for info in part if info.name > first[-1].name]


def spans(since: str, upto: str, count: int) -> list[str]:
    """Returns bounds that divide the ids from `since` to `upto` into about `count` spans of time; at least the two
    ends."""
    begin, end = id_seconds(since), id_seconds(upto)
    inner = (first_id(begin + (end - begin) * number / count) for number in range(1, count))
    return [since, *sorted({bound for bound in inner if since < bound < upto}), upto]


def _list_span(pool_id: str, worker: Worker, span: tuple[str, str]) -> list[ObjectInfo]:
    return list(iter_names(worker.store, pool_id, *span))


def unknown_objects(pool: Pool, state: PoolState, infos: list[ObjectInfo]) -> list[ObjectInfo]:
    """Returns the data objects that no branch, tag (even expired), list of removed objects or vacuum knows."""
    ids = {id for info in infos if (id := object_id(info)) is not None}
    unknown = unlisted_objects(state, ids) - state.removed.vacuumed()
    unknown -= tagged_objects(pool.history, state, unknown, now=None)
    return [info for info in infos if object_id(info) in unknown]


def object_id(info: ObjectInfo) -> str | None:
    """Returns the id of a listed data object; None if the name is not that of a data object of the pool."""
    id = naming.data_id(info.name)
    pool_id = info.name.partition("/")[0]
    return id if id is not None and info.name == naming.data_object(pool_id, id) else None


def _id(info: ObjectInfo) -> str:
    id = object_id(info)
    assert id is not None  # `unknown_objects` leaves other names out
    return id
