"""What really happened, seen from where no process can look: and whether the invariants hold.

1. an acknowledged transaction is in the history exactly once
2. entries are contiguous above the newest fence
3. every loaded state is a fold of the history, no older than the load's start
4. every branch tip resolves: it is the newest entry of its branch
6. after the faults stop, a new writer commits within a bounded number of tries
7. a checkpoint's state is the fold of all entries up to it

(5, on the vacuum, has no code yet.)  An entry is history when it is created as the number after the last one;
a number that was history before and was purged can be created again, and that is not history.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from lake_core import naming
from lake_core.commits import PoolState
from lake_core.records import AddObject, Entry, Transaction
from lake_core.records.codec import Codec

_CODEC = Codec(Entry)


class Violation(AssertionError):
    """An invariant does not hold."""


@dataclass
class Truth:
    """The history of one journal."""

    journal: str
    entries: list[Entry] = field(default_factory=list)
    objects: list[frozenset[str]] = field(default_factory=lambda: [frozenset()])
    ids: dict[str, int] = field(default_factory=dict)
    acknowledged: dict[str, int] = field(default_factory=dict)
    there: set[int] = field(default_factory=set)
    fence: int = 0

    @property
    def n(self) -> int:
        """The newest entry."""
        return len(self.entries)

    def created(self, name: str, data: bytes) -> None:
        """An object came into being."""
        fence = naming.fence_number(name)
        if fence is not None:
            self.fence = max(self.fence, fence)
        n = naming.entry_number(name)
        if n is None:
            return
        self.there.add(n)
        if n <= self.n:
            if n > self.fence:
                raise Violation(f"entry {n} was deleted above the fence {self.fence} and written again")
            return
        if n != self.n + 1:
            raise Violation(f"entry {n} was written after {self.n}: a hole")
        self._history(n, _CODEC.decode(data, name=name))

    def _history(self, n: int, entry: Entry) -> None:
        held = set(self.objects[-1])
        for transaction in entry.transactions:
            if transaction.id in self.ids:
                raise Violation(f"{transaction.id} is in entry {self.ids[transaction.id]} and in {n}")
            self.ids[transaction.id] = n
            held |= _objects(transaction)
        self.entries.append(entry)
        self.objects.append(frozenset(held))

    def deleted(self, name: str) -> None:
        """An object was deleted."""
        n = naming.entry_number(name)
        if n is not None:
            self.there.discard(n)
            if n > self.fence:
                raise Violation(f"entry {n} was deleted above the fence {self.fence}")

    def acknowledge(self, id: str, n: int) -> None:
        """A writer was told that its transaction is entry n."""
        if self.ids.get(id) != n:
            raise Violation(f"{id} was acknowledged as {n}, and is in {self.ids.get(id, 'no entry')}")
        self.acknowledged[id] = n

    def loaded(self, n: int, state: PoolState, *, since: int) -> None:
        """A reader that began when the history had `since` entries got the state after n."""
        if not since <= n <= self.n:
            raise Violation(f"a load that began at {since} gave entry {n}; the history has {self.n}")
        self.is_state(n, state)

    def is_state(self, n: int, state: PoolState) -> None:
        """Invariants 3, 4 and 7 for one state."""
        branch = state.branches["main"]
        found = frozenset(r.object for r in branch.snapshot.find())
        if found != self.objects[n] or len(branch.snapshot) != len(found):
            raise Violation(f"the state after {n} has other objects: {sorted(found ^ self.objects[n])}")
        if branch.tip != n:
            raise Violation(f"the tip of main after {n} is {branch.tip}")

    def check(self) -> None:
        """What must hold after every step."""
        missing = set(range(self.fence + 1, self.n + 1)) - self.there
        if missing:
            raise Violation(f"entries {sorted(missing)} are missing above the fence {self.fence}")


def _objects(transaction: Transaction) -> set[str]:
    return {a.object for a in transaction.actions if isinstance(a, AddObject)}
