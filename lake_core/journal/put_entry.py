"""Putting one entry under its number, until it is known whose the number is.

Rules 2 and 3 of `journal`: a put whose answer is lost is repeated with the same bytes until the store says that it
exists, and read back; what exists may be ours from an earlier try.  To read our own bytes is not enough: a folder
whose sync failed shows them too.
"""

from __future__ import annotations

import enum

from lake_core import naming
from lake_core.errors import Corrupt, OutcomeUnknown, Unavailable
from lake_core.journal.loaded_state import E, S
from lake_core.journal.reader import JournalReader
from lake_core.store import Created


class PutOutcome(enum.Enum):
    """Whose the entry of a number is; GONE: nobody's, for the number had been purged."""

    OURS = "ours"
    OTHERS = "others"
    GONE = "gone"


def put_entry(journal: JournalReader[E, S], version: int, entry: E) -> PutOutcome:
    """Put entry `n`; asks whose it is until the answer is known, within bounds.

    Raises Unavailable only where nothing was written, else OutcomeUnknown; Corrupt.
    """
    name, data = naming.entry(journal.name, version), journal.codec.encode(entry)
    sent = False
    for attempt in range(journal.retry.repeats):
        try:
            created = journal.store.create(name, data)
            if created is Created.YES:
                return PutOutcome.OURS
            sent = True  # even what exists may be ours: a store's client repeats lost requests itself
            there = journal.read(version)
            if there is not None and there != entry:  # the same id may have been sent before, beside others
                return PutOutcome.OTHERS
            if there is not None and created is Created.EXISTS:  # only this answer says that it is durable
                return PutOutcome.OURS
            if created is Created.EXISTS:
                if journal.is_purged(version):
                    return PutOutcome.GONE
                raise Corrupt(f"{name}: the store says that it exists, and does not give it")
        except Unavailable:
            if not sent:  # refused before anything was written
                raise
        journal.retry.pause(attempt)
    raise OutcomeUnknown(
        f"{name}: the store gave no answer in {journal.retry.repeats} tries; whether the "
        f"entry {entry.id} was written is unknown",
        entry_id=entry.id,
        version=version,
    )
