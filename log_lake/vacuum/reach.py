"""Which versions of a pool can still be restored, and until when: for `lake show`.

A revision is complete from the horizon on, and readable if its entries are not purged.  A removed object stays
on the store until the vacuum deletes it: not before `vacuum.grace` and `history.keep` are over.  The times here
are those of the transactions, by their writers' clocks; the vacuum itself uses the store's clock (`ages`).
"""

from __future__ import annotations

from dataclasses import dataclass

from log_lake.lake.pool import Pool


@dataclass(frozen=True)
class Reach:
    """What can be restored: the versions from `oldest` on are complete and readable.

    `objects` removed objects, of `size` bytes, can be restored.  A vacuum may delete the first of them at
    `first`, the last at `last`, in seconds since 1970; None if there is none.
    """

    oldest: int
    objects: int = 0
    size: int = 0
    first: float | None = None
    last: float | None = None


def reach(pool: Pool) -> Reach:
    """Returns the versions of the pool that can be restored now.  Reads the list of removed objects once.  Raises
    Corrupt, Unavailable."""
    state = pool.history.load_open().state
    marks = pool.history.journal.marks()
    kept = min((mark.version for mark in marks.usable()), default=1) if marks.fence else 1
    objects = size = 0
    first = last = 0
    for _, removal in state.removed.items():
        if removal.version:  # otherwise it was never committed: there is nothing to come back
            objects, size = objects + 1, size + removal.size
            first = min(first or removal.time, removal.time)
            last = max(last, removal.time)
    oldest = max(kept, state.removed.horizon)
    if not objects:
        return Reach(oldest)
    age = max(pool.settings["vacuum.grace"], pool.settings["history.keep"])
    return Reach(oldest, objects, size, first / 1e6 + age, last / 1e6 + age)
