"""The note in a folder that is not in the list of pools, which says that the folder is not needed.

Such a folder is left over if a rebuild is killed, or if the list of pools was lost and the pool was rebuilt in
another folder.  Only `lake fsck` reads the note.  It has no effect if the list of pools is restored from a
backup.
"""

from __future__ import annotations

import msgspec

from lake_core import naming
from lake_core.catalog.state import PoolsState
from lake_core.context import Context
from lake_core.errors import Corrupt, InvalidInput, NotFound
from lake_core.ids import is_id
from lake_core.records.decoding import decoded_json
from lake_core.store import Store


class GivenUp(msgspec.Struct, frozen=True):
    """What the note says: who gave the folder up, when (seconds since 1970), and why."""

    author: str
    time: float
    why: str


def give_up(context: Context, pool_id: str, *, why: str) -> None:
    """Writes the note into the folder of the pool `pool_id`, unless the folder has one.  Raises Unavailable."""
    note = GivenUp(context.author, context.now(), why)
    context.store.create(naming.given_up(pool_id), msgspec.json.encode(note))


def give_up_unlisted(context: Context, state: PoolsState, pool_id: str) -> None:
    """Writes the note into a folder that is not in the list of pools.

    Raises NotFound if there is no such folder, InvalidInput if the list has the pool (or had it until the pool
    was dropped), and Unavailable.
    """
    if pool_id in state.pools:
        raise InvalidInput(f"{pool_id} is the folder of {state.pools[pool_id].name!r}; drop it by its name")
    if pool_id in state.dropped:
        raise InvalidInput(
            f"{pool_id} is the folder of a dropped pool; lake vacuum --dropped deletes it in time"
        )
    if not is_id(pool_id) or next(iter(context.store.list(pool_id)), None) is None:
        raise NotFound(f"{pool_id}: there is no such folder of a pool; lake fsck lists them")
    give_up(context, pool_id, why="it is not needed")


def read_given_up(store: Store, pool_id: str) -> GivenUp | None:
    """Returns the note in a pool's folder; None if the folder has none, or if it cannot be read.  Raises
    Unavailable."""
    try:
        data = store.get(naming.given_up(pool_id))
        note: GivenUp | None = None if data is None else decoded_json(data, GivenUp, name="given-up")
    except Corrupt:
        return None
    return note
