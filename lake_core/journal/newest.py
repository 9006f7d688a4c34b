"""Finds the end of a journal by a listing, without loading its state.

`newest_version` is for callers that only need to know whether something was written: one read of a hint and one
listing, however long the journal is (`lake.watch`).  A reader that reaches a missing entry uses `check_end` to
find out whether a later entry exists.
"""

from __future__ import annotations

from typing import Any

from lake_core import naming
from lake_core.journal.hints import read_head_hint
from lake_core.journal.link import missing
from lake_core.journal.loaded_state import LoadedState
from lake_core.journal.marks import marks_of
from lake_core.store import Store


def newest_version(store: Store, journal: str) -> int:
    """Returns the version of the last entry, or of the newest checkpoint if all entries are purged; 0 if there
    is neither.  Raises Unavailable."""
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


def check_end(store: Store, journal: str, newest: LoadedState[Any]) -> int:
    """Returns the newest fence.  Raises Corrupt if the entry after `newest` is missing and a later one exists.

    `newest` is the state after the last entry that was read.  A purge may have deleted the next one.  The
    listing shows entries before marks, and a purger puts a fence before it deletes an entry.  So if a purge has
    removed an entry from the listing, the listing shows its fence.  Raises Unavailable.
    """
    next_version, later, other_names = newest.version + 1, 0, []
    for info in store.list(journal, after=naming.entry(journal, newest.version)):
        number = naming.entry_version(info.name)
        if number is None or info.name != naming.entry(journal, number):
            other_names.append(info.name)
        else:
            later = later or number
    fence = marks_of(other_names).fence
    is_hole = later > next_version and fence <= newest.floor
    if is_hole and store.get(naming.entry(journal, next_version)) is None:
        raise missing(journal, next_version)
    return fence
