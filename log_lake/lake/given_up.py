"""The note in a folder that is not in the list of pools, which says that the folder is not needed.

Such a folder is left over if a rebuild is killed, or if the list of pools was lost and the pool was rebuilt in
another folder.  Only `lake fsck` reads the note.  It has no effect if the list of pools is restored from a
backup.
"""

from __future__ import annotations

import msgspec

from lake_core import naming
from lake_core.context import Context
from lake_core.errors import Corrupt
from lake_core.records.decoding import decoded_json
from lake_core.store import Store


class GivenUp(msgspec.Struct, frozen=True):
    """The person who gave the folder up, when (seconds since 1970), and why."""

    author: str
    time: float
    why: str


def give_up(context: Context, pool_id: str, *, why: str) -> None:
    """Writes the note, unless there is one.  Raises Unavailable."""
    note = GivenUp(context.author, context.now(), why)
    context.store.create(naming.given_up(pool_id), msgspec.json.encode(note))


def read_given_up(store: Store, pool_id: str) -> GivenUp | None:
    """The note; None if there is none, or if it cannot be read.  Raises Unavailable."""
    try:
        data = store.get(naming.given_up(pool_id))
        note: GivenUp | None = None if data is None else decoded_json(data, GivenUp, name="given-up")
    except Corrupt:
        return None
    return note
