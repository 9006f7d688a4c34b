"""Links: each entry names the checksum of the one before it, so that no entry is replaced unnoticed (decision 64).

If an entry is lost, a writer that reads the journal up to the hole believes that its version is free, and puts
another entry there.  The later entries were decided after the lost one.  They name its checksum, so a reader
that folds them onto the other entry notices.

A checksum of 0 means that it is not known: for the first entry, in a lake of format version 1, and after a
checkpoint that does not have it (in a lake of version 1, or in a rebuilt pool).  An unknown checksum is not
checked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic

import msgspec

from lake_core import naming
from lake_core.errors import Corrupt, JournalLost
from lake_core.journal.loaded_state import E
from lake_core.records.codec import Codec, checksum_of


@dataclass(frozen=True)
class StoredEntry(Generic[E]):
    """An entry, its bytes as the store has them, and their checksum."""

    entry: E
    data: bytes
    checksum: int


def decode_stored(codec: Codec[E], data: bytes, *, name: str) -> StoredEntry[E]:
    """Returns the entry that these bytes hold; `name` is for the message.  Raises Corrupt."""
    return StoredEntry(codec.decode(data, name=name), data, checksum_of(data))


def encode_linked(codec: Codec[E], entry: E, *, previous: int) -> StoredEntry[E]:
    """Returns the stored form of an entry that follows the entry with the checksum `previous`.  Raises
    InvalidInput."""
    linked: Any = entry
    if codec.version >= 2:
        linked = msgspec.structs.replace(linked, previous=previous)
    data = codec.encode(linked)
    return StoredEntry(linked, data, checksum_of(data))


def fits(previous: int, checksum: int) -> bool:
    """Whether an entry that stores `previous` may follow the entry with this checksum."""
    return previous in (0, checksum) or not checksum


def check_link(previous: int, checksum: int, *, journal: str, version: int) -> None:
    """Raises Corrupt if the next entry stores another checksum than this one for its predecessor."""
    if not fits(previous, checksum):
        raise replaced(journal, version)


def replaced(journal: str, version: int) -> Corrupt:
    """Returns the error for a replaced entry: the next entry stores the checksum of another entry at this
    version."""
    return Corrupt(
        f"{naming.entry(journal, version)}: this entry is not the one that later versions rest on, which was lost; "
        f"{_ADVICE}"
    )


def missing(journal: str, version: int) -> Corrupt:
    """Returns the error for a version that has no entry although it is not purged."""
    return Corrupt(f"{naming.entry(journal, version)}: missing, and not purged; {_ADVICE}")


def lost(journal: str) -> JournalLost:
    """Returns the error for a journal that had entries, but has no entry, no checkpoint and no fence."""
    rebuild = "lake rebuild POOL"
    if journal == naming.POOLS_JOURNAL:
        rebuild = (
            "lake fsck names the folders of pools, and lake rebuild ID --name NAME lists each of them again"
        )
    return JournalLost(
        f"{journal}: this journal had entries, and all of it is gone; stop the writers, then put it back from a "
        f"backup; without one: {rebuild}"
    )


_ADVICE = (
    "stop the writers, then put the lost one back from a backup; without one: lake rebuild POOL --name NEW "
    "(lake fsck POOL says more)"
)
