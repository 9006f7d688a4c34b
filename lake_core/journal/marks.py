"""The marks of a journal: its checkpoints and its fences, found by one listing.

    <journal>/marks/<n>.<id8>.checkpoint     the state after entry n, as somebody folded it
    <journal>/marks/<n>.fence                entries up to n are purged, or being purged

A fence is put only when a checkpoint at or above it is durable.  Whoever read or wrote below the newest fence
knows nothing: entries there are gone, or were written after they had gone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lake_core import naming
from lake_core.store import Store


@dataclass(frozen=True)
class Mark:
    """A checkpoint: the entry whose state it holds, and its name."""

    version: int
    name: str


@dataclass(frozen=True)
class Marks:
    """`checkpoints` newest first; `fence` is the newest one, 0 where there is none."""

    checkpoints: tuple[Mark, ...] = ()
    fence: int = 0

    def usable(self, *, until: int | None = None) -> list[Mark]:
        """Checkpoints from which the journal can be followed, newest first; of entries up to `until`."""
        return [
            c for c in self.checkpoints if c.version >= self.fence and (until is None or c.version <= until)
        ]


def read_marks(store: Store, journal: str) -> Marks:
    """One listing.  Names that are no marks are passed by."""
    return marks_of(info.name for info in store.list(naming.marks(journal)))


def marks_of(names: Iterable[str]) -> Marks:
    """The marks among the names."""
    checkpoints, fence = [], 0
    for name in names:
        version = naming.checkpoint_version(name)
        if version is not None:
            checkpoints.append(Mark(version, name))
        fence = max(fence, naming.fence_version(name) or 0)
    return Marks(tuple(sorted(checkpoints, key=lambda c: (-c.version, c.name))), fence)
