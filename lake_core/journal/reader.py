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
from lake_core.journal.loaded_state import RECENT, E, HasId, LoadedState, S, StateFormat
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
    _loaded: LoadedState[S] | None = None
    _damaged: set[str] = field(default_factory=set)
    _newest_at: float = float("-inf")
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def load(self) -> LoadedState[S]:
        """The newest state, no older than the moment of the call.

        One request where there is no news, on a store that lists from a name on.  Raises Corrupt, Unavailable.
        """
        loaded = self._sound()
        if loaded is None:
            loaded = self._start()
            hint = hints.read_head_hint(self.store, self.name)
            return self._follow(loaded, window=max(1, min(LARGEST_WINDOW, hint - loaded.version + 1)))
        if not self.store.lists_from_name:
            return self._follow(loaded, window=1)
        asked = self.retry.clock()
        version = self._newest(loaded)
        if version is None:
            return self._follow(loaded, window=LARGEST_WINDOW)
        if version != loaded.version:
            return self._follow(loaded, window=version - loaded.version, until=version)
        self._newest_at = asked
        return loaded

    def _fresh(self) -> LoadedState[S] | None:
        """The state in memory, if it was the newest a moment ago."""
        return self._sound() if self.retry.clock() - self._newest_at <= FRESH else None

    def at(self, version: int) -> LoadedState[S] | None:
        """The state after entry `n`, None where the journal is shorter.  Raises NotFound where it is purged."""
        loaded = self._sound()
        if loaded is not None and loaded.version == version:
            return loaded
        for _ in range(RESTARTS):
            if loaded is None or loaded.version > version:
                loaded = self._start(until=version)
            try:
                found = self._walk(loaded, window=LARGEST_WINDOW, until=version)
            except (CheckpointGone, CheckpointDamaged):
                pass
            except Corrupt:
                if not self._is_behind(loaded):
                    raise
            else:
                if not self._is_behind(loaded):
                    return found
            loaded = None
        raise self._purged_too_fast()

    def read(self, version: int) -> E | None:
        """Entry `n`, None where there is none (any more)."""
        name = naming.entry(self.name, version)
        data = self.store.get(name)
        return None if data is None else self.codec.decode(data, name=name)

    def backwards(self) -> Iterator[tuple[int, E]]:
        """Entries and their numbers, newest first, back to where they are purged.  Raises Corrupt, Unavailable."""
        version, window = self.load().version, 1
        fence = self.marks().fence
        while version > fence:
            versions = range(version, max(fence, version - window), -1)
            entries = self.fetch(self.read, versions)
            fence = self.marks().fence  # what was read at or below it may never have been history
            for version, entry in zip(versions, entries, strict=True):
                if version <= fence:
                    return
                if entry is None:
                    raise Corrupt(f"{naming.entry(self.name, version)}: missing, and not purged")
                yield version, entry
            version, window = version - 1, min(LARGEST_WINDOW, window * 2)

    def between(self, after: int, until: int) -> Iterator[tuple[int, E]]:
        """Entries above `after` up to `until` and their numbers, oldest first.

        Raises NotFound where one of them is purged, Corrupt where one is missing, Unavailable.
        """
        while after < until:  # bounded by the numbers asked for
            versions = range(after + 1, min(until, after + LARGEST_WINDOW) + 1)
            entries = self.fetch(self.read, versions)
            fence = self.marks().fence  # what was read at or below it may never have been history
            if fence > after:
                raise NotFound(f"version {after + 1} is purged: the history begins after {fence}")
            for version, entry in zip(versions, entries, strict=True):
                if entry is None:
                    raise Corrupt(f"{naming.entry(self.name, version)}: missing, and not purged")
                yield version, entry
            after = versions[-1]

    def marks(self) -> Marks:
        """Checkpoints and the newest fence."""
        return read_marks(self.store, self.name)

    def restore(self, mark: Mark) -> LoadedState[S]:
        """The state that a checkpoint holds.  Raises Corrupt, CheckpointGone, Unavailable.

        Damage that is found here is said; what is found later is mended from older checkpoints and entries.
        """
        if self.format is None:
            raise Corrupt(f"{mark.name}: this journal has no checkpoints")
        file = CheckpointFile(self.store, mark.name, on_damage=self._damaged.add)
        if file.footer.version != mark.version or file.footer.journal != self.name:
            raise Corrupt(f"{mark.name}: holds {file.footer.journal} at {file.footer.version}")
        ids = [
            (key.as_py().decode(), version.as_py())
            for table in file.scan(RECENT)
            for key, version in zip(table["key"], table["seq"], strict=True)
        ]
        loaded = LoadedState(mark.version, self.format.restore(file), Recent.of(mark.version, ids), mark)
        file.rebuild = partial(self._parts_at, mark.version)
        return loaded

    def _parts_at(self, version: int) -> Iterable[Part]:
        """The state after entry `n` as rows, without what is known to be damaged.  Raises as `at`."""
        loaded = self.at(version)
        if loaded is None or self.format is None:
            raise Corrupt(f"{self.name}: the journal does not reach {version} any more")
        return self.format.parts(loaded.state, now=0.0)

    def _sound(self) -> LoadedState[S] | None:
        """The state in memory, unless it rests on a checkpoint that was found damaged."""
        loaded = self._loaded
        return (
            None
            if loaded is None or (loaded.checkpoint and loaded.checkpoint.name in self._damaged)
            else loaded
        )

    def _is_behind(self, loaded: LoadedState[S]) -> bool:
        """After reading on from `head`: whether entries above it may have been purged on the way, or the
        checkpoint that it rests on."""
        return self.marks().fence > loaded.floor

    def is_purged(self, version: int) -> bool:
        """After writing entry `n`: whether its number may have been free only because it was purged."""
        return self.marks().fence >= version

    def _newest(self, loaded: LoadedState[S]) -> int | None:
        """The number of the last entry, by one listing; None where too much has happened since `head`.

        Entries come before marks in it, and whoever deletes an entry has put a fence before: so what is missing
        here was never there.
        """
        version, others = loaded.version, []
        for info in self.store.list(self.name, after=naming.entry(self.name, loaded.version)):
            number = naming.entry_version(info.name)
            if number is None:
                others.append(info.name)
            elif number == version + 1 and version < loaded.version + LARGEST_WINDOW:
                version = number
            else:
                return None
        return version if marks_of(others).fence <= loaded.floor else None

    def _start(self, *, until: int | None = None) -> LoadedState[S]:
        """The newest state that can be had without folding: of a checkpoint, or the initial one."""
        for _ in range(RESTARTS):
            marks = self.marks()
            if until is not None and until < marks.fence:
                raise NotFound(f"version {until} is purged: the history begins after {marks.fence}")
            problem: LakeError | None = None
            for mark in marks.usable(until=until) if self.format else []:
                if mark.name in self._damaged:
                    continue
                try:
                    log.info("%s: begins with the checkpoint of entry %d", self.name, mark.version)
                    return self.restore(mark)
                except (Corrupt, CheckpointGone) as error:  # an older one, or all entries, do as well
                    log.warning("%s is passed over: %s", mark.name, error)
                    problem = error
            if not marks.fence:
                return LoadedState(0, self.initial)
            if not isinstance(problem, CheckpointGone) and self.marks() == marks:
                raise Corrupt(
                    f"{self.name}: purged up to {marks.fence}, and no checkpoint from there on can be read"
                ) from problem
        raise self._purged_too_fast()

    def _step(self, loaded: LoadedState[S], entry: E) -> LoadedState[S]:
        """The state after the next entry, or a newer one.  Raises Corrupt also where the entry is no history."""
        after = self._folded(loaded, entry)
        if self._is_behind(loaded):
            return self._follow(self._start(), window=LARGEST_WINDOW)
        self._remember(after)
        return after

    def _follow(self, loaded: LoadedState[S], *, window: int, until: int | None = None) -> LoadedState[S]:
        """The newest state from `head` on, or that after `until` if it is there; from a checkpoint where entries
        after `head` were purged."""
        for _ in range(RESTARTS):
            try:
                newest = self._walk(loaded, window=window, until=until)
            except (CheckpointGone, CheckpointDamaged):  # what `head` rests on was purged, or is of no use
                pass
            except Corrupt:  # what was written below a fence need not fold
                if not self._is_behind(loaded):
                    raise
            else:
                if newest is not None and not self._is_behind(loaded):
                    self._remember(newest)
                    return newest
            loaded, window, until = self._start(), LARGEST_WINDOW, None
        raise self._purged_too_fast()

    def _purged_too_fast(self) -> Unavailable:
        return Unavailable(f"{self.name}: purged faster than it can be read; try again")

    def _walk(self, loaded: LoadedState[S], *, window: int, until: int | None) -> LoadedState[S] | None:
        """Fold entries after `head`, up to `until` or the end; asks for growing windows of them at once."""
        while until is None or loaded.version < until:  # bounded by the length of the journal
            ask = window if until is None else min(window, until - loaded.version)
            entries = self._read_window(loaded.version + 1, ask)
            for entry in entries:
                loaded = self._folded(loaded, entry)
            if len(entries) < ask:
                break
            window = min(LARGEST_WINDOW, window * 2)
        return loaded if until is None or loaded.version == until else None

    def _folded(self, loaded: LoadedState[S], entry: E) -> LoadedState[S]:
        version = loaded.version + 1
        return LoadedState(
            version,
            self.fold(loaded.state, version, entry),
            loaded.recent.after(version, self.ids(entry)),
            loaded.checkpoint,
        )

    def _read_window(self, first: int, count: int) -> list[E]:
        """Entries from `first` on, at most `count`, up to the first that is missing."""
        return list(_while_there(self.read_all(self.read, range(first, first + count))))

    def read_all(self, read: Callable[[K], T], names: Sequence[K]) -> Iterable[T]:
        """What `read` makes of each, in order; several are read at once where each takes the time of a request."""
        if self.store.local_path(self.name) is not None:
            # to read a file takes less time than to begin a thread, by far where many processes do
            return map(read, names)
        return self.fetch(read, names)

    def _remember(self, loaded: LoadedState[S]) -> None:
        with self._lock:
            if self._loaded is None or loaded.version >= self._loaded.version:
                self._loaded, self._newest_at = loaded, self.retry.clock()
