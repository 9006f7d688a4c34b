"""What is wrong with a journal: its entries, checkpoints, fences and hints.

One listing shows what is there.  The entries above the newest fence are then folded, from the first one or from
each sound checkpoint, and every checkpoint on the way is compared with the fold.  A checkpoint on which the fold
begins can be compared with itself only.

Others may commit and purge meanwhile.  Hints are read before the listing, since they never run ahead of the
entries; what is missing counts only if no newer fence explains it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from typing import Any

from lake_core import naming
from lake_core.checkpoints import CheckpointFile
from lake_core.errors import CheckpointGone, Corrupt, InvalidInput
from lake_core.journal import LoadedState
from lake_core.journal.hints import MAX_DIGITS
from lake_core.journal.marks import Mark, Marks, marks_of
from lake_core.journal.reader import LARGEST_WINDOW, JournalReader
from lake_core.repair.check_checkpoint import lies_of_checkpoint
from lake_core.repair.compare import first_difference
from lake_core.repair.finding import Finding, finding
from lake_core.store import ObjectInfo

Sound = dict[int, list[Mark]]
"""Checkpoints that can be read whole, by version."""


@dataclass
class JournalCheck:
    """Checks one journal.  `runs` are the versions that have entries, as ranges with inclusive ends.

    `on_base` is called with each state on which the fold begins, `on_entry` with each entry; the caller learns from
    them what the history refers to.  `damaged` says afterwards whether part of the history could not be read.
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
        """Everything that is wrong.  Raises Unavailable."""
        hints = {name: self.journal.store.get(name) for name in self._hint_names()}
        yield from self._list()
        sound = yield from self._sound_checkpoints()
        yield from self._fence(sound)
        yield from self._hints(hints)
        yield from self._fold(sound)

    def _finding(self, kind: str, where: str, what: str) -> Finding:
        self.damaged = self.damaged or kind in ("entry_missing", "entry_damaged")
        return finding(kind, pool=self.pool, where=where, what=what)

    def _hint_names(self) -> tuple[str, str]:
        return naming.head(self.journal.name), naming.tail(self.journal.name)

    def _list(self) -> Iterator[Finding]:
        marks: list[str] = []
        for info in self.journal.store.list(self.journal.name):
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
        kept = self._kept()
        for mark in self.marks.checkpoints:
            if mark.version < self.marks.fence and mark.version not in kept:
                yield self._finding("entry_leftover", mark.name, "a checkpoint below the fence")
        for begin, end in self.runs:
            if begin <= self.marks.fence:
                until = min(end, self.marks.fence)
                where = naming.entry(self.journal.name, begin)
                yield self._finding("entry_leftover", where, f"the entries {begin} to {until} are purged")

    def _kept(self) -> frozenset[int]:
        """The versions whose checkpoints tags hold; none if the journal cannot be read."""
        try:
            return self.journal.kept(self.journal.load().state)
        except Corrupt:
            return frozenset()

    def _sound_checkpoints(self) -> Generator[Finding, None, Sound]:
        """Findings about checkpoints alone; returns the sound ones by version."""
        sound: Sound = {}
        for mark in reversed(self.marks.usable()):
            self.progress("checkpoints", 1)
            self.checkpoints += 1
            try:
                file = CheckpointFile(self.journal.store, mark.name)
                file.verify()
                self.journal.restore(mark)
                lies = list(lies_of_checkpoint(file))
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
        since = 0
        if not version:
            loaded = LoadedState(0, self.journal.initial)
            self.on_base(loaded.state)
        while True:  # bounded by the versions up to `last`
            for mark in sound.get(version, ()):
                try:
                    restored = self.journal.restore(mark)
                    if loaded is None:
                        loaded, since = restored, version
                        self.on_base(loaded.state)
                        continue
                    what = self._difference(loaded, restored, since=since)
                except CheckpointGone:  # purged meanwhile
                    continue
                if what is not None:
                    yield self._finding("checkpoint_differs", mark.name, what)
            if version >= last:
                return
            count = min(LARGEST_WINDOW, last - version, *(v - version for v in sound if v > version))
            versions = range(version + 1, version + count + 1)
            for number, entry in zip(versions, self.journal.read_all(self._read, versions), strict=True):
                if isinstance(entry, Corrupt):
                    yield self._finding("entry_damaged", naming.entry(self.journal.name, number), str(entry))
                    loaded = None
                elif entry is None:
                    loaded = None
                    if number > self.journal.marks().fence:
                        yield from self._missing(number, sound)
                else:
                    self.entries += 1
                    self.on_entry(entry)
                    try:
                        loaded = loaded and self.journal.folded(loaded, entry)
                    except (Corrupt, InvalidInput) as error:
                        what = f"the entry does not fit the ones before: {error}"
                        yield self._finding("entry_damaged", naming.entry(self.journal.name, number), what)
                        loaded = None
            self.progress("entries", count)
            version += count

    def _read(self, version: int) -> Any:
        try:
            return self.journal.read(version)
        except Corrupt as error:
            return error

    def _missing(self, version: int, sound: Sound) -> Iterator[Finding]:
        """One finding for a gap, at its first version."""
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
            else f"readers see nothing after version {begin - 1}"
        )
        yield self._finding(
            "entry_missing", naming.entry(self.journal.name, version), f"{what} missing: {lost}"
        )

    def _difference(self, loaded: LoadedState[Any], stored: LoadedState[Any], *, since: int) -> str | None:
        assert self.journal.format is not None  # a checkpoint was restored by it
        if sorted(loaded.recent.items()) != sorted(stored.recent.items()):
            return "the recent ids are others than those of the entries"
        parts = (self.journal.format.parts(state, now=0.0) for state in (loaded.state, stored.state))
        return first_difference(*parts, since=since)
