"""The list of pools at a version: a pure fold of its journal.

The id identifies a pool; the name is a label that another pool may get later.  Names are unique among the pools
that are not dropped.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec
from rpds import HashTrieMap

from lake_core.errors import Corrupt, NotFound
from lake_core.phrases import did_you_mean
from lake_core.records import CreatePool, DropPool, PoolAction, PoolsEntry, RenamePool
from lake_core.records.pools import PoolConfig


@dataclass(frozen=True)
class PoolsState:
    """The pools of a lake at a version: the pools by id, the ids by name."""

    pools: HashTrieMap[str, PoolConfig] = field(default_factory=HashTrieMap)
    names: HashTrieMap[str, str] = field(default_factory=HashTrieMap)

    def named(self, name: str) -> PoolConfig:
        """The pool of this name; raises NotFound."""
        id = self.names.get(name)
        if id is None:
            hint = did_you_mean(
                name, self.names, none="none yet; make one with: lake create POOL --key FIELD"
            )
            raise NotFound(f"pool {name!r} does not exist; {hint}")
        return self.pools[id]


def fold_pools(state: PoolsState, version: int, entry: PoolsEntry) -> PoolsState:
    """The list after the entry of a version.  Raises Corrupt if an action does not fit."""
    for action in entry.actions:
        try:
            state = _fold_action(state, action)
        except LookupError as error:
            raise Corrupt(f"journal of pools, entry {version}: {error}") from error
    return state


def _fold_action(state: PoolsState, action: PoolAction) -> PoolsState:
    if isinstance(action, CreatePool):
        if action.pool.name in state.names or action.pool.id in state.pools:
            raise LookupError(f"pool {action.pool.name!r} exists")
        return PoolsState(
            state.pools.insert(action.pool.id, action.pool),
            state.names.insert(action.pool.name, action.pool.id),
        )
    pool = state.pools.get(action.pool_id)
    if pool is None:
        raise LookupError(f"pool {action.pool_id} does not exist")
    if isinstance(action, DropPool):
        return PoolsState(state.pools.remove(pool.id), state.names.remove(pool.name))
    if isinstance(action, RenamePool):
        if action.name in state.names:
            raise LookupError(f"pool {action.name!r} exists")
        renamed = msgspec.structs.replace(pool, name=action.name)
        return PoolsState(
            state.pools.insert(pool.id, renamed), state.names.remove(pool.name).insert(action.name, pool.id)
        )
    settings = {k: v for k, v in {**pool.settings, **action.settings}.items() if v != ""}
    return PoolsState(
        state.pools.insert(pool.id, msgspec.structs.replace(pool, settings=settings)), state.names
    )
