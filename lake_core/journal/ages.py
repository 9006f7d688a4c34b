"""Finds which versions of a journal are old enough; one wrong time never makes a version seem older than it is.

Entries are written in the order of their versions.  So an object of the journal that is known to be old shows
that every version up to its own is at least as old.  Such an object is an entry, a checkpoint (written after
its version), or a fence (written after a checkpoint).  The store's clock dates them.  It may have been wrong
for a while: a machine before it asked for the time, a file that was restored from a backup.  So one old object
is no proof (decision 160):

- If an entry is young, no later version counts as old, whatever the times of later objects: the running maximum
  of the times counts.
- A version needs a second witness: the time that its author wrote, or, for a purged version, the reader's
  knowledge of that time.  If that time is unknown, a second old object at or after the version will do.
- If the author's time is young, older versions are checked, each twice as far back as the one before.
- A time in the future of the store is certainly wrong, and is ignored; so is such a time of an author.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from lake_core import naming
from lake_core.journal.journal import Journal
from lake_core.store import ObjectInfo

FUTURE = 3_600.0
"""Seconds by which an object's time may be later than the store's now: the object may have been written after now
was read."""

TOLERANCE = 60.0
"""Seconds by which an author's clock may be ahead and still confirm an age: some stores give times in whole
seconds."""


Authors = Callable[[int], float | None]
"""A function that returns the latest time that authors wrote at versions up to one, in seconds since 1970; None if
it is not known."""


def _unknown(version: int) -> None:
    return None


def oldest_safe(journal: Journal[Any, Any], *, before: float, now: float, authors: Authors = _unknown) -> int:
    """Returns the newest version that was certainly committed before a time of the store; 0 if there is none.

    `before` and `now` are in seconds since 1970, by the store.  `authors` returns the time that the author of a
    version wrote, for versions whose entry is purged.  Lists the journal, and reads one entry; if authors'
    clocks are ahead, some more (log2).  Raises Corrupt, Unavailable.
    """
    return oldest_safe_of(journal.store.list(journal.name), journal, before=before, now=now, authors=authors)


def oldest_safe_of(
    infos: Iterable[ObjectInfo],
    journal: Journal[Any, Any],
    *,
    before: float,
    now: float,
    authors: Authors = _unknown,
) -> int:
    """Returns the same as `oldest_safe`, from a listing of the journal's objects (`infos`)."""

    def authored(version: int) -> float | None:
        entry = journal.read(version)
        return authors(version) if entry is None else entry.written_at

    return proven(infos, authored, before=before, now=now)


def proven(infos: Iterable[ObjectInfo], authored: Authors, *, before: float, now: float) -> int:
    """Returns the newest version that the objects of a journal prove to be older than `before`; 0 if there is
    none.  `authored` returns the time that the author of a version wrote, or None if it is not known."""
    entries: list[tuple[int, float]] = []
    marks: list[int] = []
    for info in infos:
        if info.modified > now + FUTURE:
            continue
        version = naming.entry_version(info.name)
        if version is not None:
            entries.append((version, info.modified))
        elif info.modified <= before:
            mark = naming.checkpoint_version(info.name) or naming.fence_version(info.name)
            marks += [mark] if mark else []
    young = min((version for version, modified in entries if modified > before), default=None)
    old = [version for version, _ in entries] + marks
    witnesses = sorted((v for v in old if young is None or v < young), reverse=True)
    asked: set[int] = set()
    for at in (2**step - 1 for step in range(len(witnesses).bit_length())):
        version = witnesses[at]
        if version in asked:
            continue
        asked.add(version)
        time = authored(version)
        if time is not None and time <= before + TOLERANCE:
            return version
        is_seen_twice = version in witnesses[1:2] or at > 0
        if is_seen_twice and (time is None or time > now + FUTURE):
            return version
    return 0
