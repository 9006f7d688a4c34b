"""The names of fields that are left in a pool's journal, for a rebuild.

Objects have stored names; which names readers see is in the journal alone.  A rebuild takes them from the newest
checkpoint and the later entries that can be read.  If nothing of the journal is left, readers see stored names.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable

import pyarrow as pa

from lake_core.errors import CheckpointDamaged, CheckpointGone, Corrupt
from lake_core.history import History, PoolState
from lake_core.history.renaming import edited
from lake_core.journal import windows
from lake_core.keys.spec import ARRIVAL
from lake_core.records.transactions import sequence
from lake_core.store import Store

log = logging.getLogger(__name__)

_FRESH = re.compile(r"~\d+$")
"""The ending of the stored name of a field that took the name of an earlier field."""


def names_left(store: Store, pool_id: str) -> PoolState:
    """Returns a state with the stored names of names, and with added fields, as far as the journal can be read.
    Raises Unavailable."""
    history = History(
        store, pool_id=pool_id, key=ARRIVAL, clock=lambda: 0.0, gated=False
    )  # nothing is committed
    left = PoolState()
    since = 0
    for mark in sorted(history.journal.marks().checkpoints, key=lambda mark: mark.version):
        try:
            left, since = history.journal.restore(mark).state, mark.version
        except (Corrupt, CheckpointDamaged, CheckpointGone) as error:
            log.warning("%s: passed over: %s", mark.name, error)
    for version, stored in windows.stored(history.journal):
        if version <= since or isinstance(stored, Corrupt):
            continue
        index = 0
        for transaction in stored.entry.transactions:
            left = edited(left, sequence(version, index), transaction.actions)
            index += transaction.width
    return left


def lost_names(left: PoolState, schemas: Iterable[pa.Schema]) -> str:
    """Returns a line if the objects show that fields were renamed or dropped, and the journal does not; otherwise
    ""."""
    fresh = sorted({name for schema in schemas for name in schema.names if _FRESH.search(name)})
    if not fresh or len(left.stored):
        return ""
    return (
        f"fields were renamed or dropped, and what is left of the journal does not say how: readers see stored "
        f"names, such as {fresh[0]!r}; rename these (lake fields POOL rename OLD NEW)"
    )
