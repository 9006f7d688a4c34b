"""Which versions of a pool, or of the list of pools, are old enough, by the clock of the store.

Entries are written in the order of their versions.  So an object of the journal that is known to be old proves that
every version up to its own is at least as old: an entry, a checkpoint (written after its version), a fence (after
a checkpoint).  Clocks of writers have no part in it.
"""

from __future__ import annotations

from lake_core import naming
from lake_core.catalog import Catalog
from lake_core.history import History


def oldest_safe(history: History | Catalog, *, before: float) -> int:
    """The greatest version that surely was committed before a time of the store, in seconds since 1970; 0: none.

    Lists the journal.  Raises Unavailable.
    """
    journal = history.journal
    safe = 0
    for info in journal.store.list(journal.name):
        if info.modified <= before:
            versions = (
                read(info.name)
                for read in (naming.entry_version, naming.checkpoint_version, naming.fence_version)
            )
            safe = max(safe, *(version or 0 for version in versions))
    return safe
