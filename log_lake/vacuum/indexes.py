"""Index objects that nothing uses: of a rule that the pool has no more, or of a data object that is gone.

The vacuum deletes the index objects of a data object before the data object itself.  What this module finds was
left by a writer that stopped or was late, or by a rule that was changed or dropped.  Such an index may be deleted
at any time: no answer depends on one.
"""

from __future__ import annotations

import logging

from lake_core.history import PoolState
from lake_core.history.vacuuming import unlisted_objects
from lake_core.phrases import counted, human_size
from log_lake.fields.names import names_at
from log_lake.indexes.names import ListedIndex, list_indexes
from log_lake.indexes.rule import digests_of, rules_of
from log_lake.lake.pool import Pool
from log_lake.presence.roots import tagged_objects

log = logging.getLogger(__name__)


def unused_indexes(pool: Pool, state: PoolState) -> list[ListedIndex]:
    """Returns the index objects that nothing uses.  Sends one listing.  Raises Corrupt, Unavailable.

    A data object below the floor that the state does not name can never be committed, so its index is of no
    use.
    """
    listed = list(list_indexes(pool.store, pool.config.id))
    if not listed:
        return []
    rules = digests_of(names_at(state).stored_rules(rules_of(pool.config.settings)))
    old = {one.object_id for one in listed if one.object_id < state.removed.floor}
    unknown = unlisted_objects(state, old) - state.removed.vacuumed()
    unknown -= tagged_objects(pool.history, state, unknown, now=None)
    return [one for one in listed if one.digest not in rules or one.object_id in unknown]


def sweep_indexes(pool: Pool) -> int:
    """Deletes the index objects that nothing uses; returns their bytes.  Raises Corrupt, Unavailable."""
    unused = unused_indexes(pool, pool.history.load_open().state)
    size = sum(one.info.size for one in unused)
    if unused:
        pool.store.delete_all([one.info.name for one in unused])
        log.info(
            "%s: deleted %s, %s",
            pool.name,
            counted(len(unused), "unused index", "unused indexes"),
            human_size(size),
        )
    return size
