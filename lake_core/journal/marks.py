"""The marks of a journal: its checkpoints and its fences, found by one listing.

    <journal>/marks/<n>.<id8>.checkpoint     the state after entry n
    <journal>/marks/<n>.fence                entries up to n are purged, or being purged

A purger puts a fence only when a checkpoint at or above it is durable.  An entry that is read or written at or
below the newest fence proves nothing: entries there are deleted, or were written after the deletion.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from lake_core import naming
from lake_core.store import ObjectInfo, Store


@dataclass(frozen=True)
class Mark:
    """A checkpoint: the version of its state, its name, and its size in bytes; the size is None if no listing
    showed it."""

    version: int
    name: str
    size: int | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Marks:
    """The checkpoints and fences of a journal: `checkpoints`, newest first; `fence`, the version of the newest
    fence, 0 if there is none."""

    checkpoints: tuple[Mark, ...] = ()
    fence: int = 0

    def usable(self, *, until: int | None = None) -> list[Mark]:
        """Returns the checkpoints at or above the fence and at or below `until`, newest first."""
        return [
            mark
            for mark in self.checkpoints
            if mark.version >= self.fence and (until is None or mark.version <= until)
        ]

    def at(self, version: int) -> list[Mark]:
        """Returns the checkpoints of exactly this version, including those below the fence."""
        return [mark for mark in self.checkpoints if mark.version == version]


def read_marks(store: Store, journal: str) -> Marks:
    """Returns the checkpoints and fences of a journal, by one listing; other names are ignored."""
    return listed_marks(journal, store.list(naming.marks(journal)))


def listed_marks(journal: str, infos: Iterable[ObjectInfo]) -> Marks:
    """Returns the checkpoints and fences of a journal among listed objects."""
    folder = f"{naming.marks(journal)}/"
    sizes = {info.name: info.size for info in infos if info.name.startswith(folder)}
    marks = marks_of(sizes)
    checkpoints = tuple(replace(mark, size=sizes[mark.name]) for mark in marks.checkpoints)
    return replace(marks, checkpoints=checkpoints)


def marks_of(names: Iterable[str]) -> Marks:
    """Returns the checkpoints and fences among these names; other names are ignored."""
    checkpoints, fence = [], 0
    for name in names:
        version = naming.checkpoint_version(name)
        if version is not None:
            checkpoints.append(Mark(version, name))
        fence = max(fence, naming.fence_version(name) or 0)
    return Marks(tuple(sorted(checkpoints, key=lambda mark: (-mark.version, mark.name))), fence)
