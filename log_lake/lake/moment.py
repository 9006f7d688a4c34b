"""Reads several pools at one moment: each transaction over pools is seen in all of them, or in none.

Each pool is read at its newest state.  When a pool settles a transaction, its state notes the version of the
pending entry in each other pool, the greatest one for each (`PoolState.prepared`).  A pool that was read at an
older version than noted is read again.  A pool with a part that was undecided when it was read is also read
again.  Each read returns the same or a newer state; the reading ends when no pool must be read again.

Without transactions over pools, this shows each pool as it was at some time during the read.

At a past time the cut of each pool is its last transaction at or before the time.  A transaction over pools
counts as committed by that time if one of these pools had settled it by then (decision 432).  A pool whose cut
is before its pending entry is then read at that entry; a pool in which the part was pending is shown with it.
So no later write is included.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lake_core.errors import Conflict, NotFound
from lake_core.history import PoolState
from lake_core.history.history import History
from lake_core.history.transactions.decisions import Decision
from lake_core.journal import LoadedState
from lake_core.phrases import counted
from lake_core.records import Settle
from log_lake.lake.named import state_at_time
from log_lake.lake.pool import Pool
from log_lake.lake.view import View

ROUNDS = 100
"""How often pools are read again.  One round is enough unless a transaction over these pools is committed during
it."""

States = dict[str, LoadedState[PoolState]]


def states_at_one_moment(pools: Sequence[Pool]) -> States:
    """Returns the newest state of each pool, by its id, all of one moment of the lake.

    Raises NotFound if a pool was dropped, Conflict if transactions are committed faster than this reads, and
    Unavailable.
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


def states_at_time(pools: Sequence[Pool], time: str) -> States:
    """Returns the state of each pool at a past time, by its id; each transaction over pools is in all of them, or
    in none.

    `time` is in ISO 8601.  Raises NotFound (a pool had no transaction yet), InvalidInput, Unavailable.
    """
    histories = {pool.config.id: pool.history for pool in pools}
    cuts: States = {}
    for pool in pools:
        pool.history.load_open()
        try:
            cuts[pool.config.id] = state_at_time(pool.history, time)
        except NotFound as error:
            error.args = (f"pool {pool.name!r}: {error}",)
            raise
    seen: dict[str, Decision] = {}
    while True:  # cuts only go forward, and the journals have an end
        states = {id: histories[id].with_committed(cut, sorted(seen.items())) for id, cut in cuts.items()}
        if behind := _behind(states):
            needed = max(states[id].state.prepared.get(behind[0], 0) for id in states)
            cuts[behind[0]] = histories[behind[0]].load_version(needed)
        elif others := _seen_elsewhere(states, histories):
            seen |= others
        else:
            return states


def _seen_elsewhere(states: States, histories: Mapping[str, History]) -> dict[str, Decision]:
    """Returns the transactions that are pending in one of the states, and settled in another."""
    others: dict[str, Decision] = {}
    for id, loaded in states.items() if len(states) > 1 else ():
        for over, part in loaded.state.pending.items():
            decision = _fate(histories[id], over, part.version)
            if decision is not None and any(_has(states, other, over, decision) for other in states):
                others[over] = decision
    return others


def _has(states: States, id: str, over: str, decision: Decision) -> bool:
    """Whether the state of a pool has a committed transaction."""
    prepared = decision.prepared.get(id)
    loaded = states[id]
    return (
        decision.committed
        and prepared is not None
        and loaded.version >= prepared
        and over not in loaded.state.pending
    )


def _fate(history: History, over: str, prepared: int) -> Decision | None:
    """Returns the decision of a transaction for a part that was prepared at this version; None if there is none.

    If the pool has settled the transaction, its entry counts: the decision may have been deleted, and a process
    that was paused may have made another one.  The decision is read first, because it is deleted only when all
    pools have settled.
    """
    decision = history.decisions.get(over)
    for version, transaction in history.read_transactions():
        if version <= prepared:
            break
        for action in transaction.actions:
            if isinstance(action, Settle) and action.over == over:
                return Decision(action.committed, transaction.author, transaction.time, action.prepared)
    return decision


def views_at_one_moment(pools: Mapping[str, Pool], *, time: str = "") -> dict[str, View]:
    """Returns a view of `main` of each pool, by the same names, all of one moment: the newest, or a past time (ISO
    8601).

    Raises what `states_at_one_moment` or `states_at_time` raises.
    """
    each = list(pools.values())
    states = states_at_time(each, time) if time else states_at_one_moment(each)
    return {name: pool.at(newest=states[pool.config.id]) for name, pool in pools.items()}


def _identity(loaded: LoadedState[PoolState]) -> tuple[int, frozenset[str]]:
    """Returns what distinguishes two states of a pool: the version, and the pending parts. A state may show a part
    although it was read before the part's entry."""
    return loaded.version, frozenset(loaded.state.pending.keys())


def _behind(states: States) -> list[str]:
    """Returns the pools whose state does not have a transaction yet that another pool's state has."""
    needed: dict[str, int] = {}
    for loaded in states.values():
        for id, version in loaded.state.prepared.items():
            needed[id] = max(needed.get(id, 0), version)
    return [id for id, loaded in states.items() if needed.get(id, 0) > loaded.version]
