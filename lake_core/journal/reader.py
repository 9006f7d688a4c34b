"""Reading a journal: the newest state, an earlier one, the entries themselves.

Rules 5 to 7 and 10 of `journal`, as far as they bind readers.  The end is the first version without an entry.
After reading, the reader checks for a fence above its starting state; if there is one, it starts again from a
checkpoint.  It returns no state that rests on a checkpoint below the fence, or on a damaged one.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Generic, TypeVar

from lake_core import naming
from lake_core.checkpoints import CheckpointFile, SectionPart
from lake_core.errors import CheckpointDamaged, CheckpointGone, Corrupt, LakeError, NotFound, Unavailable
from lake_core.journal import gates, hints, windows
from lake_core.journal.fetching import ReadAll, in_threads
from lake_core.journal.limits import JOURNAL_LIMITS, JournalLimits
from lake_core.journal.link import StoredEntry, check_link, decode_stored, lost, missing, replaced
from lake_core.journal.listed import Listing, fold_listed, list_after
from lake_core.journal.loaded_state import E, HasId, LoadedState, S, StateFormat
from lake_core.journal.marks import Mark, Marks, read_marks
from lake_core.journal.newest import check_end
from lake_core.journal.recent import Recent
from lake_core.journal.restored import few_of, first_restored, restored, unreadable
from lake_core.journal.retry import CONTENDED_FRESH, FRESH, Retry
from lake_core.journal.windows import LARGEST_WINDOW
from lake_core.records.codec import Codec
from lake_core.records.decoding import decoding
from lake_core.store import Store

log = logging.getLogger(__name__)

T = TypeVar("T")
K = TypeVar("K")

NEXT = 2
"""Entries that `_look` reads first: the next one, and one more, which shows if the next one is lost."""

RESTARTS = 16
"""How often a reader starts again because a purge deleted entries while it read."""


def _only_id(entry: HasId) -> tuple[str, ...]:
    return (entry.id,)


def _keeps_nothing(state: object, now: float) -> frozenset[int]:
    return frozenset()


@dataclass
class JournalReader(Generic[E, S]):
    """Reads one journal.  Safe for use from several threads; each sees versions in order.

    `fold(state, version, entry)` must be pure; it may raise Corrupt.  `ids(entry)` returns the ids of the
    changes in an entry; each id occurs once in the history.
    """

    store: Store
    name: str
    codec: Codec[E]
    initial: S
    fold: Callable[[S, int, E], S]
    retry: Retry = field(default_factory=Retry)
    ids: Callable[[E], tuple[str, ...]] = _only_id
    format: StateFormat[S] | None = None
    limits: JournalLimits = JOURNAL_LIMITS
    kept: Callable[[S, float], frozenset[int]] = _keeps_nothing
    """A function that returns the versions whose checkpoints a purge keeps, although entries around them are
    deleted. Its argument is the store's time, in seconds since 1970."""
    gated: bool = False
    """Whether every purger makes gates, as it does from format version `gates.FORMAT` of a lake on."""
    fetch: ReadAll = in_threads
    _loaded: LoadedState[S] | None = None
    _damaged: set[str] = field(default_factory=set)
    _newest_at: float = float("-inf")
    _meets_others: bool = False
    """Whether other writers had committed when this process last read or wrote."""
    _wrote: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def load(self) -> LoadedState[S]:
        """Returns the newest state, no older than the moment of the call.  If there are no new entries, this
        takes one request on a store that can list from a given name on.  Raises Corrupt, Unavailable."""
        loaded = self._sound()
        if loaded is None:
            return self._first_load()
        newest = self._look(loaded)
        self._meets_others = newest.version > loaded.version
        return newest

    def _look(self, loaded: LoadedState[S]) -> LoadedState[S]:
        """Returns the newest state, no older than the moment of the call, by continuing from an earlier one."""
        if not self.store.lists_from_name:
            return self._follow(loaded, window=1)
        asked = self.retry.clock()
        newest = self._by_entries(loaded)
        if newest is None:
            counted = self._count_gates()  # before the listing that shows their fences
            newest = self._by_listing(loaded) or self._follow(loaded, window=LARGEST_WINDOW)
            newest = replace(newest, gates=counted)
        self._remember(newest, at=asked)
        return newest

    def _count_gates(self) -> int | None:
        """Returns the present number of gates; None if a program that makes no gates may purge this journal."""
        return gates.count(self.store, self.name) if self.gated else None

    def _by_entries(self, loaded: LoadedState[S]) -> LoadedState[S] | None:
        """Returns the newest state, by reading the next entries and then the next gate.  Returns None if a purge
        has begun."""
        if loaded.gates is None:
            return None
        try:
            newest = self._walk(loaded, window=NEXT, until=None)
        except (CheckpointGone, CheckpointDamaged, Corrupt):  # the slow way says which, and asks for a fence
            return None
        return None if gates.is_there(self.store, self.name, loaded.gates + 1) else newest

    def _first_load(self) -> LoadedState[S]:
        """Returns the newest state when none is in memory.  Raises JournalLost, Corrupt, Unavailable."""
        newest = self._open_by_listing() if self.store.lists_from_name else self._open_by_windows()
        if newest.version == 0 and hints.is_begun(self.store, self.name):
            newest = self._follow(self._start(), window=1, remembers=False)  # it may have begun just now
            if newest.version == 0:
                raise lost(self.name)
        self._remember(newest)
        return newest

    def _open_by_windows(self) -> LoadedState[S]:
        """Returns the newest state when none is in memory; HEAD says how many entries to read at once.  Raises
        Corrupt, Unavailable."""
        loaded = self._start()
        hint = hints.read_head_hint(self.store, self.name)
        window = max(1, min(LARGEST_WINDOW, hint - loaded.version + 1))
        newest = self._follow(loaded, window=window, remembers=False)  # not before it is known to be whole
        try:
            if not hint or hint != newest.version:
                check_end(self.store, self.name, newest)
        except Corrupt:
            if not self._is_behind(newest):
                raise
            return self._follow(self._start(), window=LARGEST_WINDOW)
        return newest

    def load_recent(self) -> LoadedState[S]:
        """Returns the state in memory if it was the newest a short time ago, otherwise calls `load`."""
        is_fresh = self.retry.clock() - self._newest_at <= (CONTENDED_FRESH if self._meets_others else FRESH)
        return (self._sound() if is_fresh else None) or self.load()

    def believed(self) -> LoadedState[S] | None:
        """Returns the state in memory if it is probably still the newest; None if a look is worth its requests."""
        loaded, is_fresh = self._sound(), self.retry.clock() - self._newest_at <= FRESH
        is_cheap = loaded is not None and (loaded.gates is not None or not self._wrote)
        is_alone = self.gated and self.store.lists_from_name and not self._meets_others
        return loaded if is_alone and is_fresh and is_cheap else None

    def load_version(self, version: int) -> LoadedState[S] | None:
        """Returns the state at a version; None if the journal is shorter.  Raises NotFound if the version is
        purged."""
        loaded = self._sound()
        if loaded is not None and loaded.version == version:
            return loaded
        for _ in range(RESTARTS):
            if loaded is None or loaded.version > version:
                loaded = self._start(until=version)
                if loaded.version == version and loaded.checkpoint is not None:
                    self._check_history(loaded, version)
                    return loaded  # a checkpoint alone, perhaps below the fence, kept for a tag
            try:
                reached = self._walk(loaded, window=LARGEST_WINDOW, until=version)
                self._check_history(reached, version)
            except (CheckpointGone, CheckpointDamaged):
                pass
            except Corrupt:
                if not self._is_behind(loaded):
                    raise
            else:
                if not self._is_behind(loaded):
                    return reached if reached.version == version else None
            loaded = None
        raise self._purged_too_fast()

    def _check_history(self, earlier: LoadedState[S], version: int) -> None:
        """Raises Corrupt if `earlier`, the state that was reached on the way to a version, is not part of the
        newest state's history.

        The newest state must know the recent ids of `earlier`.  This also checks the last entry that was
        folded, although the entry that names its checksum was not read, and the entry of a checkpoint.
        """
        newest = self._sound()
        if newest is None or newest.version < version:
            return
        if earlier.version < version:
            raise missing(self.name, earlier.version + 1)
        for id, at in earlier.recent.items():
            if newest.recent.reaches(at) and newest.recent.version_of(id) != at:
                raise replaced(self.name, at)

    def read(self, version: int) -> E | None:
        """Returns the entry of a version; None if it does not exist or is purged.  Raises Corrupt, Unavailable."""
        stored = self.read_stored(version)
        return None if stored is None else stored.entry

    def read_stored(self, version: int) -> StoredEntry[E] | None:
        """Returns the entry of a version, like `read`, with its checksum."""
        name = naming.entry(self.name, version)
        data = self.store.get(name)
        return None if data is None else decode_stored(self.codec, data, name=name)

    def backwards(self) -> Iterator[tuple[int, E]]:
        """Yields versions and their entries, newest first, back to the newest fence.  Raises Corrupt,
        Unavailable."""
        newest = self.load()
        return windows.backwards(self, newest.version, checksum=newest.checksum)

    def between(self, after: int, until: int) -> Iterator[tuple[int, E]]:
        """Yields versions above `after` (exclusive) up to `until` (inclusive) and their entries, oldest first.
        Raises NotFound if one of them is purged, Corrupt if one is missing, and Unavailable."""
        return windows.between(self, after, until)

    def marks(self) -> Marks:
        """Returns the checkpoints and the newest fence."""
        return read_marks(self.store, self.name)

    def restore(self, mark: Mark) -> LoadedState[S]:
        """Returns the state that a checkpoint holds.  Raises Corrupt, CheckpointGone, Unavailable.

        Damage that is found during this call is raised.  If damage is found later, when the state reads more of
        the file, the rows are repaired from older checkpoints and entries.
        """
        loaded, file = self._restored(mark)
        alone = replace(self, _loaded=None)  # a state that leads to a reader that leads to it is never freed
        file.rebuild = partial(alone._parts_at, mark.version, loaded.checksum)
        return loaded

    def _restored(self, mark: Mark) -> tuple[LoadedState[S], CheckpointFile]:
        if self.format is None:
            raise Corrupt(f"{mark.name}: this journal has no checkpoints")
        return restored(
            self.store, self.name, mark, format=self.format, limits=self.limits, on_damage=self._damaged.add
        )

    def verify(self, mark: Mark) -> None:
        """Reads and decodes a whole checkpoint.  Raises Corrupt if it is damaged, and then ignores it from now
        on.  Raises CheckpointGone, Unavailable."""
        try:
            loaded, file = self._restored(mark)  # nothing is rebuilt: what is there is verified
            file.verify()
            if self.format is not None:
                with decoding(mark.name, "a row of this checkpoint is damaged"):
                    self.format.verify(loaded.state)
        except Corrupt:
            self._damaged.add(mark.name)
            raise

    def _parts_at(self, version: int, checksum: int) -> Iterable[SectionPart]:
        """Returns the state after the entry of a version as rows, without using damaged checkpoints.  `checksum`
        is the entry's; 0 means any."""
        loaded = self.load_version(version)
        if loaded is None or self.format is None:
            raise Corrupt(f"{self.name}: the journal does not reach version {version} any more")
        check_link(checksum, loaded.checksum, journal=self.name, version=version)
        return self.format.parts(loaded.state, now=0.0, forget=0)

    def _sound(self) -> LoadedState[S] | None:
        """Returns the state in memory, unless it rests on a checkpoint that was found damaged."""
        loaded = self._loaded
        return (
            None
            if loaded is None or (loaded.checkpoint and loaded.checkpoint.name in self._damaged)
            else loaded
        )

    def _is_behind(self, loaded: LoadedState[S]) -> bool:
        """Whether a purge may have deleted entries above `loaded`, or the checkpoint that it rests on, while they
        were read."""
        return self.marks().fence > loaded.floor

    def is_purged(self, version: int, *, after: LoadedState[S]) -> bool:
        """Whether an entry that was just written may have found its version free only because of a purge.
        `after` is the state before the entry."""
        if after.gates is not None and not gates.is_there(self.store, self.name, after.gates + 1):
            return False
        return self.marks().fence >= version

    def _open_by_listing(self) -> LoadedState[S]:
        """Returns the newest state when none is in memory: by one listing, the checkpoint, and the entries
        after it.  A longer journal is listed from its checkpoint on.  Raises Corrupt, Unavailable."""
        listed = list_after(self.store, self.name, 0)
        start = None if listed is None else self._restored_of(listed.marks.usable())[0]
        if listed is None or (start is None and listed.marks.fence):
            start, listed = self._start(), None
        start = start or self._empty()
        newest = self._by_listing(start, listed)
        return newest or self._follow(start, window=LARGEST_WINDOW, remembers=False)

    def _by_listing(self, loaded: LoadedState[S], listed: Listing | None = None) -> LoadedState[S] | None:
        """Returns the newest state, folded from `loaded` on by one listing; None if the listing cannot show it."""
        listed = listed or list_after(self.store, self.name, loaded.version)
        infos = None if listed is None else listed.after(loaded.version, floor=loaded.floor)
        if infos is None:
            return None
        try:
            return fold_listed(
                loaded, infos, store=self.store, codec=self.codec, folded=self.folded, fetch=self.fetch
            )
        except (CheckpointGone, CheckpointDamaged, Corrupt):  # the slow way says which, and asks for a fence
            return None

    def _empty(self) -> LoadedState[S]:
        log.info("%s: starts from the first entry, without a checkpoint", self.name)
        return LoadedState(0, self.initial, Recent(limits=self.limits))

    def _restored_of(self, usable: list[Mark]) -> tuple[LoadedState[S] | None, LakeError | None]:
        """Returns what `first_restored` does, for the checkpoints that are not known to be damaged."""
        few = few_of(usable, limits=self.limits)  # damaged ones count, so that others do not take their place
        marks = [mark for mark in few if self.format and mark.name not in self._damaged]
        return first_restored(marks, self.restore)

    def _start(self, *, until: int | None = None) -> LoadedState[S]:
        """Returns the newest state that needs no folding: that of the newest readable checkpoint, otherwise the
        initial one.

        Raises NotFound if version `until` is purged, Corrupt if no checkpoint above the fence can be read.
        """
        for _ in range(RESTARTS):
            marks = self.marks()
            is_purged = until is not None and until < marks.fence
            usable = marks.at(until) if is_purged and until is not None else marks.usable(until=until)
            loaded, problem = self._restored_of(usable)
            if loaded is not None:
                return loaded
            if is_purged:
                raise NotFound(f"version {until} is purged: the history begins after {marks.fence}")
            if not marks.fence:
                return self._empty()
            if not isinstance(problem, CheckpointGone) and self.marks() == marks:
                raise unreadable(self.name, marks, limits=self.limits) from problem
        raise self._purged_too_fast()

    def _step(self, loaded: LoadedState[S], entry: StoredEntry[E]) -> LoadedState[S]:
        """Returns the state after the next entry, or a newer one.  Raises Corrupt if the entry does not fit,
        also when it was written below a fence."""
        after = self.folded(loaded, entry)
        if self._is_behind(loaded):
            return self._follow(self._start(), window=LARGEST_WINDOW)
        self._remember(after)
        return after

    def _follow(self, loaded: LoadedState[S], *, window: int, remembers: bool = True) -> LoadedState[S]:
        """Returns the newest state: folds windows of entries from `loaded` on, and then checks for a fence.  If
        entries after `loaded` were purged, it starts again from a checkpoint."""
        for _ in range(RESTARTS):
            try:
                newest = self._walk(loaded, window=window, until=None)
                lists = self.store.lists_from_name
                fence = check_end(self.store, self.name, newest) if lists else self.marks().fence
            except (CheckpointGone, CheckpointDamaged):  # the checkpoint of `loaded` was purged or is damaged
                pass
            except Corrupt:  # an entry that was written below a fence need not fold
                if not self._is_behind(loaded):
                    self._newest_at = float("-inf")  # so that no writer goes on from what is in memory
                    raise
            else:
                if fence <= loaded.floor:
                    if remembers:
                        self._remember(newest)
                    return newest
            log.info("%s: purged while reading after version %d; starts again", self.name, loaded.version)
            loaded, window = self._start(), LARGEST_WINDOW
        raise self._purged_too_fast()

    def _purged_too_fast(self) -> Unavailable:
        return Unavailable(f"{self.name}: purged faster than it can be read; try again")

    def _walk(self, loaded: LoadedState[S], *, window: int, until: int | None) -> LoadedState[S]:
        """Fold the entries after `loaded`, up to `until` or the end, reading growing windows of them."""
        first = loaded.version
        while until is None or loaded.version < until:  # bounded by the length of the journal
            ask = window if until is None else min(window, until - loaded.version)
            entries = windows.read_window(self, loaded.version + 1, ask)
            for entry in entries:
                loaded = self.folded(loaded, entry)
            if len(entries) < ask:
                break
            window = min(LARGEST_WINDOW, window * 2)
        if loaded.version > first:
            log.debug(
                "%s: folded %d entries, up to version %d", self.name, loaded.version - first, loaded.version
            )
        return loaded

    def folded(self, loaded: LoadedState[S], stored: StoredEntry[E]) -> LoadedState[S]:
        """Returns the state after the next entry.  Raises Corrupt if the entry does not fit, or if it names
        another predecessor."""
        version, entry = loaded.version + 1, stored.entry
        check_link(entry.previous, loaded.checksum, journal=self.name, version=loaded.version)
        return LoadedState(
            version,
            self.fold(loaded.state, version, entry),
            loaded.recent.after(version, self.ids(entry)),
            loaded.checkpoint,
            stored.checksum,
            loaded.gates,
        )

    def read_all(self, read: Callable[[K], T], names: Sequence[K]) -> Iterable[T]:
        """Returns the results of `read` for each name, in order.  It reads in parallel if each read is a request
        to a server."""
        if self.store.local_path(self.name) is not None:
            # reading a local file takes less time than starting a thread (decision 23)
            return map(read, names)
        return self.fetch(read, names)

    def _remember(self, loaded: LoadedState[S], *, at: float | None = None) -> None:
        """Keeps a state that was the newest at time `at` of the clock; None means now."""
        with self._lock:
            if self._loaded is None or loaded.version >= self._loaded.version:
                self._loaded, self._newest_at = loaded, self.retry.clock() if at is None else at
