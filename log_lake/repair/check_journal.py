"""Finds the faults of a journal: of its entries, checkpoints, fences and hints.

One listing shows all names.  Then the entries above the newest fence are folded, from the first one or from each
sound checkpoint, and every checkpoint on the way is compared with the fold.  The checkpoint at which a fold
begins can only be compared with itself.

Each entry stores the checksum of the previous one.  If the previous entry has another checksum, one of the two
is not the entry that was committed.  The entry after both shows which one.

Others may commit and purge meanwhile.  Hints are read before the listing, because they are never ahead of the
entries.  A missing entry counts only if no newer fence explains it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from typing import Any

from lake_core import naming
from lake_core.checkpoints import CheckpointFile
from lake_core.errors import CheckpointGone, Corrupt, InvalidInput, JournalLost
from lake_core.journal import LoadedState
from lake_core.journal.hints import MAX_DIGITS
from lake_core.journal.link import StoredEntry, fits
from lake_core.journal.marks import Mark, Marks, marks_of
from lake_core.journal.reader import JournalReader
from lake_core.journal.windows import LARGEST_WINDOW
from lake_core.records.decoding import decoding
from lake_core.store import ObjectInfo
from log_lake.repair.check_checkpoint import lies_of_checkpoint
from log_lake.repair.compare import first_difference
from log_lake.repair.finding import Finding, finding

Sound = dict[int, list[Mark]]
"""Checkpoints that can be read whole, by version."""


@dataclass
class JournalCheck:
    """Checks one journal.  `runs` are the versions that have entries, as ranges with inclusive ends.

    It calls `on_base` with each state at which a fold begins, and `on_entry` with each entry; from these the
    caller learns what the history refers to.  Afterwards `damaged` says whether part of the history could not be
    read.
    """

    journal: JournalReader[Any, Any]
    pool: str
    on_base: Callable[[Any], None] = lambda state: None
    on_entry: Callable[[Any], None] = lambda entry: None
    progress: Callable[[str, int], None] = lambda what, count: None
    runs: list[tuple[int, int]] = field(default_factory=list)
    marks: Marks = field(default_factory=Marks)
    requests: list[ObjectInfo] = field(default_factory=list)
    entries: int = 0
    checkpoints: int = 0
    damaged: bool = False

    @property
    def last(self) -> int:
        """The newest version that an entry or a mark names."""
        ends = (
            [end for _, end in self.runs] + [m.version for m in self.marks.checkpoints] + [self.marks.fence]
        )
        return max(ends)

    def run(self) -> Iterator[Finding]:
        """Yields all faults of the journal.  Raises Unavailable."""
        hints = {name: self.journal.store.get(name) for name in self._hint_names()}
        yield from self._list()
        yield from self._lost()
        sound = yield from self._sound_checkpoints()
        yield from self._fence(sound)
        yield from self._hints(hints)
        yield from self._fold(sound)

    def _finding(self, kind: str, where: str, what: str) -> Finding:
        self.damaged = self.damaged or kind in ("entry_missing", "entry_damaged", "entry_replaced")
        return finding(kind, pool=self.pool, where=where, what=what)

    def _hint_names(self) -> tuple[str, str]:
        return naming.head(self.journal.name), naming.tail(self.journal.name)

    def _list(self) -> Iterator[Finding]:
        marks: list[str] = []
        now = 0.0
        for info in self.journal.store.list(self.journal.name):
            now = max(now, info.modified)
            version = naming.entry_version(info.name)
            if version is not None and info.name == naming.entry(self.journal.name, version):
                if self.runs and self.runs[-1][1] == version - 1:
                    self.runs[-1] = (self.runs[-1][0], version)
                else:
                    self.runs.append((version, version))
            elif (
                naming.checkpoint_version(info.name) is not None
                or naming.fence_version(info.name) is not None
            ):
                marks.append(info.name)
            elif info.name.startswith(naming.requests(self.journal.name) + "/"):
                self.requests.append(info)
            elif info.name not in self._hint_names():
                yield self._finding("object_unknown", info.name, "not an object of a journal")
        self.marks = marks_of(marks)
        kept = self._kept(now)
        for mark in self.marks.checkpoints:
            if mark.version < self.marks.fence and mark.version not in kept:
                yield self._finding("entry_leftover", mark.name, "a checkpoint below the fence")
        for begin, end in self.runs:
            if begin <= self.marks.fence:
                until = min(end, self.marks.fence)
                where = naming.entry(self.journal.name, begin)
                yield self._finding("entry_leftover", where, f"the entries {begin} to {until} are purged")

    def _lost(self) -> Iterator[Finding]:
        if self.last:
            return
        try:
            self.journal.load()
        except JournalLost:
            self.damaged = True
            kind = "pools_lost" if self.journal.name == naming.POOLS_JOURNAL else "journal_lost"
            what = "this journal had entries, and all of it is gone"
            yield self._finding(kind, self.journal.name, what)
        except Corrupt:  # an entry came meanwhile; what is wrong with it is found below
            return

    def _kept(self, now: float) -> frozenset[int]:
        """Returns the versions whose checkpoints live tags keep at `now`, by the store's clock; none if the
        journal cannot be read."""
        try:
            return self.journal.kept(self.journal.load().state, now)
        except Corrupt:
            return frozenset()

    def _sound_checkpoints(self) -> Generator[Finding, None, Sound]:
        """Findings about checkpoints alone; returns the sound ones by version."""
        sound: Sound = {}
        for mark in reversed(self.marks.usable()):
            self.progress("checkpoints", 1)
            self.checkpoints += 1
            try:
                self.journal.verify(mark)
                with decoding(mark.name, "a row of this checkpoint is damaged"):
                    lies = list(lies_of_checkpoint(CheckpointFile(self.journal.store, mark.name)))
            except CheckpointGone:  # purged meanwhile
                continue
            except Corrupt as error:
                yield self._finding("checkpoint_damaged", mark.name, str(error))
                continue
            for lie in lies:
                yield self._finding("checkpoint_lies", mark.name, lie)
            sound.setdefault(mark.version, []).append(mark)
        return sound

    def _fence(self, sound: Sound) -> Iterator[Finding]:
        fence = self.marks.fence
        if not fence:
            return
        name = naming.fence(self.journal.name, fence)
        content = self.journal.store.get(name)
        if content is not None and content != str(fence).encode():
            yield self._finding("fence_lies", name, f"its content is {content[:20]!r}, not {fence}")
        if not sound and self.journal.marks() == self.marks:
            self.damaged = True
            yield self._finding(
                "fence_lies",
                name,
                f"entries up to {fence} count as purged, and no checkpoint there can be read",
            )

    def _hints(self, hints: dict[str, bytes | None]) -> Iterator[Finding]:
        head, tail = self._hint_names()
        for name, what, limit in (
            (head, "the newest entry", self.last),
            (tail, "the first entry", self.marks.fence + 1),
        ):
            text = hints[name]
            if text is None:
                continue
            if not (text.isdigit() and len(text) <= MAX_DIGITS):
                yield self._finding("hint_unreadable", name, f"holds {text[:20]!r}, not a version")
            elif int(text) > limit:
                lost = f"names version {int(text)}; {what} is {limit}: entries are lost, or the hint lies"
                yield self._finding("hint_beyond_end", name, lost)

    def _fold(self, sound: Sound) -> Iterator[Finding]:
        """Fold the entries above the fence, and compare the checkpoints on the way."""
        version, last = self.marks.fence, self.last
        loaded: LoadedState[Any] | None = None
        since = checksum = 0  # that of the entry before, also if it could not be folded
        if not version:
            loaded = LoadedState(0, self.journal.initial)
            self.on_base(loaded.state)
        while True:  # bounded by the versions up to `last`
            for mark in sound.get(version, ()):
                try:
                    restored = self.journal.restore(mark)
                    if self._is_of_another(version, checksum, restored):
                        what = f"the checkpoint {mark.name} was written after another entry {version}"
                        yield self._replaced(version, what)
                        loaded, checksum = None, restored.checksum
                    if loaded is None:
                        loaded, since, checksum = restored, version, checksum or restored.checksum
                        self.on_base(loaded.state)
                        continue
                    what_differs = self._difference(loaded, restored, since=since)
                except CheckpointGone:  # purged meanwhile
                    continue
                if what_differs is not None:
                    yield self._finding("checkpoint_differs", mark.name, what_differs)
            if version >= last:
                return
            count = min(LARGEST_WINDOW, last - version, *(v - version for v in sound if v > version))
            versions = range(version + 1, version + count + 1)
            before_window = self.entries
            for number, stored in zip(versions, self.journal.read_all(self._read, versions), strict=True):
                if not isinstance(stored, StoredEntry):
                    loaded, checksum = None, 0
                if isinstance(stored, Corrupt):
                    yield self._finding("entry_damaged", naming.entry(self.journal.name, number), str(stored))
                elif stored is None:
                    if number > self.journal.marks().fence:
                        yield from self._missing(number, sound)
                else:
                    self.entries += 1
                    self.on_entry(stored.entry)
                    before, checksum = checksum, stored.checksum
                    if not fits(stored.entry.previous, before):
                        loaded = None
                        fence = self.journal.marks().fence
                        if number > fence + 1 and self._next_follows(number, checksum) is not False:
                            yield self._replaced(number - 1, f"version {number} was committed on another one")
                        elif number > fence:
                            yield self._replaced(number, f"it does not follow entry {number - 1}")
                            checksum = 0
                    try:
                        loaded = loaded and self.journal.folded(loaded, stored)
                    except (Corrupt, InvalidInput) as error:
                        what = f"the entry does not fit the ones before: {error}"
                        yield self._finding("entry_damaged", naming.entry(self.journal.name, number), what)
                        loaded = None
            self.progress("entries", count)
            version += count
            if self.entries == before_window:  # a stray entry may be 10^19 versions further on
                version = max(version, min(self._next_known(version, sound), last))

    def _next_known(self, version: int, sound: Sound) -> int:
        """Returns the version before the next entry that was listed, or the version of the next sound
        checkpoint."""
        ends = [begin - 1 for begin, _ in self.runs if begin > version]
        return min((*ends, *(one for one in sound if one > version)), default=self.last)

    def _read(self, version: int) -> StoredEntry[Any] | Corrupt | None:
        try:
            return self.journal.read_stored(version)
        except Corrupt as error:
            return error

    def _is_of_another(self, version: int, checksum: int, restored: LoadedState[Any]) -> bool:
        """Returns whether a checkpoint was written after another entry than the entry of its version, whose
        checksum is given.

        If the next entry follows the entry with this checksum, the checkpoint is wrong.
        """
        differs = checksum and restored.checksum and checksum != restored.checksum
        return bool(differs) and self._next_follows(version, checksum) is not True

    def _next_follows(self, version: int, checksum: int) -> bool | None:
        """Returns whether the entry after a version follows the entry with the checksum; None if it does not
        say."""
        stored = self._read(version + 1)
        if not isinstance(stored, StoredEntry) or not stored.entry.previous:
            return None
        return stored.entry.previous == checksum

    def _replaced(self, version: int, what: str) -> Finding:
        where = naming.entry(self.journal.name, version)
        return self._finding("entry_replaced", where, f"another entry is in its place: {what}")

    def _missing(self, version: int, sound: Sound) -> Iterator[Finding]:
        """Yields one finding for a gap in the versions, at its first version."""
        ends = [begin - 1 for begin, _ in self.runs if begin > version]
        end = min(ends, default=self.last)
        begin = max([e + 1 for _, e in self.runs if e < version] + [self.marks.fence + 1])
        if version != begin:
            return
        readable = max((v for v in sound if v >= end), default=None)
        what = f"entry {version} is" if begin == end else f"the entries {begin} to {end} are"
        lost = (
            f"the revisions from {begin} to {end} cannot be read"
            if readable is not None
            else f"readers stop there, or see nothing after version {begin - 1}"
        )
        yield self._finding(
            "entry_missing", naming.entry(self.journal.name, version), f"{what} missing: {lost}"
        )

    def _difference(self, loaded: LoadedState[Any], stored: LoadedState[Any], *, since: int) -> str | None:
        assert self.journal.format is not None  # a checkpoint was restored by it
        if loaded.checksum and stored.checksum and loaded.checksum != stored.checksum:
            return f"it names another entry {loaded.version} than the one that version {loaded.version + 1} follows"
        if sorted(loaded.recent.items()) != sorted(stored.recent.items()):
            return "the recent ids are others than those of the entries"
        parts = (
            self.journal.format.parts(state, now=0.0, forget=0) for state in (loaded.state, stored.state)
        )
        return first_difference(*parts, since=since)
