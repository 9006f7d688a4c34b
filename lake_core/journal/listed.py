"""One listing of a journal: the entries after a version, then the marks; and reading exactly those entries.

The listing shows entries before marks, and a purger puts a fence before it deletes an entry.  So if the listing
shows no fence above the version from which a reader folds, no entry above that version had been deleted when
the marks were listed.  Then the listed entries are those of the history, and the last of them was its end.

An entry may be purged between the listing and the read, and a stalled writer may then put another one under its
name.  The store therefore gives each object a tag, which changes with what is stored, and the reader takes an
entry only under the tag that was listed (`Store.get_listed`).  So no second listing is needed (decision 285).

Called by `reader`. If a function here returns None, the reader takes the slow way: it reads windows of entries,
and then lists.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice

from lake_core import naming
from lake_core.journal.fetching import ReadAll
from lake_core.journal.link import StoredEntry, decode_stored
from lake_core.journal.loaded_state import E, LoadedState, S
from lake_core.journal.marks import Marks, listed_marks
from lake_core.records.codec import Codec
from lake_core.store import ObjectInfo, Store

MOST = 1_000
"""Names of a listing, at most: one answer of S3.  A longer journal is listed from its checkpoint on."""

WINDOW = 64
"""Entries whose bytes are in memory at once, at most."""


@dataclass(frozen=True)
class Listing:
    """What one listing of a journal shows: its entries by version, and its marks."""

    entries: dict[int, ObjectInfo]
    marks: Marks

    def after(self, version: int, *, floor: int) -> list[ObjectInfo] | None:
        """Returns the entries above a version, up to the journal's end.  Returns None if some of them may have
        been purged, because a fence lies above `floor` or an entry is missing among them."""
        later = sorted(number for number in self.entries if number > version)
        if self.marks.fence > floor or later != list(range(version + 1, version + 1 + len(later))):
            return None
        return [self.entries[number] for number in later]


def list_after(store: Store, journal: str, version: int) -> Listing | None:
    """Returns the objects of a journal after the entry of a version (0: all), by one listing.  Returns None if
    there are more than one answer holds.  Raises Unavailable."""
    infos = list(islice(store.list(journal, after=naming.entry(journal, version) if version else ""), MOST))
    if len(infos) == MOST:
        return None
    entries = {number: info for info in infos if (number := _version_of(journal, info.name)) is not None}
    return Listing(entries, listed_marks(journal, infos))


def _version_of(journal: str, name: str) -> int | None:
    """Returns the version of an entry of this journal itself; other names may end like one."""
    version = naming.entry_version(name)
    return version if version is not None and name == naming.entry(journal, version) else None


def fold_listed(
    loaded: LoadedState[S],
    infos: Sequence[ObjectInfo],
    *,
    store: Store,
    codec: Codec[E],
    folded: Callable[[LoadedState[S], StoredEntry[E]], LoadedState[S]],
    fetch: ReadAll,
) -> LoadedState[S] | None:
    """Returns the state after these entries, which follow `loaded`; `fetch` reads several at once.

    Returns None if one of them was deleted, or if another object has its name.  Raises what `folded` raises,
    and Unavailable.
    """
    if not all(info.tag for info in infos):
        return None
    for at in range(0, len(infos), WINDOW):
        window = infos[at : at + WINDOW]
        entries = fetch(store.get_listed, window)
        if None in entries:
            return None
        for info, data in zip(window, entries, strict=True):
            loaded = folded(loaded, decode_stored(codec, data, name=info.name))
    return loaded
