"""What a pool should show and hold, said a second time: the oracle of the pairs.

It folds the entries in the order of the journal.  A load, a delete and a replace are known by the message of their
transaction: which records they bring, and which they hide (`Write`).  Maintenance changes nothing that is shown.
What only the engine can say (what expires, what a revert brings back) is read from the engine's state once, and
must fit what was shown before; from then on it is the oracle's again.

An object may be deleted only if no branch, no live tag, no lease that was never dead, and no reader within the
grace time needs it.  That is checked at every deletion, and at every entry for the objects that it refers to.
"""

from __future__ import annotations

import copy
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lake_core import naming
from lake_core.history import PoolState
from lake_core.history.fold import fold_entry, fold_transaction
from lake_core.naming import transaction_of
from lake_core.records import (
    AddObject,
    AddTombstone,
    BeginVacuum,
    CreateBranch,
    DeleteBranch,
    EndBranch,
    Entry,
    Join,
    Merge,
    RemoveReference,
    Split,
    Transaction,
)
from lake_core.records.branching import SEQUENCE_BYTES
from lake_core.records.transactions import sequence
from tests.simulation.truth import Truth, Violation
from tests.support.inlined import files_in, object_of

Rows = dict[Any, int]
"""What is shown: in append pools how often (key, number), otherwise the number of each key."""

Span = tuple[int, int]
"""Keys from the first (inclusive) to the second (exclusive)."""

ERASED = 9
"""The key whose records the eraser erases; nobody loads it once the pair begins."""


@dataclass(frozen=True)
class Write:
    """What a load, a delete or a replace does: hides the records of a span, or those with a number; brings others.

    `rows` are keys, numbers, and whether they are delete markers.
    """

    rows: tuple[tuple[int, int, bool], ...] = ()
    span: Span | None = None
    number: int | None = None
    replaces: bool = False

    def hides(self, key: int, number: int) -> bool:
        """Whether an older record goes."""
        if self.span is None or not self.span[0] <= key < self.span[1]:
            return False
        return self.number is None or number == self.number


HIDDEN = Write(span=(ERASED, ERASED + 1))
"""What the eraser hides."""


@dataclass
class Promise:
    """Objects that a reader may rely on: up to a time of the store, or as long as its lease was never dead."""

    objects: frozenset[str]
    until: float | None = None
    lease: str = ""


@dataclass
class PairTruth(Truth):
    """The history of a pool: what each version shows on each branch, and what of it must be on the store."""

    kind: str = "append"
    states: list[PoolState] = field(default_factory=lambda: [PoolState.empty()])
    shown: list[dict[str, Rows]] = field(default_factory=lambda: [{"main": {}}])
    writes: dict[str, Write] = field(default_factory=dict)
    """By message, from before they are tried."""
    begun: dict[str, int] = field(default_factory=dict)
    """By message, the newest version when they were begun."""
    committed: dict[str, int] = field(default_factory=dict)
    refused_writes: set[str] = field(default_factory=set)
    brought: dict[tuple[str, int], tuple[Write, tuple[Span, ...]]] = field(default_factory=dict)
    """Writes by branch and sequence, and the spans in which they were overtaken."""
    replaced: tuple[tuple[str, int, tuple[int, str] | None, Span], ...] = ()
    """Replaces: branch, version, what they began with (None: they were merged), span."""
    unclear: frozenset[str] = frozenset()
    """Branches on which something was reverted: what of it is merged is the engine's to say."""
    erased: frozenset[str] = frozenset()
    """Objects that an erasure takes, without a grace time."""
    points: frozenset[bytes] = frozenset()
    """The split points."""
    numbers: dict[str, int] = field(default_factory=dict)
    """Of transactions over pools."""
    merged: dict[str, int] = field(default_factory=dict)
    """The versions in which transactions over pools were merged."""
    told_committed: set[str] = field(default_factory=set)
    """Transactions over pools whose commit was acknowledged."""
    promises: list[Promise] = field(default_factory=list)
    objects: dict[str, bytes] = field(default_factory=dict)
    keys: dict[str, frozenset[int]] = field(default_factory=dict)
    """The keys of objects that were read."""
    violation: Violation | None = None
    clock: Callable[[], float] = float
    read: Callable[[PoolState, int, str], Rows] = lambda state, version, branch: {}
    """What the engine shows."""

    def copied(self) -> PairTruth:
        """The same history, to go on in another way."""
        return replace(self, **{f.name: copy.copy(getattr(self, f.name)) for f in fields(self)})

    # --- what happens

    def created(self, name: str, data: bytes) -> None:
        if name.startswith(f"{self.journal}/"):
            self._note(lambda: super(PairTruth, self).created(name, data))

    def deleted(self, name: str) -> None:
        if name.startswith(f"{self.journal}/"):
            self._note(lambda: super(PairTruth, self).deleted(name))
        elif (id := naming.data_id(name)) is not None:
            self._note(lambda: self._may_go(id))

    def _note(self, look: Callable[[], None]) -> None:
        """Keep a violation for `check`: the engine takes what a store raises for an answer."""
        try:
            look()
        except Violation as violation:
            self.violation = self.violation or violation
        except Exception:
            self.violation = self.violation or Violation(traceback.format_exc())

    def check(self) -> None:
        if self.violation is not None:
            raise self.violation
        super().check()

    def told_version(self, message: str, version: int) -> None:
        """A writer was told that its write is committed."""
        if self.committed.get(message) != version:
            raise Violation(f"{message!r} was acknowledged as {version}, not {self.committed.get(message)}")

    def told_refusal(self, message: str) -> None:
        """A writer was told that its write is not committed, and never will be."""
        if message in self.committed:
            raise Violation(f"{message!r} was refused, and is {self.committed[message]}")
        self.refused_writes.add(message)

    # --- what is shown

    def ids_of(self, entry: Entry) -> tuple[str, ...]:
        return tuple(t.id for t in entry.transactions)

    def fold(self, n: int, entry: Entry) -> None:
        state, shown, index = self.states[-1], dict(self.shown[-1]), 0
        for transaction in entry.transactions:
            state = fold_transaction(state, n, index, transaction)
            if transaction.branch:
                self._show(shown, n, sequence(n, index), transaction, state)
            for action in transaction.actions:
                if isinstance(action, BeginVacuum) and transaction.author == "eraser":
                    self.erased |= frozenset(action.objects)
                if isinstance(action, Split | Join):
                    self._points(n, action)
            index += transaction.width
        self.states.append(fold_entry(self.states[-1], n, entry))
        if self.states[-1].points != tuple(sorted(self.points)):
            raise Violation(f"version {n}: the split points are {self.states[-1].points}, not {self.points}")
        self.shown.append(shown)
        there = self.there_now()
        for what, objects in self.needed():
            if gone := objects - there:
                raise Violation(f"entry {n}: {what} needs {sorted(gone)}")

    def _points(self, n: int, action: Split | Join) -> None:
        """A point is added once, and removed where it is."""
        if self.points & set(action.points) != (set(action.points) if isinstance(action, Join) else set()):
            raise Violation(f"version {n}: {action}, and the split points are {self.points}")
        self.points = self.points ^ set(action.points)

    def _show(self, shown: dict[str, Rows], n: int, seq: int, by: Transaction, state: PoolState) -> None:
        branch = by.branch
        write = self._write(n, by)
        if write is not None:
            overtaken = self._overtaken(n, by)
            self.brought[branch, seq] = write, overtaken
            shown[branch] = self.after(shown[branch], write, overtaken)
            if write.replaces and write.span is not None:
                self.replaced += ((branch, n, (by.read_version, by.id), write.span),)
            return
        for action in by.actions:
            match action:
                case RemoveReference() if by.author == "eraser" and branch in shown:
                    # a branch that is younger than the hiding; it ends the branch of a transaction, too
                    shown[branch] = self.after(shown[branch], HIDDEN)
                case CreateBranch(restored=None, parent=parent, at=at):
                    shown[branch] = self.shown[n - 1 if at is None else at][parent]
                case CreateBranch():
                    at = int(by.message.rpartition("@")[2])
                    shown[branch] = self.shown[at][branch]
                case DeleteBranch() | EndBranch():
                    del shown[branch]
                case Merge():
                    if over := transaction_of(action.branch):
                        self.merged[over] = n
                    shown[branch] = self._merged(shown[branch], n, action, branch, state, base=seq)
        before = shown.get(branch, {})
        if by.message.startswith("expired: "):
            shown[branch] = self.read(state, n, branch)
            if not shown[branch].items() <= before.items():
                raise Violation(f"version {n}: an expiry shows {shown[branch]}, and before {before}")
        elif by.message.startswith("undo "):
            shown[branch] = self.read(state, n, branch)
            self._undone(shown[branch], before, branch, n)
        elif by.message.startswith("revert "):
            shown[branch] = self.read(state, n, branch)
            self.unclear |= {branch}

    def _write(self, n: int, by: Transaction) -> Write | None:
        if by.author == "eraser":  # it hides, on each branch; all else that it does is maintenance
            hides = any(isinstance(action, AddTombstone) for action in by.actions)
            return HIDDEN if hides else None
        write = self.writes.get(by.message)
        if write is None:
            return None
        if by.message in self.committed:
            raise Violation(f"{by.message!r} is committed as {self.committed[by.message]}, and again as {n}")
        if by.message in self.refused_writes:
            raise Violation(f"{by.message!r} was refused, and is committed as {n}")
        self.committed[by.message] = n
        before = self.states[self.begun.get(by.message, 0)].branches.get(by.branch)
        if before is not None and before.tip > by.read_version:
            raise Violation(
                f"version {n} began on {by.read_version}, and version {before.tip} was there before"
            )
        return write

    def _overtaken(self, n: int, by: Transaction) -> tuple[Span, ...]:
        """The spans of replaces that began later than a load, and were committed before it."""
        if not any(isinstance(action, AddObject) for action in by.actions):
            return ()
        since = [r for r in self.replaced if r[0] == by.branch and by.read_version < r[1]]
        spans = tuple(
            span for _, _, began, span in since if began is not None and began > (by.read_version, by.id)
        )
        own = sum(isinstance(a, AddTombstone) and a.self_only for a in by.actions)
        if own and not since:
            raise Violation(f"version {n} hides records of its own, and nothing has overtaken it")
        if any(began is None for _, _, began, _ in since):  # which of two began first is the engine's to say
            return tuple(span for *_, span in since) if own else ()
        return spans

    def after(self, rows: Rows, write: Write, overtaken: Iterable[Span] = ()) -> Rows:
        """What a write makes of what is shown."""
        left = {row: value for row, value in rows.items() if not write.hides(*self._pair(row, value))}
        for key, number, gone in write.rows:
            if any(low <= key < high for low, high in overtaken):
                continue
            if self.kind == "append":
                left[key, number] = left.get((key, number), 0) + 1
            elif self.kind == "aggregate":
                left[key] = left.get(key, 0) + number
            elif gone:
                left.pop(key, None)
            else:
                left[key] = number
        return left

    def shown_with(self, version: int, branch: str, over: Iterable[str]) -> Rows:
        """What a version shows with pending transactions over pools that are committed."""
        rows = self.shown[version][branch]
        for id in sorted(over):
            part = self.states[version].pending[id]
            for (name, seq), (write, overtaken) in sorted(self.brought.items(), key=lambda one: one[0]):
                if (name, part.into) == (part.branch, branch) and seq < sequence(part.upto + 1, 0):
                    rows = self.after(rows, write, overtaken)
        return rows

    def _pair(self, row: Any, value: int) -> tuple[int, int]:
        return row if self.kind == "append" else (row, value)

    def _merged(self, rows: Rows, n: int, action: Merge, branch: str, state: PoolState, *, base: int) -> Rows:
        at = range(0, len(action.writes), SEQUENCE_BYTES)
        seqs = [int.from_bytes(action.writes[i : i + SEQUENCE_BYTES], "little") for i in at]
        if action.branch in self.unclear:
            self.unclear |= {branch}
            return self.read(state, n, branch)
        for place, seq in enumerate(seqs):
            write, overtaken = self.brought[action.branch, seq]
            self.brought[branch, base + 1 + place] = (
                write,
                overtaken,
            )  # a merge of this branch brings it again
            rows = self.after(rows, write, overtaken)
            if write.replaces and write.span is not None:
                self.replaced += ((branch, n, None, write.span),)
        return rows

    def _undone(self, rows: Rows, before: Rows, branch: str, n: int) -> None:
        if branch in self.unclear:  # what is undone may have been a revert
            return
        fits = rows.items() <= before.items() or before.items() <= rows.items()
        if self.kind == "aggregate":  # what is put back is added to what was loaded since
            differences = [rows.get(key, 0) - before.get(key, 0) for key in rows.keys() | before.keys()]
            fits = min(differences, default=0) >= 0 or max(differences) <= 0
        if not fits:
            raise Violation(f"version {n}: an undo shows {rows}, and before {before}")
        if self.kind != "upsert":
            return
        for key in rows.keys() - before.keys():
            last = next(old[branch][key] for old in reversed(self.shown) if key in old.get(branch, {}))
            if rows[key] != last:
                raise Violation(f"version {n}: key {key} shows {rows[key]}, an older version than {last}")

    # --- what must be there

    def needed(self) -> Iterator[tuple[str, frozenset[str]]]:
        """What branches and live tags refer to."""
        state, now = self.states[-1], int(self.clock() * 1e6)
        for name, branch in state.branches.items():
            yield f"branch {name}", frozenset(r.object for r in branch.snapshot.all() if not r.data)
        for name, tag in state.tags.items():
            if tag.is_live(now):
                tagged = self.states[tag.version].branches[tag.branch]
                yield f"tag {name}", frozenset(r.object for r in tagged.snapshot.all() if not r.data)

    def promised(self) -> Iterator[tuple[str, frozenset[str]]]:
        """What readers may rely on."""
        for promise in self.promises:
            if promise.lease:
                yield f"lease {promise.lease}", promise.objects
            elif promise.until is not None and self.clock() < promise.until:
                yield "a reader within the grace time", promise.objects - self.erased

    def _may_go(self, id: str) -> None:
        for what, objects in (*self.needed(), *self.promised()):
            if id in objects:
                raise Violation(f"object {id} is deleted, and {what} needs it")
        if self.states[-1].removed.get(id) is not None:
            raise Violation(f"object {id} is deleted, and on the list of the removed")

    def there_now(self) -> set[str]:
        """The data objects on the store."""
        return {id for name in self.objects if (id := naming.data_id(name)) is not None}

    def holding(self, key: int) -> set[str]:
        """The data objects, also inlined ones, that hold records of a key, read by Arrow alone."""
        there = {naming.data_id(name): data for name, data in self.objects.items()}
        on_store = {id for id, data in there.items() if id is not None and key in self._keys(id, data)}
        return on_store | {
            object_of(file)
            for name, data in self.objects.items()
            if name.startswith(f"{self.journal}/") and not name.endswith(("/HEAD", "/TAIL", ".fence"))
            for file in files_in(name, data)
            if key in file.read(columns=["k"])["k"].to_pylist()
        }

    def _keys(self, id: str, data: bytes) -> frozenset[int]:
        if id not in self.keys:
            self.keys[id] = frozenset(pq.read_table(pa.BufferReader(data), columns=["k"])["k"].to_pylist())
        return self.keys[id]
