"""What a listing says of a journal's end, without its state.

`newest_version` is for those who only ask whether there is news: one read of a hint and one listing, however long
the journal is (`lake.watch`).  `first_behind` shows a reader at a missing entry whether one stands behind it.
"""

from __future__ import annotations

from lake_core import naming
from lake_core.journal.hints import read_head_hint
from lake_core.journal.marks import marks_of
from lake_core.store import Store


def newest_version(store: Store, journal: str) -> int:
    """The version of the last entry; that of the newest checkpoint if all entries are purged; 0 if there is none.

    Raises Unavailable.
    """
    hint = read_head_hint(store, journal)
    if hint and store.get(naming.entry(journal, hint)) is None:  # purged, or the hint is garbage
        hint = 0
    newest, other_names = hint, []
    for info in store.list(journal, after=naming.entry(journal, hint) if hint else ""):
        version = naming.entry_version(info.name)
        if version is None:
            other_names.append(info.name)
        else:
            newest = max(newest, version)
    marks = marks_of(other_names)
    return max(newest, marks.fence, *(mark.version for mark in marks.checkpoints))


def first_behind(store: Store, journal: str, *, version: int) -> tuple[int, int]:
    """The version of the first entry behind `version`, 0 if there is none, and the newest fence; by one listing.

    The listing shows entries before marks, and a purger puts a fence before it deletes an entry.  So an entry that
    a purge has taken from the listing comes with its fence.  Raises Unavailable.
    """
    later, other_names = 0, []
    for info in store.list(journal, after=naming.entry(journal, version)):
        number = naming.entry_version(info.name)
        if number is None or info.name != naming.entry(journal, number):
            other_names.append(info.name)
        else:
            later = later or number
    return later, marks_of(other_names).fence
