"""HEAD and TAIL, hints at where the journal ends and begins; and the sign, an object which says that the journal
has had entries.

Writers overwrite them without conditions, so a hint may be missing, stale or garbage.  A reader uses HEAD only
to read several entries at once.  The end of a journal is always the first entry that is missing.

The sign (`naming.begun`) lies beside the journal's folder, which may be lost.  A reader that finds neither
entries nor marks looks for the sign.  If it exists, the journal is lost, not empty.  The writer of the first
entry writes it, and so does every writer of a checkpoint, since the first writer may die before.
"""

from __future__ import annotations

import contextlib

from lake_core import naming
from lake_core.errors import Unavailable
from lake_core.store import Store

MAX_DIGITS = 20
"""The most digits of a version in the name of an entry."""


def read_head_hint(store: Store, journal: str) -> int:
    """Returns the version of the last entry according to HEAD; 0 if HEAD is missing or not a number."""
    try:
        text = store.get(naming.head(journal)) or b""
    except Unavailable:
        return 0
    return int(text) if text.isdigit() and len(text) <= MAX_DIGITS else 0


def write_head_hint(store: Store, journal: str, version: int) -> None:
    """Writes the hint HEAD. If the store refuses, nothing is lost."""
    with contextlib.suppress(Unavailable):
        store.put(naming.head(journal), str(version).encode())


def write_begun(store: Store, journal: str) -> None:
    """Writes the sign that the journal has had entries.  If the store refuses, the writer of the next checkpoint
    tries again."""
    with contextlib.suppress(Unavailable):
        store.put(naming.begun(journal), b"\n", durable=True)


def is_begun(store: Store, journal: str) -> bool:
    """Whether the journal has the sign that it has had entries.  Raises Unavailable."""
    return store.get(naming.begun(journal)) is not None


def forget_begun(store: Store, journal: str) -> None:
    """Deletes the sign, so that a lost journal can start again.  Raises Unavailable."""
    store.delete(naming.begun(journal))


def write_tail_hint(store: Store, journal: str, version: int) -> None:
    """Writes TAIL, the version of the first entry that is not purged; if the store refuses, nothing is lost."""
    with contextlib.suppress(Unavailable):
        rewrite_tail_hint(store, journal, version)


def rewrite_tail_hint(store: Store, journal: str, version: int) -> None:
    """Writes TAIL again, so that its time shows the store's clock.  Raises Unavailable."""
    store.put(naming.tail(journal), str(version).encode())
