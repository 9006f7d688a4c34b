"""Signs: the facts from which findings are made; plain values, gathered by `look` and `lake_look`.

Times are in seconds since 1970, sizes in bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lake_core.errors import LakeError
from lake_core.records.pools import PoolConfig
from log_lake.agents.jobs import Job
from log_lake.doctor.health_finding import HealthFinding
from log_lake.lake.open_transactions import TransactionRow
from log_lake.settings import Settings


@dataclass(frozen=True)
class TailSigns:
    """The facts about a journal's end: the entries after its newest checkpoint, and its oldest entries.

    `entries` counts the entries after the checkpoint; `first` is the time of the first of them.  `full` is the
    time of the entry whose number makes a checkpoint due; None if there are fewer entries.  `oldest` is the
    time of the journal's oldest entry, None if there is none.  `purgeable` counts the entries that a purge may
    delete.
    """

    entries: int = 0
    first: float | None = None
    full: float | None = None
    oldest: float | None = None
    purgeable: int = 0


@dataclass(frozen=True)
class GarbageSigns:
    """Removed objects whose time is over, and what keeps them.

    Nothing keeps `deletable` objects, which have `size` bytes; the first of them can be deleted from `due` on.
    Live leases keep `leased` bytes. The oldest of these leases began at `lease_began`; `holder` is a text with
    its holder and reason.  `vacuum_began`: when the oldest interrupted vacuum began, None if there is none.
    """

    deletable: int = 0
    size: int = 0
    due: float | None = None
    leased: int = 0
    lease_began: float | None = None
    holder: str = ""
    vacuum_began: float | None = None


@dataclass(frozen=True)
class StateSigns:
    """What the newest state of a pool's branch `main` says.

    `version` is the newest of the pool.  `arrivals`: the times at which the objects at the pool's deepest key
    were made, ascending.  `deletes` and `replaces`: the times of tombstones that are not retired, ascending.
    `live`: the bytes of the objects.  `ahead`: by how many seconds the time of the newest transaction is ahead
    of the store's clock.  `expire_fault`: why no age follows from the field that `expire.by` names; "" if one
    does.  `idle_filters`: settings of filters that hide nothing, because no record has a field that they name.
    """

    version: int
    arrivals: tuple[float, ...] = ()
    deletes: tuple[float, ...] = ()
    replaces: tuple[float, ...] = ()
    live: int = 0
    ahead: float = 0.0
    expire_fault: str = ""
    idle_filters: tuple[str, ...] = ()


@dataclass(frozen=True)
class CoverageSigns:
    """The intervals that a pool lacks: the times from which on they are late, ascending; `every` is their
    length."""

    dues: tuple[float, ...]
    every: str = "day"


@dataclass(frozen=True)
class PublicationSigns:
    """How far a published table is behind: the number of `transactions` that it lacks, and when the first of them
    came (`since`).

    `since` is None if it is not behind.
    """

    transactions: int
    since: float | None
    is_published: bool = True


@dataclass(frozen=True)
class PoolSigns:
    """All signs of one pool at the time `now`. A part is None if it was not looked at, or could not be seen.

    `erasures`: when pending erasures began, ascending.  `parked`: when files were parked, ascending.  `jobs` of
    the pool, newest first.  `closed`: a drop or restore was interrupted.  `failures`: by part, why it could not
    be seen.
    """

    config: PoolConfig
    now: float
    jobs: Sequence[Job] = ()
    state: StateSigns | None = None
    tail: TailSigns | None = None
    garbage: GarbageSigns | None = None
    publication: PublicationSigns | None = None
    coverage: CoverageSigns | None = None
    erasures: tuple[float, ...] = ()
    parked: tuple[float, ...] = ()
    closed: bool = False
    failures: Mapping[str, LakeError] = field(default_factory=dict)

    @property
    def settings(self) -> Settings:
        """The pool's settings."""
        return Settings(self.config.settings)


@dataclass(frozen=True)
class StoreSigns:
    """What a store says about itself.

    `apart`: by how many seconds the machine's clock is ahead of the store's (negative: behind); None if it was
    not measured.  `skew`: the difference of clocks at which work is refused. `fault`: how the store failed the
    test of create-only writes, "" if it did not.  `lock` names a lock in front of the store; `lock_missing`:
    this process has no such lock. `untried`: the caller may not write, so neither clocks nor create-only writes
    were tested.
    """

    apart: float | None = None
    skew: float = 900.0
    fault: str = ""
    lock: str = ""
    lock_missing: bool = False
    untried: bool = False


@dataclass(frozen=True)
class LakeSigns:
    """Signs of the whole lake at the time `now`.

    `alive`: by agent, when it last showed that it works.  `written`: when a pool that is not paused was last
    written to, None if that is not known.  `late`: the findings of pools.  `dropped`: by name, when the grace
    time of a dropped pool ended.  `checkpoint`: the journal of the list of pools.  `failures`: as in PoolSigns.
    `transactions`: those over several pools.
    """

    now: float
    store: StoreSigns = field(default_factory=StoreSigns)
    alive: Mapping[str, float] = field(default_factory=dict)
    written: float | None = None
    late: Sequence[HealthFinding] = ()
    dropped: Mapping[str, float] = field(default_factory=dict)
    checkpoint: TailSigns | None = None
    failures: Mapping[str, LakeError] = field(default_factory=dict)
    transactions: Sequence[TransactionRow] = ()
