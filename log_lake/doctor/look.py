"""Looks at one pool: gathers its signs; decides nothing, opens no data object, and writes nothing.

An idle pool without removed objects costs five listings and up to three reads.  Each part is looked at by itself:
if one cannot be seen, the others still are.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, TypeVar

from lake_core.errors import LakeError, PublishedElsewhere
from lake_core.history import PoolState, Reference
from lake_core.history.activity import RENEW
from lake_core.history.removal import Removal
from lake_core.history.vacuuming import held_objects
from lake_core.ids import id_seconds
from lake_core.journal import Journal
from lake_core.naming import MAIN
from lake_core.records.pools import PoolConfig
from log_lake.agents.checkpoint.run import purgeable
from log_lake.agents.ingest.parking import parked_files
from log_lake.agents.jobs import Job
from log_lake.agents.retention.plan import NO_FIELD, NO_TIME
from log_lake.coverage.coverage import coverage_of
from log_lake.coverage.settings import coverage_policy_of
from log_lake.doctor.kinds import DAILY, DAY
from log_lake.doctor.signs import (
    CoverageSigns,
    GarbageSigns,
    PoolSigns,
    PublicationSigns,
    StateSigns,
    TailSigns,
)
from log_lake.erasure import receipt as receipts
from log_lake.erasure.receipt import PENDING
from log_lake.lake.isolated import isolated
from log_lake.lake.pool import Pool
from log_lake.leases.lease import read_leases
from log_lake.presence.roots import tagged_objects
from log_lake.publish.lag import MAX_COUNTED
from log_lake.publish.place import place_of
from log_lake.publish.published import published_at
from log_lake.reading.age_off import tells_time
from log_lake.reading.filters import idle_filters
from log_lake.reading.revision import Revision

T = TypeVar("T")


@dataclass
class _Parts:
    """Looks at the parts of a pool, and keeps the errors of those that cannot be seen."""

    pool: str
    failures: dict[str, LakeError] = field(default_factory=dict)

    def see(self, part: str, look: Callable[[], T]) -> T | None:
        try:
            with isolated(self.pool):
                return look()
        except LakeError as error:
            self.failures[part] = error
            return None


def look_at(pool: Pool, *, noted: float | None, jobs: Sequence[Job], now: float) -> PoolSigns:
    """Returns the signs of a pool; `noted` is the time of its activity note, None if it has none."""
    parts = _Parts(pool.name)
    loaded = parts.see("its journal", pool.history.load)
    if loaded is None:
        return PoolSigns(pool.config, now, jobs, failures=parts.failures)
    if loaded.state.closed is not None:
        return PoolSigns(pool.config, now, jobs, closed=True)
    state = loaded.state
    garbage = parts.see("its removed objects", lambda: _garbage(pool, state, now=now))
    covered = parts.see("its coverage", lambda: _coverage(pool, loaded.version, state, now=now))
    published = parts.see("its published table", lambda: _publication(pool)) if _publishes(pool) else None
    return PoolSigns(
        pool.config,
        now,
        jobs,
        state=parts.see("its state", lambda: _state(pool, loaded.version, state, noted=noted, now=now)),
        tail=parts.see("its checkpoints", lambda: _tail_of(pool, newest=loaded.version, now=now)),
        garbage=garbage,
        publication=published,
        coverage=covered,
        erasures=parts.see("its erasures", lambda: _erasures(pool)) or (),
        parked=(parts.see("its parked files", lambda: parked_times(pool)) or ()) if ingests(pool) else (),
        failures=parts.failures,
    )


def unread(config: PoolConfig, error: LakeError, *, jobs: Sequence[Job], now: float) -> PoolSigns:
    """Returns the signs of a pool that could not be looked at."""
    return PoolSigns(config, now, jobs, failures={"the pool": error})


def ingests(pool: Pool) -> bool:
    """Whether the ingest agent loads files into the pool."""
    return bool(pool.config.settings.get("ingest.source"))


def parked_times(pool: Pool) -> tuple[float, ...]:
    """Returns the times at which the parked files of `main` were parked, ascending."""
    return tuple(sorted(one.time for one in parked_files(pool)))


def _state(pool: Pool, version: int, state: PoolState, *, noted: float | None, now: float) -> StateSigns:
    revision = Revision(config=pool.config, version=version, branch=MAIN, state=state, now=now)
    tombstones = sorted((t.time / 1e6, t.replaces) for t in revision.held.tombstones.values())
    return StateSigns(
        version,
        arrivals(revision.references),
        deletes=tuple(time for time, replaces in tombstones if not replaces),
        replaces=tuple(time for time, replaces in tombstones if replaces),
        live=revision.snapshot.size,
        ahead=_ahead(pool, version, state, latest=now if noted is None else noted + RENEW),
        expire_fault=_expire_fault(revision),
        idle_filters=idle_filters(revision.settings, revision.filters) if revision.references else (),
    )


def _coverage(pool: Pool, version: int, state: PoolState, *, now: float) -> CoverageSigns | None:
    """Returns the intervals that are missing now, and those that will be within a day; None if no interval is ever
    late."""
    revision = Revision(config=pool.config, version=version, branch=MAIN, state=state, now=now)
    policy = coverage_policy_of(pool.settings)
    if policy.late is None:
        return None
    until = dt.datetime.fromtimestamp(now + DAY, dt.UTC) - policy.late
    now_covered = coverage_of(revision, until=until)
    return CoverageSigns(
        tuple(one.due.timestamp() for one in now_covered.gaps if one.due is not None), policy.every
    )


def _ahead(pool: Pool, version: int, state: PoolState, *, latest: float) -> float:
    """Returns by how many seconds the newest entry's time is later than any time that the store's clock can have
    had when it got the entry."""
    if state.time / 1e6 <= latest:
        return 0.0
    entry = pool.history.journal.read(version)  # the state's time may be that of a checkpoint
    return 0.0 if entry is None else max(0.0, entry.written_at - latest)


def arrivals(references: Sequence[Reference]) -> tuple[float, ...]:
    """Returns the times at which the objects at the pool's deepest key were made, ascending; pure."""
    depth = deepest = 0
    key = b""
    highs = sorted(r.high for r in references)
    ended = 0
    for low in sorted(r.low for r in references):
        while highs[ended] <= low:  # ends come first, because ranges are half-open
            ended, depth = ended + 1, depth - 1
        depth += 1
        if depth > deepest:
            deepest, key = depth, low
    there = (r for r in references if r.low <= key < r.high)
    return tuple(sorted(id_seconds(r.object) for r in there))


def _expire_fault(revision: Revision) -> str:
    by = revision.settings["expire.by"]
    if not by or not revision.references:
        return ""
    index = revision.schema.get_field_index(by)
    if index < 0:
        return NO_FIELD
    return "" if tells_time(revision.schema.field(index)) else NO_TIME


def tail_of(journal: Journal[Any, Any], *, newest: int, entries: int) -> TailSigns:
    """Returns the tail of a journal with this newest version; a checkpoint is due after this many `entries`."""
    marks = journal.marks()
    last = marks.checkpoints[0].version if marks.checkpoints else 0
    first = journal.read(last + 1)
    full = journal.read(last + entries) if newest - last >= entries else None
    oldest = journal.read(marks.fence + 1) if last else first
    return TailSigns(
        max(0, newest - last),
        None if first is None else first.written_at,
        None if full is None else full.written_at,
        None if oldest is None else oldest.written_at,
    )


def _tail_of(pool: Pool, *, newest: int, now: float) -> TailSigns:
    settings = pool.settings
    tail = tail_of(pool.history.journal, newest=newest, entries=settings["checkpoint.entries"])
    # to prove an age takes a listing of the whole journal
    is_old = tail.oldest is not None and now - tail.oldest > settings["history.keep"] + DAILY
    until = purgeable(pool, newest=newest, now=now) if is_old else 0
    return replace(tail, purgeable=until)


def _garbage(pool: Pool, state: PoolState, *, now: float) -> GarbageSigns:
    removed, settings = state.removed, pool.settings
    began = min((vacuum.time / 1e6 for vacuum in removed.vacuums.values()), default=None)
    age = max(settings["vacuum.grace"], settings["history.keep"])
    over = {} if removed.is_empty() else _older(removed.items(), now - age)
    if not over:
        return GarbageSigns(vacuum_began=began)
    kept = held_objects(state, over) | tagged_objects(pool.history, state, over, now=now)
    free = {id: removal for id, removal in over.items() if id not in kept}
    leases = read_leases(pool.store, pool.config.id, own="", now=now).live
    oldest = min(leases, key=lambda lease: lease.note.version, default=None)
    leased = {} if oldest is None else {k: r for k, r in free.items() if r.version > oldest.note.version}
    deletable = [removal for id, removal in free.items() if id not in leased]
    return GarbageSigns(
        deletable=len(deletable),
        size=sum(removal.size for removal in deletable),
        due=min((removal.time / 1e6 + age for removal in deletable), default=None),
        leased=sum(removal.size for removal in leased.values()),
        lease_began=id_seconds(oldest.id) if oldest is not None and leased else None,
        holder="" if oldest is None else f"{oldest.note.holder} ({oldest.note.why or oldest.note.kind})",
        vacuum_began=began,
    )


def _older(removals: Any, moment: float) -> dict[str, Removal]:
    return {id: removal for id, removal in removals if removal.time / 1e6 <= moment}


def _publishes(pool: Pool) -> bool:
    try:
        return bool(pool.settings["publish.iceberg"])
    except LakeError:  # the row `settings` says so
        return False


def _publication(pool: Pool) -> PublicationSigns | None:
    if not pool.at_branch().held.tip:
        return None
    place = place_of(pool, branch=MAIN, to=pool.settings["publish.iceberg"])
    try:
        published = published_at(place)
    except PublishedElsewhere:  # the lake was moved: nothing is published here
        published = None
    done = 0 if published is None else published.version
    count, since = 0, None
    for version, transaction in islice(pool.log(branch=MAIN), MAX_COUNTED):
        if version <= done:
            break
        count, since = count + 1, transaction.time / 1e6
    return PublicationSigns(count, since, is_published=published is not None)


def _erasures(pool: Pool) -> tuple[float, ...]:
    return tuple(sorted(one.begun / 1e6 for one in receipts.read_all(pool) if one.status == PENDING))
