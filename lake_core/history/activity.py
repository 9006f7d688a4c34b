"""Activity notes: `activity/<pool id>`, an object that says that a writer is working on the pool.

Agents and triggers watch many pools.  They list the notes, one request for a thousand pools, and skip the pools
to which nothing was written since they last read them. The time of a note is the time at which the store says
that it was written.

A writer writes the note before it commits, and again after `RENEW` seconds.  If `RENEW` seconds pass during a
commit, it writes the note after the commit too.  So every entry is at most `RENEW` seconds younger than its
pool's note.  A reader that read the pool more than `RENEW` seconds after the note, and `SKEW` for the
difference of clocks, has seen the entry.

A note is a hint.  It may be missing, because the store refused it, or stale, because a writer was killed after
a commit that took more than `RENEW` seconds.  A pool without a note is always read, and every reader reads all
pools from time to time.  If the store refuses a note, the writer deletes the older note, which would wrongly
say that nothing was written.  If the store refuses that too, the writer logs a warning.

Writers: `History.commit`, `erasure.receipt`, `repair.rebuild`; `agents.quiet` for pools that have no note.
Readers: `agents.quiet`, `lake.watch`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from lake_core import naming
from lake_core.errors import Unavailable
from lake_core.store import Store

log = logging.getLogger(__name__)

RENEW = 300.0
"""Seconds for which one activity note covers a writer's commits."""

SKEW = 900.0
"""Seconds by which the clocks of a reader and of the store may differ; S3 refuses requests beyond that."""

PAGE, READS_A_PAGE = 1_000, 12
"""Names in one answer of a listing, and how many reads cost as much as a listing, by the prices of S3."""


class ActivityNote:
    """The activity note of one pool, as one writer keeps it; `clock` gives seconds since 1970."""

    def __init__(self, store: Store, pool_id: str, clock: Callable[[], float]) -> None:
        self._store, self._pool_id, self._clock = store, pool_id, clock
        self._written: float | None = None
        self._has_warned = False
        self._kept_by_store: Unavailable | None = None
        self.refusal: Unavailable | None = None
        """Why the store did not take the note when it was written last; None if it did."""

    def keep(self) -> bool:
        """Writes the note unless a recent one exists.  Returns whether one exists now.  If the store refuses,
        the next call tries again."""
        now = self._clock()
        if self._written is None or abs(now - self._written) >= RENEW:
            self.refusal = write_note(self._store, self._pool_id)
            self._written = now if self.refusal is None else None
            if self.refusal is not None:
                self._withdraw()
        return self._written is not None

    def _withdraw(self) -> None:
        """Deletes the note, so that agents read the pool."""
        self._kept_by_store = None
        try:
            self._store.delete(naming.activity(self._pool_id))
        except Unavailable as error:
            self._kept_by_store = error

    def warn(self) -> None:
        """Logs a warning if the store refused to delete an older note; only the first time. A writer calls this
        after each write."""
        if self._kept_by_store is not None and not self._has_warned:
            log.warning(
                "%s: this note of the pool can be neither written nor deleted, so agents may look at it up to a "
                "day late; grant its writers the right to write it: %s",
                naming.activity(self._pool_id),
                self._kept_by_store,
            )
            self._has_warned = True


def write_note(store: Store, pool_id: str) -> Unavailable | None:
    """Writes the note of a pool now.  Returns the error if the store refuses it, otherwise None."""
    try:
        store.put(naming.activity(pool_id), b"\n", durable=True)
    except Unavailable as error:
        return error
    return None


def read_notes(store: Store) -> dict[str, float] | None:
    """Returns, by pool id, when each note was written, in seconds since 1970 by the store's clock.  Returns
    None if they cannot be read: then every pool must be read."""
    try:
        return {naming.noted_pool(info.name): info.modified for info in store.list(naming.ACTIVITY)}
    except Unavailable as error:
        log.warning("the activity notes cannot be read: %s; looks at every pool", error)
        return None


def listing_pays(*, reads: int, notes: int) -> bool:
    """Whether listing this many notes costs less than this many reads."""
    return reads > READS_A_PAGE * (notes // PAGE + 1)


def is_quiet(notes: Mapping[str, float], pool_id: str, *, since: float) -> bool:
    """Whether nothing was written to the pool after `since`, the time in seconds since 1970 at which the caller
    read the pool.  `notes` must be read after that time."""
    written = notes.get(pool_id)
    return written is not None and written + RENEW + SKEW <= since
