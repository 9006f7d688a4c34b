"""HEAD and TAIL: where the journal ended and began when somebody last wrote them down.

They are written without conditions and may be missing, stale or garbage; a reader uses them only to ask for
several entries at once.  Whatever they say, the end of a journal is the first entry that is missing.
"""

from __future__ import annotations

import contextlib

from lake_core import naming
from lake_core.errors import Unavailable
from lake_core.store import Store

_LONGEST = 20


def read_head_hint(store: Store, journal: str) -> int:
    """The hinted last entry; 0 where the hint says nothing that could be one."""
    try:
        text = store.get(naming.head(journal)) or b""
    except Unavailable:
        return 0
    return int(text) if text.isdigit() and len(text) <= _LONGEST else 0


def write_head_hint(store: Store, journal: str, version: int) -> None:
    """Leave a hint; a store that does not take it loses nothing."""
    with contextlib.suppress(Unavailable):
        store.put(naming.head(journal), str(version).encode())


def write_tail_hint(store: Store, journal: str, version: int) -> None:
    """Leave a hint of the first entry that is still there."""
    with contextlib.suppress(Unavailable):
        store.put(naming.tail(journal), str(version).encode())
