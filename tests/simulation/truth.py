"""What really happened, seen from where no process can look: and whether the invariants hold.

1. an acknowledged change is in the history exactly once; one that was refused is never there
2. entries are contiguous above the newest fence
3. every loaded state is a fold of the history, no older than the load's start
4. every branch tip resolves: it is the newest entry of its branch
6. after the faults stop, a new writer commits within a bounded number of tries
7. a checkpoint's state is the fold of all entries up to it

(5, on the vacuum, has no code yet.)  An entry is history when it is created as the number after the last one;
a number that was history before and was purged can be created again, and that is not history.

`Truth` knows any journal; `PoolTruth` the history of a pool, `ListTruth` the list of pools.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from lake_core import naming
from lake_core.catalog.state import PoolsState, fold_pools
from lake_core.history import Draft, PoolState
from lake_core.keys import KeyRange
from lake_core.records import (
    Action,
    AddObject,
    AddTombstone,
    Close,
    Entry,
    PoolsEntry,
    RemoveReference,
    Transaction,
)
from lake_core.records.codec import Codec, checksum_of


class Violation(AssertionError):
    """An invariant does not hold."""


class Witness(Protocol):
    """Who is told what changes on a store."""

    def created(self, name: str, data: bytes) -> None: ...

    def deleted(self, name: str) -> None: ...


class Unwatched:
    """Nobody is."""

    def created(self, name: str, data: bytes) -> None:
        pass

    def deleted(self, name: str) -> None:
        pass


@dataclass
class Truth:
    """One journal."""

    journal: str
    entries: list[Any] = field(default_factory=list)
    ids: dict[str, int] = field(default_factory=dict)
    acknowledged: dict[str, int] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    there: set[int] = field(default_factory=set)
    fence: int = 0
    checksum: int = 0
    """That of the newest entry, which the next one must name."""

    codec: Codec[Any] = Codec(Entry)  # noqa: RUF009 - it has no state

    @property
    def n(self) -> int:
        """The newest entry."""
        return len(self.entries)

    def created(self, name: str, data: bytes) -> None:
        """An object came into being."""
        fence = naming.fence_version(name)
        if fence is not None:
            self.fence = max(self.fence, fence)
        n = naming.entry_version(name)
        if n is None or "/marks/" in name:
            return
        self.there.add(n)
        if n <= self.n:
            if n > self.fence:
                raise Violation(f"entry {n} was deleted above the fence {self.fence} and written again")
            return
        if n != self.n + 1:
            raise Violation(f"entry {n} was written after {self.n}: a hole")
        entry = self.codec.decode(data, name=name)
        if entry.previous != self.checksum:
            raise Violation(f"entry {n} does not name the entry before it")
        self.checksum = checksum_of(data)
        for id in self.ids_of(entry):
            if id in self.ids:
                raise Violation(f"{id} is in entry {self.ids[id]} and in {n}")
            if id in self.refused:
                raise Violation(f"{id} was refused, and is committed as {n}")
            self.ids[id] = n
        self.entries.append(entry)
        self.fold(n, entry)

    def deleted(self, name: str) -> None:
        """An object was deleted."""
        n = naming.entry_version(name)
        if n is not None and "/marks/" not in name:
            self.there.discard(n)
            if n > self.fence:
                raise Violation(f"entry {n} was deleted above the fence {self.fence}")

    def acknowledge(self, id: str, n: int) -> None:
        """A writer was told that its change is entry n."""
        if self.ids.get(id) != n:
            raise Violation(f"{id} was acknowledged as {n}, and is in {self.ids.get(id, 'no entry')}")
        self.acknowledged[id] = n

    def refuse(self, id: str) -> None:
        """A writer was told that its change is not committed, and never will be."""
        if id in self.ids:
            raise Violation(f"{id} was refused, and is in {self.ids[id]}")
        self.refused.add(id)

    def loaded(self, n: int, state: Any, *, since: int) -> None:
        """A reader that began when the history had `since` entries got the state after n."""
        if not since <= n <= self.n:
            raise Violation(f"a load that began at {since} gave entry {n}; the history has {self.n}")
        self.is_state(n, state)

    def check(self) -> None:
        """What must hold after every step."""
        missing = set(range(self.fence + 1, self.n + 1)) - self.there
        if missing:
            raise Violation(f"entries {sorted(missing)} are missing above the fence {self.fence}")

    def told(self, history: Iterable[tuple[int, Any]]) -> None:
        """What a log said, newest first, is history."""
        for n, change in history:
            if self.ids.get(change.id) != n:
                raise Violation(
                    f"the log says {n}: {change.id}, which is {self.ids.get(change.id, 'nowhere')}"
                )

    def ids_of(self, entry: Any) -> tuple[str, ...]:
        raise NotImplementedError

    def fold(self, n: int, entry: Any) -> None:
        raise NotImplementedError

    def is_state(self, n: int, state: Any) -> None:
        """Invariants 3, 4 and 7 for one state."""
        raise NotImplementedError


@dataclass
class PoolTruth(Truth):
    """The history of a pool: which objects each entry leaves.  `keeps_tokens` says that none is ever forgotten."""

    keeps_tokens: bool = True
    objects: list[frozenset[str]] = field(default_factory=lambda: [frozenset()])
    tombstones: list[frozenset[str]] = field(default_factory=lambda: [frozenset()])
    replaces: list[tuple[int, Transaction, KeyRange]] = field(default_factory=list)
    tokens: set[str] = field(default_factory=set)
    closed: int = 0

    def ids_of(self, entry: Entry) -> tuple[str, ...]:
        return tuple(t.id for t in entry.transactions)

    def fold(self, n: int, entry: Entry) -> None:
        held, covered = set(self.objects[-1]), list[str]()
        for transaction in entry.transactions:
            if self.closed:
                raise Violation(
                    f"{transaction.id} is committed as {n}, the pool was dropped by {self.closed}"
                )
            if any(isinstance(action, Close) for action in transaction.actions):
                self.closed = n
            if transaction.token and transaction.token in self.tokens and self.keeps_tokens:
                raise Violation(f"token {transaction.token!r} is in the history twice, again in {n}")
            self.tokens.add(transaction.token)
            self._is_in_order(transaction)
            held = _after(held, transaction)
            covered += [a.tombstone for a in transaction.actions if isinstance(a, AddTombstone)]
            self.replaces += [(n, transaction, span) for span in replaced(transaction.actions)]
        self.objects.append(frozenset(held))
        self.tombstones.append(self.tombstones[-1] | set(covered))

    def _is_in_order(self, transaction: Transaction) -> None:
        """A load carries a tombstone of its own for each replace that began later, landed before it and overlaps;
        two replaces never overlap where neither knew of the other."""
        since = [(by, span) for n, by, span in self.replaces if n > transaction.read_version]
        spans = replaced(transaction.actions)
        if any(span.overlaps(other) for _, span in since for other in spans):
            raise Violation(
                f"{transaction.id} replaces what another replace has taken since {transaction.read_version}"
            )
        added = [KeyRange(a.low, a.high) for a in transaction.actions if isinstance(a, AddObject)]
        later = [
            span
            for by, span in since
            if (by.read_version, by.id) > (transaction.read_version, transaction.id)
        ]
        expected = sum(any(span.overlaps(keys) for keys in added) for span in later)
        own = sum(isinstance(a, AddTombstone) and a.self_only for a in transaction.actions)
        if own != expected:
            raise Violation(
                f"{transaction.id} was overtaken by {expected} replaces, and carries {own} tombstones"
            )

    def overlaps(self, draft: Draft) -> bool:
        """Whether the draft replaces what somebody else has replaced since it began."""
        since = [span for n, by, span in self.replaces if n > draft.read_version and by.id != draft.id]
        return any(span.overlaps(other) for span in since for other in replaced(draft.actions))

    def is_state(self, n: int, state: PoolState) -> None:
        branch = state.branches["main"]
        found = frozenset(r.object for r in branch.snapshot.overlapping())
        if found != self.objects[n] or len(branch.snapshot) != len(found):
            raise Violation(f"the state after {n} has other objects: {sorted(found ^ self.objects[n])}")
        if branch.tip != n:
            raise Violation(f"the tip of main after {n} is {branch.tip}")
        closed = state.closed.version if state.closed else 0
        if closed != (self.closed if self.closed <= n else 0):
            raise Violation(
                f"the state after {n} says that the pool was closed by {closed}, not {self.closed}"
            )
        if set(branch.tombstones) != self.tombstones[n]:
            raise Violation(f"the state after {n} has other tombstones: {sorted(branch.tombstones)}")


def replaced(actions: Iterable[Action]) -> list[KeyRange]:
    """The ranges that are replaced."""
    return [a.range for a in actions if isinstance(a, AddTombstone) and a.replaces]


def _after(held: set[str], transaction: Transaction) -> set[str]:
    for action in transaction.actions:
        match action:
            case AddObject() if action.object not in held:
                held.add(action.object)
            case RemoveReference() if action.object in held:
                held.remove(action.object)
            case AddObject() | RemoveReference():
                raise Violation(f"version {transaction.id}: {action} does not fit")
    return held


@dataclass
class ListTruth(Truth):
    """The list of pools: the fold is the catalog's own, of entries that were written in order."""

    codec: Codec[Any] = Codec(PoolsEntry)  # noqa: RUF009 - it has no state
    states: list[PoolsState] = field(default_factory=lambda: [PoolsState()])

    def ids_of(self, entry: PoolsEntry) -> tuple[str, ...]:
        return (entry.id,)

    def fold(self, n: int, entry: PoolsEntry) -> None:
        self.states.append(fold_pools(self.states[-1], n, entry))

    def is_state(self, n: int, state: PoolsState) -> None:
        expected = self.states[n]
        if dict(state.pools) != dict(expected.pools) or dict(state.names) != dict(expected.names):
            raise Violation(f"the list of pools after {n} is another: {sorted(state.names)}")
