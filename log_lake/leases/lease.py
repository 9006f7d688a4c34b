"""A lease: an object beside the pool that its holder renews while its work lasts.

    <pool-id>/leases/<id>.lease      JSON (`LeaseNote`)

A lease is live while it is at most `ttl` seconds old.  Its age is counted on the store's clock: from the time
at which it was last written to the time of an object that the asking process has just written.  So the clocks
of processes need not agree.  A dead lease holds nothing, and any process may delete it.

A lease of version v holds every object that version v may refer to.  A lease that cannot be read, because it is
being written, holds everything until it is `MAX_TTL` old.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from lake_core import naming
from lake_core.errors import Corrupt, Unavailable
from lake_core.naming import check_objects
from lake_core.records.decoding import check_counts, decoded_json
from lake_core.store import Store

MAX_TTL = 86_400.0
"""The most seconds that a lease may live after it was last written."""

READ, WRITE, VACUUM = "read", "write", "vacuum"


class LeaseNote(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a lease says: the kind of work, the version that it reads, its holder, the reason, and its ttl in
    seconds.

    `first`: the smallest id that a new object of the work can have, "" if it writes none.
    """

    kind: str
    version: int
    holder: str
    ttl: float
    why: str = ""
    first: str = ""
    metadata: dict[str, str] = {}

    def __post_init__(self) -> None:
        check_counts("lease", version=self.version)
        check_objects((self.first,) if self.first else (), what="lease")
        if not self.ttl >= 0:  # nor a NaN
            raise Corrupt(f"lease: it lives for {self.ttl} s")

    def encode(self) -> bytes:
        """Returns the stored bytes."""
        return msgspec.json.encode(self)


UNREADABLE = LeaseNote("unreadable", 0, "", MAX_TTL)


@dataclass(frozen=True)
class Lease:
    """A lease as a listing shows it; `modified` is when it was last written, in seconds since 1970 by the
    store."""

    id: str
    note: LeaseNote
    modified: float

    def is_live(self, now: float) -> bool:
        """Whether the lease still keeps objects at `now`, in seconds since 1970 by the store's clock."""
        return now - self.modified <= min(self.note.ttl, MAX_TTL)

    def until(self) -> float:
        """Returns when the lease expires unless it is written again, in seconds since 1970 by the store's
        clock."""
        return self.modified + min(self.note.ttl, MAX_TTL)


@dataclass(frozen=True)
class Leases:
    """The leases of a pool at `now`, in seconds since 1970 by the store's clock."""

    now: float
    all: tuple[Lease, ...]

    @property
    def live(self) -> list[Lease]:
        """The live leases, without those of vacuums, which keep no object."""
        return [lease for lease in self.all if lease.is_live(self.now) and lease.note.kind != VACUUM]

    @property
    def dead(self) -> list[Lease]:
        """The leases that have expired."""
        return [lease for lease in self.all if not lease.is_live(self.now)]

    @property
    def oldest_version(self) -> int | None:
        """The oldest version that a live lease holds; None if no lease is live."""
        return min((lease.note.version for lease in self.live), default=None)

    @property
    def oldest_object(self) -> str | None:
        """The smallest id that a new object of a live lease may have; None if no live lease is for work that
        writes objects."""
        return min((lease.note.first for lease in self.live if lease.note.kind != READ), default=None)


def read_leases(store: Store, pool_id: str, *, own: str, now: float = 0.0) -> Leases:
    """Returns all leases, by one listing and a read for each; `own` is one that the caller has just written.

    A caller that may not write has no own lease (""), and passes its own clock as `now`.  The listing begins
    after the caller's last commit was answered, so it has every lease that existed then.  Raises Unavailable,
    also if another process takes the caller's lease for dead and deletes it meanwhile.
    """
    leases = []
    for info in list(store.list(naming.leases(pool_id))):
        id = naming.lease_id(info.name)
        if id is None:
            continue
        if id == own:
            now = info.modified
        note = _note(store, info.name)
        if note is not None:  # otherwise its work has ended
            leases.append(Lease(id, note, info.modified))
    if not now:
        raise Unavailable(
            f"lease {own}: this process stood still, and another one removed its lease as a dead one; try again"
        )
    return Leases(now, tuple(leases))


def _note(store: Store, name: str) -> LeaseNote | None:
    try:
        data = store.get(name)
        note: LeaseNote | None = None if data is None else decoded_json(data, LeaseNote, name=name)
    except Corrupt:
        return UNREADABLE
    return note


def remove_dead(store: Store, pool_id: str, leases: Leases) -> list[Lease]:
    """Deletes the dead leases of a listing; returns them.  Raises Unavailable.

    A dead lease holds nothing, so any process may delete it, at any time.  If its holder wakes up, it writes its
    lease again, and knows that the lease was lost in between (`HeldLease.is_lost`).
    """
    dead = leases.dead
    if dead:
        store.delete_all([naming.lease(pool_id, lease.id) for lease in dead])
    return dead
