"""Appending to a journal and loading it, with nothing but put-if-missing.

The rules (docs/protocol.md proves them; the tests hold them):

1. Entry n is written only by a create-only put, only by a writer that has folded entries 1 to n - 1, and
   only if it folds too.
2. A put whose answer is lost is repeated with the same bytes under the same number until the store says
   what is there.  Only then may the writer go on to n + 1: else it could win twice.
3. "Exists" with our own id inside means that an earlier try of ours won.
4. After a lost race the writer folds what won and proposes again on the new state: a proposal is a pure
   function of the state, and may find that there is nothing left to do, or that it conflicts.
5. The end of the journal is the first number that has no entry.  Hints only say how many to ask for at once.
6. Nothing here deletes.

Callers: `catalog.pools` (the list of pools) and `commits.commit` (a pool's history).  State is whatever the
fold makes; the journal keeps the newest one it has folded, so that a look for news is one request.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from lake_core import naming
from lake_core.errors import Conflict, Corrupt, LakeError, OutcomeUnknown, Unavailable
from lake_core.journal import hints
from lake_core.records.codec import Codec
from lake_core.store import Created, Store


class HasId(Protocol):
    """What the journal needs of an entry: the writer's id."""

    @property
    def id(self) -> str: ...


E = TypeVar("E", bound=HasId)
S = TypeVar("S")

LARGEST_WINDOW = 64
"""How many entries are asked for at once."""


@dataclass(frozen=True)
class Head(Generic[S]):
    """The state after entry `n`."""

    n: int
    state: S


@dataclass(frozen=True)
class Appended(Generic[S]):
    """The entry stands in the history as number `n`; `tries` counts the numbers raced for."""

    n: int
    state: S
    tries: int


Proposal = Callable[[Head[S]], E | None]
"""From a head to the entry that should come next, None where there is nothing to do.  Pure.  Keeps one id."""


@dataclass(frozen=True)
class Retry:
    """How often and how patiently a writer tries.  The pauses are jittered to part the racers."""

    races: int = 1000
    repeats: int = 8
    first_pause: float = 0.002
    longest_pause: float = 0.25
    sleep: Callable[[float], None] = time.sleep
    jitter: Callable[[], float] = random.random

    def pause(self, attempt: int) -> None:
        """Wait before attempt `attempt` + 1."""
        self.sleep(min(self.longest_pause, self.first_pause * 2 ** min(attempt, 10)) * self.jitter())


@dataclass
class Journal(Generic[E, S]):
    """One journal.  Safe for use from several threads; each gets states in order.

    `fold(state, n, entry)` must be pure; it may raise Corrupt.
    """

    store: Store
    name: str
    codec: Codec[E]
    initial: S
    fold: Callable[[S, int, E], S]
    retry: Retry = field(default_factory=Retry)
    _head: Head[S] | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def load(self) -> Head[S]:
        """The newest state, no older than the moment of the call.  One request where there is no news."""
        head = self._head
        if head is None:
            head = Head(0, self.initial)
            return self._advance(head, window=min(LARGEST_WINDOW, hints.read_head(self.store, self.name) + 1))
        return self._advance(head, window=1)

    def at(self, n: int) -> Head[S] | None:
        """The state after entry `n`, None where the journal is shorter."""
        head = self._head
        if head is not None and head.n == n:
            return head
        start = Head(0, self.initial) if head is None or head.n > n else head
        return self._walk(start, window=LARGEST_WINDOW, until=n, keep=head is None or head.n <= n)

    def read(self, n: int) -> E | None:
        """Entry `n`, None where there is none."""
        name = naming.entry(self.name, n)
        data = self.store.get(name)
        return None if data is None else self.codec.decode(data, name=name)

    def append(self, propose: Callable[[Head[S]], E | None]) -> Appended[S] | None:
        """Commit what `propose` makes of the newest state; None where it makes nothing.

        Raises what `propose` raises (and the fold, for a proposal that does not fit), Conflict after
        `retry.races` lost races, OutcomeUnknown where the store did not say what became of the put.
        """
        head = self._head or self.load()
        for attempt in range(self.retry.races):
            n, state = head.n + 1, head.state
            try:
                entry, refusal = propose(head), None
                if entry is not None:  # what does not fit must never be written: nobody could fold past it
                    state = self.fold(state, n, entry)
            except LakeError as error:
                entry, refusal = None, error
            if entry is None:  # a decision to do nothing, or to refuse, must rest on the newest state
                newest = self._advance(head, window=1)
                if newest.n > head.n:
                    head = newest
                    continue
                if refusal is not None:
                    raise refusal
                return None
            if self._put(n, entry):
                self._remember(Head(n, state))
                hints.write_head(self.store, self.name, n)
                return Appended(n, state, attempt + 1)
            self.retry.pause(attempt)
            head = self._advance(head, window=min(LARGEST_WINDOW, 2 + attempt))
        raise Conflict(f"{self.name}: lost {self.retry.races} races for the next entry; try again later")

    def _put(self, n: int, entry: E) -> bool:
        """Whether entry `n` is ours.  Asks until the answer is known, within bounds."""
        name, data = naming.entry(self.name, n), self.codec.encode(entry)
        sent = False
        for attempt in range(self.retry.repeats):
            try:
                created = self.store.create(name, data)
                if created is Created.YES:
                    return True
                sent = True  # even what exists may be ours: a store's client repeats lost requests itself
                there = self.read(n)
            except Unavailable:
                if not sent:  # refused before anything was written
                    raise
            else:
                if there is not None:
                    return there.id == entry.id
                if created is Created.EXISTS:
                    raise Corrupt(f"{name}: the store says that it exists, and does not give it")
            self.retry.pause(attempt)
        raise OutcomeUnknown(
            f"{name}: the store gave no answer in {self.retry.repeats} tries; the entry {entry.id} may be "
            "there or not. Run the same command with the same token again",
            entry_id=entry.id,
            n=n,
        )

    def _advance(self, head: Head[S], *, window: int) -> Head[S]:
        newest = self._walk(head, window=window, until=None, keep=True)
        assert newest is not None  # without a bound the walk always ends at a state
        return newest

    def _walk(self, head: Head[S], *, window: int, until: int | None, keep: bool) -> Head[S] | None:
        """Fold entries after `head`, up to `until` or the end; asks for growing windows of them at once."""
        n, state = head.n, head.state
        while until is None or n < until:  # bounded by the length of the journal
            ask = window if until is None else min(window, until - n)
            entries = self._read_window(n + 1, ask)
            for entry in entries:
                state = self.fold(state, n + 1, entry)
                n += 1
            if len(entries) < ask:
                break
            window = min(LARGEST_WINDOW, window * 2)
        found = Head(n, state)
        if keep:
            self._remember(found)
        return found if until is None or n == until else None

    def _read_window(self, first: int, count: int) -> list[E]:
        """Entries from `first` on, at most `count`, up to the first that is missing."""
        if count == 1:
            entry = self.read(first)
            return [] if entry is None else [entry]
        with ThreadPoolExecutor(min(count, 16)) as pool:
            found = list(pool.map(self.read, range(first, first + count)))
        return found[: found.index(None)] if None in found else found  # type: ignore[return-value]

    def _remember(self, head: Head[S]) -> None:
        with self._lock:
            if self._head is None or head.n >= self._head.n:
                self._head = head
