"""Reads the entries of a journal in windows: several at once, each checked against its neighbours.

Called by `reader`, whose `read_stored` reads one entry, and (`stored` alone) by erasures and rebuilds.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Protocol, TypeVar

from lake_core import naming
from lake_core.errors import Corrupt, NotFound
from lake_core.journal.fetching import ReadAll, while_there
from lake_core.journal.link import StoredEntry, check_link, missing
from lake_core.journal.loaded_state import HasId
from lake_core.journal.marks import Marks
from lake_core.store import Store

LARGEST_WINDOW = 64
"""The most entries that are read at once: the window doubles up to this while entries are found."""

E = TypeVar("E", bound=HasId)


class Entries(Protocol[E]):
    """A journal whose entries can be read one by one."""

    @property
    def store(self) -> Store: ...

    @property
    def name(self) -> str: ...

    @property
    def fetch(self) -> ReadAll: ...

    def read_stored(self, version: int) -> StoredEntry[E] | None:
        """Returns the entry of a version; None if it does not exist or is purged.  Raises Corrupt, Unavailable."""

    def marks(self) -> Marks:
        """Returns the checkpoints and the newest fence of the journal."""


def backwards(journal: Entries[E], newest: int, *, checksum: int) -> Iterator[tuple[int, E]]:
    """Yields versions and their entries, from `newest` back to the newest fence; `checksum` is that of the
    entry `newest`.  Raises Corrupt, Unavailable."""
    version, window, previous = newest, 1, checksum
    fence = journal.marks().fence
    while version > fence:
        versions = range(version, max(fence, version - window), -1)
        entries = journal.fetch(journal.read_stored, versions)
        fence = journal.marks().fence  # an entry read at or below it may never have been in the history
        for version, stored in zip(versions, entries, strict=True):
            if version <= fence:
                return
            if stored is None:
                raise missing(journal.name, version)
            check_link(previous, stored.checksum, journal=journal.name, version=version)
            previous = stored.entry.previous
            yield version, stored.entry
        version, window = version - 1, min(LARGEST_WINDOW, window * 2)


def between(journal: Entries[E], after: int, until: int) -> Iterator[tuple[int, E]]:
    """Yields versions above `after` (exclusive) up to `until` (inclusive) and their entries, oldest first.
    Raises NotFound if one of them is purged, Corrupt if one is missing, and Unavailable."""
    checksum = 0
    while after < until:  # bounded by the versions asked for
        versions = range(after + 1, min(until, after + LARGEST_WINDOW) + 1)
        entries = journal.fetch(journal.read_stored, versions)
        fence = journal.marks().fence  # an entry read at or below it may never have been in the history
        if fence > after:
            raise NotFound(f"version {after + 1} is purged: the history begins after {fence}")
        for version, stored in zip(versions, entries, strict=True):
            if stored is None:
                raise missing(journal.name, version)
            check_link(stored.entry.previous, checksum, journal=journal.name, version=version - 1)
            checksum = stored.checksum
            yield version, stored.entry
        after = versions[-1]


def read_window(journal: Entries[E], first: int, count: int) -> list[StoredEntry[E]]:
    """Returns at most `count` entries from version `first` on, up to the first missing one.  Raises Corrupt if
    an entry after the missing one exists, because then an entry is lost.  Raises Unavailable."""
    versions = range(first, first + count)
    if journal.store.local_path(journal.name) is not None:
        entries = list(while_there(map(journal.read_stored, versions)))
        end = first + len(entries)
        is_hole = len(entries) < count and journal.store.get(naming.entry(journal.name, end + 1)) is not None
    else:
        window = journal.fetch(journal.read_stored, versions)
        entries = list(while_there(window))
        end = first + len(entries)
        is_hole = any(stored is not None for stored in window[len(entries) :])
    if is_hole and journal.store.get(naming.entry(journal.name, end)) is None:
        raise missing(journal.name, end)
    return entries


def stored(
    journal: Entries[E], *, until: int | None = None
) -> Iterator[tuple[int, StoredEntry[E] | Corrupt]]:
    """Yields the entries that the store lists, with their versions, up to `until` (inclusive; None: all).

    This includes entries below a fence or behind a hole.  In place of an entry that cannot be decoded it yields
    the error.  Raises Unavailable.
    """

    def read(version: int) -> StoredEntry[E] | Corrupt | None:
        try:
            return journal.read_stored(version)
        except Corrupt as error:
            return error

    listed = (naming.entry_version(info.name) for info in journal.store.list(journal.name))
    versions = (version for version in listed if version is not None and (until is None or version <= until))
    while batch := list(islice(versions, LARGEST_WINDOW)):  # bounded by the entries
        for version, one in zip(batch, journal.fetch(read, batch), strict=True):
            if one is not None:  # otherwise a purge was faster
                yield version, one
