"""The extent of a journal, by the clock of the store: the time in which the journal certainly existed.

An object that no state knows may have been committed by an entry that was lost.  If the journal started again
after a loss, that entry was before its first one; if its end was lost, after its last one.  So an object that
was written before the first entry, or after the last, is no orphan.

Only a write to a branch shows that the journal continues, because a scan or a vacuum commits without any writer.
Called by the scan for orphans and by `lake fsck`.
"""

from __future__ import annotations

from dataclasses import dataclass

from lake_core import naming
from lake_core.history.history import History
from lake_core.history.state import PoolState


@dataclass(frozen=True)
class Extent:
    """The times, in seconds since 1970, of the oldest entry or mark (None if there is none) and of the newest
    write.

    `first` is 0 if the beginning was purged, because then nothing shows when the journal began.  `last` is 0 if
    no remaining write has a time.
    """

    first: float | None
    last: float

    def may_be_lost(self, modified: float) -> bool:
        """Whether a lost entry may have committed an object that was written at this time."""
        return self.first is None or modified < self.first or modified >= self.last


def journal_extent(history: History, state: PoolState) -> Extent:
    """Returns the extent of the journal with this newest state.  Lists the journal.  Raises Unavailable."""
    tip = max((branch.tip for branch in state.branches.values()), default=0)
    times: list[float] = []
    at_tip, marks, is_purged = 0.0, [], False
    for info in history.journal.store.list(history.journal.name):
        entry = naming.entry_version(info.name) if not naming.is_request(info.name) else None
        fence = naming.fence_version(info.name)
        mark = naming.checkpoint_version(info.name) or fence
        if entry is None and mark is None:
            continue
        times.append(info.modified)
        is_purged = is_purged or fence is not None
        if entry is not None and entry == tip:
            at_tip = info.modified
        if mark is not None and mark >= tip > 0:
            marks.append(info.modified)
    first = 0.0 if is_purged else min(times, default=None)
    return Extent(first, at_tip or min(marks, default=0.0))
