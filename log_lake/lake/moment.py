"""Several pools at one moment: each transaction over pools is seen in all of them, or in none.

Each pool is read at its newest state.  The state of a pool tells, for each other pool, the greatest version of a
pending entry of a transaction that is settled here (`PoolState.prepared`).  A pool that was read before that
version is read again.  So is one with a part that was undecided when it was read.  A read again only goes forward;
it ends when nothing changes.

Without transactions this is only: each pool as it was at some time during the read.
"""

from __future__ import annotations

from collections.abc import Sequence

from lake_core.errors import Conflict
from lake_core.history import PoolState
from lake_core.journal import LoadedState
from lake_core.phrases import counted
from log_lake.lake.pool import Pool

ROUNDS = 100
"""Times to read pools again.  One round is enough unless a transaction over these pools is committed during it."""

States = dict[str, LoadedState[PoolState]]


def states_at_one_moment(pools: Sequence[Pool]) -> States:
    """The newest state of each pool, by its id, all of one moment of the lake.

    Raises NotFound if one was dropped, Conflict if transactions are committed faster than this reads, Unavailable.
    """
    histories = {pool.config.id: pool.history for pool in pools}
    states = {id: history.load_open() for id, history in histories.items()}
    for _ in range(ROUNDS):
        again = [id for id, loaded in states.items() if id in _behind(states) or len(loaded.state.pending)]
        newer = {id: histories[id].load_open() for id in again} if len(states) > 1 else {}
        # a pool that stays behind has another journal now: it was rebuilt
        if all(_identity(newer[id]) == _identity(states[id]) for id in newer):
            return states
        states |= newer
    raise Conflict(
        f"transactions over these {counted(len(pools), 'pool')} are committed faster than they can be read "
        "together; try again"
    )


def _identity(loaded: LoadedState[PoolState]) -> tuple[int, frozenset[str]]:
    """What tells two states of a pool apart: one that shows a part without an entry has the same version."""
    return loaded.version, frozenset(loaded.state.pending.keys())


def _behind(states: States) -> list[str]:
    """The pools whose state is older than a transaction that another pool shows."""
    needed: dict[str, int] = {}
    for loaded in states.values():
        for id, version in loaded.state.prepared.items():
            needed[id] = max(needed.get(id, 0), version)
    return [id for id, loaded in states.items() if needed.get(id, 0) > loaded.version]
