"""Putting one entry under its version, until the writer knows whose entry is there.

Rules 2 and 3 of `journal`.  If the answer of a put is lost, the writer repeats it with the same bytes until the
store says that the entry exists, and reads it back: it may be ours from an earlier try.  Reading our own bytes
is not enough, because a folder whose sync failed shows them too.  If the store says that the entry exists, but
does not return it, the writer asks again. If that happens again and again, the outcome is unknown.
"""

from __future__ import annotations

import enum
import logging

from lake_core import naming
from lake_core.errors import OutcomeUnknown, Unavailable
from lake_core.journal.link import StoredEntry
from lake_core.journal.loaded_state import E, LoadedState, S
from lake_core.journal.reader import JournalReader
from lake_core.store import Created
from lake_core.store.probe import DENIES

log = logging.getLogger(__name__)


NO_ANSWER = "the store gave no answer"


class PutOutcome(enum.Enum):
    """Whose entry a version has.  GONE: no writer's, because the version was purged."""

    OURS = "ours"
    OTHERS = "others"
    GONE = "gone"


def put_entry(journal: JournalReader[E, S], ours: StoredEntry[E], *, after: LoadedState[S]) -> PutOutcome:
    """Puts the entry that follows a state, and returns whose entry the version has; asks at most `retry.repeats`
    times.

    Raises Unavailable if nothing was written, OutcomeUnknown if an entry may have been written, and Corrupt if
    another writer's entry cannot be read.
    """
    version = after.version + 1
    name = naming.entry(journal.name, version)
    sent, problem = False, ""
    for attempt in range(journal.retry.repeats):
        try:
            created = journal.store.create(name, ours.data)
            if created is Created.YES:
                return PutOutcome.OURS
            sent = True  # EXISTS may be our own entry: a store's client repeats lost requests itself
            stored = journal.read(version)
            if (
                stored is not None and stored != ours.entry
            ):  # compared whole: our id may be in a combined entry
                return PutOutcome.OTHERS
            if stored is not None and created is Created.EXISTS:  # only this answer says that it is durable
                return PutOutcome.OURS
            if created is Created.EXISTS and journal.is_purged(version, after=after):
                return PutOutcome.GONE
            problem = DENIES if created is Created.EXISTS else NO_ANSWER
            log.info("%s: try %d of %d: %s", name, attempt + 1, journal.retry.repeats, problem)
        except Unavailable as error:
            if not sent:  # refused before anything was written
                raise
            problem = NO_ANSWER
            log.info(
                "%s: cannot be read back, try %d of %d: %s", name, attempt + 1, journal.retry.repeats, error
            )
        journal.retry.pause(attempt)
    raise OutcomeUnknown(
        f"{name}: {problem}; whether entry {ours.entry.id} was written is unknown after "
        f"{journal.retry.repeats} tries",
        entry_id=ours.entry.id,
        version=version,
    )
