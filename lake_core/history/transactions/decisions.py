"""The objects of a transaction over several pools that are stored outside of all journals.

    transactions/<id>/begun              JSON (`Begun`): who began it, when, and until when it may stay open
    transactions/<id>/joined-<pool id>   JSON (`JoinedPool`): the pool has or gets a branch of the transaction
    transactions/<id>/lease              JSON (`CommitLease`): its commit has begun, and its owner lives
    transactions/<id>/decision           JSON (`Decision`), created once: this is the commit, or the end

The decision is a create-only put, so the first one counts, whichever process makes it.  The lease only says
when a process other than the owner may make it.  Its age is measured on the store's clock, against an object
that the asking process has just written (`asked`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from lake_core import naming
from lake_core.errors import Corrupt, OutcomeUnknown, Unavailable
from lake_core.ids import check_id
from lake_core.records.decoding import check_counts, check_times, decoded_json
from lake_core.store import Created, ObjectInfo, Store
from lake_core.store.probe import DENIES

TTL = 30.0
"""Seconds for which the owner of a commit may be silent before another process may abort it."""

MAX_TTL = 3_600.0
"""The most seconds that a stored lease may ask for."""

TRIES = 5
"""How often a process tries to create an object if the answer is lost."""

TOKEN = "transaction:"
"""A pool stores the token of a transaction under this prefix. Tokens of other writes never begin with it."""

T = TypeVar("T")


class Begun(msgspec.Struct, frozen=True, omit_defaults=True):
    """The record that a transaction was begun; `time` and `expires` are in microseconds since 1970.  `token`: a
    second transaction with the same token changes nothing."""

    author: str
    time: int
    expires: int
    token: str = ""
    message: str = ""
    metadata: dict[str, str] = {}

    def __post_init__(self) -> None:
        check_times("transaction", time=self.time, expires=self.expires)


class JoinedPool(msgspec.Struct, frozen=True, omit_defaults=True):
    """The record that a pool joined a transaction: the branch into which its writes go."""

    into: str = naming.MAIN


class CommitLease(msgspec.Struct, frozen=True):
    """States that the owner of a commit lives: the owner writes it again at least every `ttl` seconds."""

    owner: str
    ttl: float = TTL

    def __post_init__(self) -> None:
        if not 0 <= self.ttl <= MAX_TTL:
            raise Corrupt(f"the lease of a commit lives for {self.ttl} s")


class Decision(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was decided about a transaction: committed, with the version of the pending entry in each pool; or
    aborted.  `time` is in microseconds since 1970."""

    committed: bool
    by: str
    time: int
    prepared: dict[str, int] = {}

    def __post_init__(self) -> None:
        check_times("decision", time=self.time)
        for pool_id, version in self.prepared.items():
            check_id(pool_id, what="decision: the pool")
            check_counts("decision", version=version)


@dataclass(frozen=True)
class ListedTransaction:
    """A transaction as a listing shows it: its objects by kind, and the ids of the pools that joined."""

    id: str
    objects: dict[str, ObjectInfo] = field(default_factory=dict)

    @property
    def pools(self) -> list[str]:
        """The ids of the pools that joined, in the order in which a commit prepares them."""
        return sorted(pool for kind in self.objects if (pool := naming.joined_pool(kind)))

    @property
    def is_open(self) -> bool:
        """Whether the transaction may be written to: it was begun, and neither a commit nor a decision has
        followed."""
        return naming.BEGUN in self.objects and not {naming.LEASE, naming.DECISION} & self.objects.keys()


class Decisions:
    """The objects that transactions over several pools have on a store; `clock` gives seconds since 1970."""

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self.store = store
        self._clock = clock

    def begin(self, id: str, begun: Begun) -> None:
        """Records that a transaction was begun.  Raises Unavailable."""
        self._create(naming.transaction_object(id, naming.BEGUN), begun)

    def begun(self, id: str) -> Begun | None:
        """Returns what was recorded when the transaction was begun; None if it is unknown, or was cleaned up."""
        return self._read(naming.transaction_object(id, naming.BEGUN), Begun)

    def join(self, id: str, pool_id: str, joined: JoinedPool) -> JoinedPool:
        """Records that a pool joins a transaction.  Returns the record that is stored, which may be an earlier
        one.  Raises Unavailable."""
        name = naming.joined(id, pool_id)
        is_mine = self._create(name, joined)
        return joined if is_mine else self._read(name, JoinedPool) or joined

    def joined(self, id: str, pool_id: str) -> JoinedPool | None:
        """Returns the record that a pool joined the transaction; None if it did not join."""
        return self._read(naming.joined(id, pool_id), JoinedPool)

    def listed(self, id: str) -> ListedTransaction:
        """Returns which objects one transaction has on the store."""
        objects: dict[str, ObjectInfo] = {}
        for info in self.store.list(naming.transaction(id)):
            objects[naming.split_transaction(info.name)[1]] = info
        return ListedTransaction(id, objects)

    def all(self) -> list[ListedTransaction]:
        """Returns all transactions that have objects, oldest first."""
        by_id: dict[str, ListedTransaction] = {}
        for info in self.store.list(naming.TRANSACTIONS):
            id, kind = naming.split_transaction(info.name)
            if id:
                by_id.setdefault(id, ListedTransaction(id)).objects[kind] = info
        return [by_id[id] for id in sorted(by_id)]

    def keep_lease(self, id: str, lease: CommitLease) -> None:
        """Writes the lease of the commit.  Raises Unavailable."""
        name = naming.transaction_object(id, naming.LEASE)
        self.store.put(name, msgspec.json.encode(lease), durable=True)

    def is_dead(self, id: str, *, met_in: str = "a journal") -> bool:
        """Whether the owner of the commit has been silent for longer than its lease.

        Raises Corrupt if no commit has begun: then the owner did not prepare the part that the caller has found
        in the journal `met_in`, and the caller must not end the transaction because of this part. Raises
        Unavailable.
        """
        now, objects = self.now(id), self.listed(id).objects
        if naming.LEASE not in objects:
            if self.begun(id) is not None:  # after the listing: `forget` deletes it before the lease
                raise Corrupt(
                    f"{met_in}: a pending part of transaction {id}, whose commit has not begun; writes that wait "
                    "for it can go on when that transaction has ended"
                )
            return True
        try:
            lease = self._read(naming.transaction_object(id, naming.LEASE), CommitLease)
            ttl = TTL if lease is None else lease.ttl
        except Corrupt:  # it is being written
            ttl = MAX_TTL
        return now - objects[naming.LEASE].modified > ttl

    def now(self, id: str) -> float:
        """Returns the time by the store's clock, in seconds since 1970.  Raises Unavailable."""
        self.store.put(naming.transaction_object(id, naming.ASKED), b"?")
        asked = self.listed(id).objects.get(naming.ASKED)
        if asked is None:
            raise Unavailable(f"transaction {id}: the store does not list what was just written; try again")
        return asked.modified

    def get(self, id: str) -> Decision | None:
        """Returns the decision about a transaction; None if none was made.  Raises Corrupt, Unavailable."""
        return self._read(naming.transaction_object(id, naming.DECISION), Decision)

    def decide(
        self, id: str, *, committed: bool, by: str, prepared: dict[str, int] | None = None
    ) -> Decision:
        """Makes the decision about a transaction, unless one was made before.  Returns the decision that counts.

        Raises OutcomeUnknown if the store does not say which decision that is, and Unavailable if none was
        made.
        """
        name = naming.transaction_object(id, naming.DECISION)
        wish = Decision(committed, by, int(self._clock() * 1_000_000), prepared or {})
        try:
            self._create(name, wish)
            there = self.get(id)
        except Unavailable as error:
            raise OutcomeUnknown(
                f"{error}; whether transaction {id} is committed is unknown: commit it again",
                entry_id=id,
                version=0,
            ) from error
        if there is None:
            raise OutcomeUnknown(f"{name}: {DENIES}", entry_id=id, version=0)
        return there

    def forget(self, listed: ListedTransaction) -> None:
        """Deletes all objects of a transaction, `begun` first, so that no process commits the rest."""
        names = [naming.transaction_object(listed.id, kind) for kind in listed.objects]
        begun = naming.transaction_object(listed.id, naming.BEGUN)
        self.store.delete(begun)
        self.store.delete_all([name for name in names if name != begun])

    def _create(self, name: str, value: msgspec.Struct) -> bool:
        """Creates an object, unless it exists.  Returns whether this call is known to have created it.  Raises
        Unavailable if the store does not confirm either."""
        for _ in range(TRIES):
            if (created := self.store.create(name, msgspec.json.encode(value))) is not Created.UNKNOWN:
                return created is Created.YES
        raise Unavailable(f"{name}: the store does not say whether it has this object; try again")

    def _read(self, name: str, kind: type[T]) -> T | None:
        data = self.store.get(name)
        decoded: T | None = None if data is None else decoded_json(data, kind, name=name)
        return decoded
