"""Finds whether a pool's folder has a history, or only what a killed rebuild left.  Called by the rebuild and by
fsck."""

from __future__ import annotations

from lake_core import naming
from lake_core.store import Store
from log_lake.repair.rebuild_plan import VERSIONS_APART


def has_history(store: Store, pool_id: str) -> bool:
    """Whether the pool's journal has anything left besides hints and the checkpoint of a killed rebuild.

    Such a checkpoint has a version that a rebuild chooses, and no entry or fence beside it.
    """
    journal = naming.pool_journal(pool_id)
    hints = (naming.head(journal), naming.tail(journal))
    names = [info.name for info in store.list(journal) if info.name not in hints]
    return any((naming.checkpoint_version(name) or 1) % VERSIONS_APART for name in names)
