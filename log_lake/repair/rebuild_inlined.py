"""The inlined objects that are left in a pool's journal, for a rebuild.

A rebuild makes a new journal of data objects alone, because the old one is lost or damaged.  The bytes of small
loads lie in its entries and checkpoints.  A rebuild copies what can be read of these into the new pool, as objects.
It passes over entries that cannot be read; `lake fsck` names them.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterator

from lake_core.errors import CheckpointDamaged, CheckpointGone, Corrupt
from lake_core.history import History
from lake_core.ids import id_seconds
from lake_core.journal import windows
from lake_core.keys.spec import ARRIVAL
from lake_core.records import AddObject, PutReference
from lake_core.store import Store
from log_lake.objects.located import Locates
from log_lake.repair.rebuild_candidate import Candidate

log = logging.getLogger(__name__)


def inlined_candidates(store: Store, pool_id: str) -> Iterator[Candidate]:
    """Yields the inlined objects of all entries and checkpoints that can be read, each once.  Raises
    Unavailable."""
    history = History(
        store, pool_id=pool_id, key=ARRIVAL, clock=lambda: 0.0, gated=False
    )  # nothing is committed
    seen: set[str] = set()
    for one in itertools.chain(_of_entries(history), _of_checkpoints(history)):
        if one.data and one.object not in seen:
            seen.add(one.object)
            yield Candidate(one.object, len(one.data), id_seconds(one.object), data=one.data)


def _of_entries(history: History) -> Iterator[Locates]:
    for version, stored in windows.stored(history.journal):
        if isinstance(stored, Corrupt):
            log.warning("%s: entry %d is passed over: %s", history.journal.name, version, stored)
            continue
        actions = (action for transaction in stored.entry.transactions for action in transaction.actions)
        yield from (action for action in actions if isinstance(action, AddObject | PutReference))


def _of_checkpoints(history: History) -> Iterator[Locates]:
    for mark in history.journal.marks().checkpoints:
        try:
            state = history.journal.restore(mark).state
            for _, branch in state.branches.items():
                yield from branch.snapshot.all()
        except (Corrupt, CheckpointDamaged, CheckpointGone) as error:
            log.warning("%s: passed over: %s", mark.name, error)
