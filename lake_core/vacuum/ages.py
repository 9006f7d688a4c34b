"""Which versions of a pool, or of the list of pools, are old enough, by the clock of the store.

Entries are written in the order of their versions.  So an object of the journal that is known to be old proves that
every version up to its own is at least as old: an entry, a checkpoint (written after its version), a fence (after
a checkpoint).  Clocks of writers have no part in it.
"""

from __future__ import annotations

from collections.abc import Iterable

from lake_core import naming
from lake_core.history import History
from lake_core.store import ObjectInfo


def oldest_safe(history: History, *, before: float) -> int:
    """The greatest version that surely was committed before a time of the store, in seconds since 1970; 0: none.

    Lists the journal.  Raises Unavailable.
    """
    return oldest_safe_of(history.journal.store.list(history.journal.name), before=before)


def oldest_safe_of(infos: Iterable[ObjectInfo], *, before: float) -> int:
    """As `oldest_safe`, by the objects of a journal that were listed."""
    safe = 0
    for info in infos:
        if info.modified <= before:
            versions = (
                read(info.name)
                for read in (naming.entry_version, naming.checkpoint_version, naming.fence_version)
            )
            safe = max(safe, *(version or 0 for version in versions))
    return safe
