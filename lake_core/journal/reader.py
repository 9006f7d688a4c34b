"""Reading a journal: the newest state, an earlier one, the entries themselves.

Rules 5 to 7 of `journal`, as far as they bind readers: the end is the first number that has no entry; whoever has
read looks for a fence afterwards, and begins again from a checkpoint where there is one above the state it began
with; and no state is given that rests on a checkpoint below the fence, or on a damaged one.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypeVar

from lake_core import naming
from lake_core.checkpoints import CheckpointFile, Part
from lake_core.errors import CheckpointDamaged, CheckpointGone, Corrupt, LakeError, NotFound, Unavailable
from lake_core.journal import hints
from lake_core.journal.head import RECENT, E, HasId, Head, S, StateFormat
from lake_core.journal.marks import Mark, Marks, marks_of, read_marks
from lake_core.journal.recent import Recent
from lake_core.journal.retry import Retry
from lake_core.records.codec import Codec
from lake_core.store import Store

log = logging.getLogger(__name__)

T = TypeVar("T")
K = TypeVar("K")

LARGEST_WINDOW = 64
"""How many entries are asked for at once."""

FRESH = 0.25
"""For so many seconds a writer takes the state in memory for the newest.  Later it looks first: while a large load
was on its way, its number may have been taken and purged.  An entry that it wrote there would be no history; but
once the recent ids do not reach back so far, nothing tells it from an entry that was history and is purged."""

RESTARTS = 16
"""How often a reader begins again because it was purged past."""


def _only_id(entry: HasId) -> tuple[str, ...]:
    return (entry.id,)


def _while_there(entries: Iterable[T | None]) -> Iterator[T]:
    """Up to the first that is missing: what appeared behind it meanwhile is not the next."""
    for entry in entries:
        if entry is None:
            return
        yield entry


def _in_threads(read: Callable[[Any], Any], names: Sequence[Any]) -> list[Any]:
    """Several entries, or requests, at once."""
    if len(names) < 2:
        return [read(name) for name in names]
    with ThreadPoolExecutor(min(len(names), 16)) as pool:
        return list(pool.map(read, names))


@dataclass
class JournalReader(Generic[E, S]):
    """One journal, to be read.  Safe for use from several threads; each gets states in order.

    `fold(state, n, entry)` must be pure; it may raise Corrupt.  `ids(entry)` are the changes that an entry
    holds, each of which comes once.
    """

    store: Store
    name: str
    codec: Codec[E]
    initial: S
    fold: Callable[[S, int, E], S]
    retry: Retry = field(default_factory=Retry)
    ids: Callable[[E], tuple[str, ...]] = _only_id
    format: StateFormat[S] | None = None
    fetch: Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]] = _in_threads
    _head: Head[S] | None = None
    _damaged: set[str] = field(default_factory=set)
    _newest_at: float = float("-inf")
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def load(self) -> Head[S]:
        """The newest state, no older than the moment of the call.

        One request where there is no news, on a store that lists from a name on.  Raises Corrupt, Unavailable.
        """
        head = self._sound()
        if head is None:
            head = self._start()
            hint = hints.read_head(self.store, self.name)
            return self._follow(head, window=max(1, min(LARGEST_WINDOW, hint - head.n + 1)))
        if not self.store.lists_from_name:
            return self._follow(head, window=1)
        asked = self.retry.clock()
        n = self._newest(head)
        if n is None:
            return self._follow(head, window=LARGEST_WINDOW)
        if n != head.n:
            return self._follow(head, window=n - head.n, until=n)
        self._newest_at = asked
        return head

    def _fresh(self) -> Head[S] | None:
        """The state in memory, if it was the newest a moment ago."""
        return self._sound() if self.retry.clock() - self._newest_at <= FRESH else None

    def at(self, n: int) -> Head[S] | None:
        """The state after entry `n`, None where the journal is shorter.  Raises NotFound where it is purged."""
        head = self._sound()
        if head is not None and head.n == n:
            return head
        for _ in range(RESTARTS):
            if head is None or head.n > n:
                head = self._start(until=n)
            try:
                found = self._walk(head, window=LARGEST_WINDOW, until=n)
            except (CheckpointGone, CheckpointDamaged):
                pass
            except Corrupt:
                if not self._is_behind(head):
                    raise
            else:
                if not self._is_behind(head):
                    return found
            head = None
        raise self._purged_too_fast()

    def read(self, n: int) -> E | None:
        """Entry `n`, None where there is none (any more)."""
        name = naming.entry(self.name, n)
        data = self.store.get(name)
        return None if data is None else self.codec.decode(data, name=name)

    def backwards(self) -> Iterator[tuple[int, E]]:
        """Entries and their numbers, newest first, back to where they are purged.  Raises Corrupt, Unavailable."""
        n, window = self.load().n, 1
        fence = self.marks().fence
        while n > fence:
            numbers = range(n, max(fence, n - window), -1)
            entries = self.fetch(self.read, numbers)
            fence = self.marks().fence  # what was read at or below it may never have been history
            for n, entry in zip(numbers, entries, strict=True):
                if n <= fence:
                    return
                if entry is None:
                    raise Corrupt(f"{naming.entry(self.name, n)}: missing, and not purged")
                yield n, entry
            n, window = n - 1, min(LARGEST_WINDOW, window * 2)

    def between(self, after: int, until: int) -> Iterator[tuple[int, E]]:
        """Entries above `after` up to `until` and their numbers, oldest first.

        Raises NotFound where one of them is purged, Corrupt where one is missing, Unavailable.
        """
        while after < until:  # bounded by the numbers asked for
            numbers = range(after + 1, min(until, after + LARGEST_WINDOW) + 1)
            entries = self.fetch(self.read, numbers)
            fence = self.marks().fence  # what was read at or below it may never have been history
            if fence > after:
                raise NotFound(f"transaction {after + 1} is purged: the history begins after {fence}")
            for n, entry in zip(numbers, entries, strict=True):
                if entry is None:
                    raise Corrupt(f"{naming.entry(self.name, n)}: missing, and not purged")
                yield n, entry
            after = numbers[-1]

    def marks(self) -> Marks:
        """Checkpoints and the newest fence."""
        return read_marks(self.store, self.name)

    def restore(self, mark: Mark) -> Head[S]:
        """The state that a checkpoint holds.  Raises Corrupt, CheckpointGone, Unavailable.

        Damage that is found here is said; what is found later is mended from older checkpoints and entries.
        """
        if self.format is None:
            raise Corrupt(f"{mark.name}: this journal has no checkpoints")
        file = CheckpointFile(self.store, mark.name, on_damage=self._damaged.add)
        if file.head.n != mark.n or file.head.journal != self.name:
            raise Corrupt(f"{mark.name}: holds {file.head.journal} at {file.head.n}")
        ids = [
            (key.as_py().decode(), n.as_py())
            for table in file.scan(RECENT)
            for key, n in zip(table["key"], table["seq"], strict=True)
        ]
        head = Head(mark.n, self.format.restore(file), Recent.of(mark.n, ids), mark)
        file.rebuild = partial(self._parts_at, mark.n)
        return head

    def _parts_at(self, n: int) -> Iterable[Part]:
        """The state after entry `n` as rows, without what is known to be damaged.  Raises as `at`."""
        head = self.at(n)
        if head is None or self.format is None:
            raise Corrupt(f"{self.name}: the journal does not reach {n} any more")
        return self.format.parts(head.state, now=0.0)

    def _sound(self) -> Head[S] | None:
        """The state in memory, unless it rests on a checkpoint that was found damaged."""
        head = self._head
        return None if head is None or (head.base and head.base.name in self._damaged) else head

    def _is_behind(self, head: Head[S]) -> bool:
        """After reading on from `head`: whether entries above it may have been purged on the way, or the
        checkpoint that it rests on."""
        return self.marks().fence > head.floor

    def is_purged(self, n: int) -> bool:
        """After writing entry `n`: whether its number may have been free only because it was purged."""
        return self.marks().fence >= n

    def _newest(self, head: Head[S]) -> int | None:
        """The number of the last entry, by one listing; None where too much has happened since `head`.

        Entries come before marks in it, and whoever deletes an entry has put a fence before: so what is missing
        here was never there.
        """
        n, others = head.n, []
        for info in self.store.list(self.name, after=naming.entry(self.name, head.n)):
            number = naming.entry_number(info.name)
            if number is None:
                others.append(info.name)
            elif number == n + 1 and n < head.n + LARGEST_WINDOW:
                n = number
            else:
                return None
        return n if marks_of(others).fence <= head.floor else None

    def _start(self, *, until: int | None = None) -> Head[S]:
        """The newest state that can be had without folding: of a checkpoint, or the initial one."""
        for _ in range(RESTARTS):
            marks = self.marks()
            if until is not None and until < marks.fence:
                raise NotFound(f"transaction {until} is purged: the history begins after {marks.fence}")
            problem: LakeError | None = None
            for mark in marks.usable(until=until) if self.format else []:
                if mark.name in self._damaged:
                    continue
                try:
                    log.info("%s: begins with the checkpoint of entry %d", self.name, mark.n)
                    return self.restore(mark)
                except (Corrupt, CheckpointGone) as error:  # an older one, or all entries, do as well
                    log.warning("%s is passed over: %s", mark.name, error)
                    problem = error
            if not marks.fence:
                return Head(0, self.initial)
            if not isinstance(problem, CheckpointGone) and self.marks() == marks:
                raise Corrupt(
                    f"{self.name}: purged up to {marks.fence}, and no checkpoint from there on can be read"
                ) from problem
        raise self._purged_too_fast()

    def _step(self, head: Head[S], entry: E) -> Head[S]:
        """The state after the next entry, or a newer one.  Raises Corrupt also where the entry is no history."""
        after = self._folded(head, entry)
        if self._is_behind(head):
            return self._follow(self._start(), window=LARGEST_WINDOW)
        self._remember(after)
        return after

    def _follow(self, head: Head[S], *, window: int, until: int | None = None) -> Head[S]:
        """The newest state from `head` on, or that after `until` if it is there; from a checkpoint where entries
        after `head` were purged."""
        for _ in range(RESTARTS):
            try:
                newest = self._walk(head, window=window, until=until)
            except (CheckpointGone, CheckpointDamaged):  # what `head` rests on was purged, or is of no use
                pass
            except Corrupt:  # what was written below a fence need not fold
                if not self._is_behind(head):
                    raise
            else:
                if newest is not None and not self._is_behind(head):
                    self._remember(newest)
                    return newest
            head, window, until = self._start(), LARGEST_WINDOW, None
        raise self._purged_too_fast()

    def _purged_too_fast(self) -> Unavailable:
        return Unavailable(f"{self.name}: purged faster than it can be read; try again")

    def _walk(self, head: Head[S], *, window: int, until: int | None) -> Head[S] | None:
        """Fold entries after `head`, up to `until` or the end; asks for growing windows of them at once."""
        while until is None or head.n < until:  # bounded by the length of the journal
            ask = window if until is None else min(window, until - head.n)
            entries = self._read_window(head.n + 1, ask)
            for entry in entries:
                head = self._folded(head, entry)
            if len(entries) < ask:
                break
            window = min(LARGEST_WINDOW, window * 2)
        return head if until is None or head.n == until else None

    def _folded(self, head: Head[S], entry: E) -> Head[S]:
        n = head.n + 1
        return Head(n, self.fold(head.state, n, entry), head.recent.after(n, self.ids(entry)), head.base)

    def _read_window(self, first: int, count: int) -> list[E]:
        """Entries from `first` on, at most `count`, up to the first that is missing."""
        return list(_while_there(self.read_all(self.read, range(first, first + count))))

    def read_all(self, read: Callable[[K], T], names: Sequence[K]) -> Iterable[T]:
        """What `read` makes of each, in order; several are read at once where each takes the time of a request."""
        if self.store.local_path(self.name) is not None:
            # to read a file takes less time than to begin a thread, by far where many processes do
            return map(read, names)
        return self.fetch(read, names)

    def _remember(self, head: Head[S]) -> None:
        with self._lock:
            if self._head is None or head.n >= self._head.n:
                self._head, self._newest_at = head, self.retry.clock()
