"""Looks at what all pools of a lake share: its store, its agents, its list of pools. It does not judge what it
sees.

To compare clocks it writes one small hint and lists it. To test the create-only write it creates one name
twice, and deletes it. A process whose own configuration allows only reading does neither. If the store denies
one of these requests, the doctor reports that it could not see that part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from lake_core import naming
from lake_core.errors import LakeError, NoCreate, Unavailable
from lake_core.store import Store
from lake_core.store.probe import probe_create
from log_lake.agents.jobs import Job, list_jobs
from log_lake.doctor.health_finding import HealthFinding
from log_lake.doctor.look import tail_of
from log_lake.doctor.signs import LakeSigns, StoreSigns, TailSigns
from log_lake.lake import Lake
from log_lake.lake.open_transactions import TransactionRow, transactions
from log_lake.settings import Settings
from log_lake.stores.guard import guarded
from log_lake.stores.locked import LockedStore, NoLock
from log_lake.stores.read_only import ReadOnlyStore

MAX_JOBS = 5_000
"""How many jobs are read, newest first. An agent that works on a thousand pools each hour has more in a day; then
older failures of rarer agents are not seen."""

CLOCK = naming.quiet("doctor", "clock")
"""The name of the hint whose time is the store's; written again by each look."""

T = TypeVar("T")


@dataclass
class LakeLook:
    """What was read of a lake, each part once.

    `jobs`: the newest jobs by pool, each newest first.  `alive`: by agent, when that agent last showed that it
    works.
    """

    store: StoreSigns = field(default_factory=StoreSigns)
    jobs: Mapping[str, Sequence[Job]] = field(default_factory=dict)
    alive: Mapping[str, float] = field(default_factory=dict)
    dropped: Mapping[str, float] = field(default_factory=dict)
    checkpoint: TailSigns | None = None
    failures: dict[str, LakeError] = field(default_factory=dict)
    transactions: Sequence[TransactionRow] = ()

    def see(self, part: str, look: Callable[[], T], otherwise: T) -> T:
        """Returns what `look` returns; if it raises an error, keeps the error under the name `part` and returns
        `otherwise`."""
        try:
            return look()
        except LakeError as error:
            self.failures[part] = error
            return otherwise

    def signs(self, *, now: float, written: float | None, late: Sequence[HealthFinding]) -> LakeSigns:
        """Returns the signs of the lake, with the findings of its pools."""
        return LakeSigns(
            now,
            self.store,
            self.alive,
            written,
            late,
            self.dropped,
            self.checkpoint,
            dict(self.failures),
            self.transactions,
        )


def look_at_lake(lake: Lake, *, writes: bool) -> LakeLook:
    """Looks at everything but the pools. Raises what reading the list of pools raises."""
    loaded = lake.catalog.load()
    look = LakeLook()
    look.store = look.see("its store", lambda: _store(lake, writes=writes), StoreSigns())
    no_jobs: list[Job] = []
    jobs = look.see("its jobs", lambda: list_jobs(lake, limit=MAX_JOBS), no_jobs)
    by_pool: dict[str, list[Job]] = {}
    for job in jobs:
        by_pool.setdefault(job.pool, []).append(job)
    look.jobs = by_pool
    look.alive = look.see("what agents remember", lambda: _alive(lake.store, jobs), {})
    none: Sequence[TransactionRow] = ()
    look.transactions = look.see("its transactions over pools", lambda: transactions(lake), none)
    look.dropped = {
        one.pool.name: one.time / 1e6 + Settings(one.pool.settings)["vacuum.grace"]
        for one in loaded.state.dropped.values()
    }
    entries = Settings({})["checkpoint.entries"]
    look.checkpoint = look.see(
        "the list of pools",
        lambda: tail_of(lake.catalog.journal, newest=loaded.version, entries=entries),
        None,
    )
    return look


def _store(lake: Lake, *, writes: bool) -> StoreSigns:
    store, skew = lake.store, lake.catalog.journal.limits.clock_skew
    behind = guarded(store).behind
    if isinstance(behind, ReadOnlyStore) or not writes:
        return StoreSigns(skew=skew, untried=True)
    apart, is_locked = _apart(lake), isinstance(behind, LockedStore)
    kind = behind.lock.kind if isinstance(behind, LockedStore) else ""
    if isinstance(behind, LockedStore) and isinstance(behind.lock, NoLock):
        return StoreSigns(apart, skew, lock=kind, lock_missing=True)
    asked: Store = behind.behind if isinstance(behind, LockedStore) else store
    try:
        probe_create(asked, name=f"probe-{lake.context.ids.new()}")
    except NoCreate as error:
        fault, _, _ = str(error).partition(". Take another store") if is_locked else (str(error), "", "")
        return StoreSigns(apart, skew, fault=fault, lock=kind)
    return StoreSigns(apart, skew, lock=kind)


def _apart(lake: Lake) -> float:
    """Returns by how many seconds the machine's clock is ahead of the store's; 0 if the answers came too slowly to
    tell."""
    before = lake.context.now()
    lake.store.put(CLOCK, b"\n")
    after = lake.context.now()
    modified = next((one.modified for one in lake.store.list(naming.QUIET) if one.name == CLOCK), None)
    if modified is None:
        raise Unavailable(f"{CLOCK}: was written and is not listed; try again")
    if modified < before:
        return before - modified
    return min(0.0, after - modified)


def _alive(store: Store, jobs: Sequence[Job]) -> dict[str, float]:
    """Returns when each agent last showed that it works: the newest time of its jobs and of its hints about quiet
    pools."""
    alive: dict[str, float] = {}
    for job in jobs:
        alive[job.agent] = max(alive.get(job.agent, 0.0), job.began.timestamp())
    for one in store.list(naming.QUIET):
        agent = one.name.removeprefix(f"{naming.QUIET}/").partition(".")[0]
        if agent != "doctor":
            alive[agent] = max(alive.get(agent, 0.0), one.modified)
    return alive
