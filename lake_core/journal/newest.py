"""The version of a journal's last entry, without its state: for those who only ask whether there is news.

One read of a hint and one listing, however long the journal is.  Caller: `lake.watch`.
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
