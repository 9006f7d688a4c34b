"""The list of pools at a version: a pure fold of its journal.

The id identifies a pool; the name is a label that another pool may get later.  Names are unique among the pools
that are listed.

    listed --drop_pool--> dropped --delete_pool--> being deleted --forget_pool--> gone
       ^---restore_pool------|

A dropped pool keeps its objects until the vacuum of dropped pools (`vacuum.dropped`) deletes them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import msgspec
from rpds import HashTrieMap

from lake_core.errors import Corrupt, NotFound
from lake_core.phrases import did_you_mean
from lake_core.records import (
    CreatePool,
    DeletePool,
    DropPool,
    ForgetPool,
    PoolAction,
    PoolsEntry,
    RenamePool,
    RestorePool,
)
from lake_core.records.pools import DroppedPool, PoolConfig


@dataclass(frozen=True)
class PoolsState:
    """The pools of a lake at a version: the pools by id, the ids by name, the dropped pools by id."""

    pools: HashTrieMap[str, PoolConfig] = field(default_factory=HashTrieMap)
    names: HashTrieMap[str, str] = field(default_factory=HashTrieMap)
    dropped: HashTrieMap[str, DroppedPool] = field(default_factory=HashTrieMap)

    def named(self, name: str) -> PoolConfig:
        """Returns the pool of this name.  Raises NotFound."""
        id = self.names.get(name)
        if id is None:
            hint = did_you_mean(
                name, self.names, none="none yet; make one with: lake create POOL --key FIELD"
            )
            pool, _, revision = name.partition("@")
            if revision and pool in self.names:
                hint = f"did you mean {pool!r} with --at {revision}, or to write with --branch {revision}?"
            if name.partition(":")[0] in self.names:
                hint = f"""its tables are read by: lake query 'SELECT * FROM "{name}"'"""
            raise NotFound(f"pool {name!r} does not exist; {hint}")
        return self.pools[id]

    def still(self, id: str, *, name: str) -> PoolConfig:
        """Returns the pool with this id, even if it was renamed; `name` is its earlier name, for the error.
        Raises NotFound."""
        pool = self.pools.get(id)
        if pool is None:
            raise NotFound(
                f"pool {name!r} was dropped since this read began: take it back (lake restore), or read anew"
            )
        return pool


def fold_pools(state: PoolsState, version: int, entry: PoolsEntry) -> PoolsState:
    """Returns the list of pools after the entry of a version.  Raises Corrupt if an action does not fit."""
    for action in entry.actions:
        try:
            state = _fold_action(state, action, version, entry)
        except LookupError as error:
            raise Corrupt(f"journal of pools, entry {version}: {error}") from error
    return state


def _fold_action(state: PoolsState, action: PoolAction, version: int, entry: PoolsEntry) -> PoolsState:
    if isinstance(action, CreatePool):
        if action.pool.id in state.pools or action.pool.id in state.dropped:
            raise LookupError(f"pool {action.pool.id} exists")
        return _listed(state, action.pool)
    if isinstance(action, RestorePool | DeletePool | ForgetPool):
        return _fold_dropped(state, action, version)
    pool = state.pools.get(action.pool_id)
    if pool is None:
        raise LookupError(f"pool {action.pool_id} does not exist")
    if isinstance(action, DropPool):
        dropped = DroppedPool(pool, version, entry.time, entry.author)
        return PoolsState(
            state.pools.remove(pool.id), state.names.remove(pool.name), state.dropped.insert(pool.id, dropped)
        )
    if isinstance(action, RenamePool):
        return _listed(_unlisted(state, pool), msgspec.structs.replace(pool, name=action.name))
    settings = {k: v for k, v in {**pool.settings, **action.settings}.items() if v != ""}
    return _listed(_unlisted(state, pool), msgspec.structs.replace(pool, settings=settings))


def _fold_dropped(
    state: PoolsState, action: RestorePool | DeletePool | ForgetPool, version: int
) -> PoolsState:
    listed = state.pools.get(action.pool_id)
    if isinstance(action, RestorePool) and listed is not None:
        return _listed(
            _unlisted(state, listed), msgspec.structs.replace(listed, name=action.name, restored=version)
        )
    dropped = state.dropped.get(action.pool_id)
    if dropped is None or dropped.is_deleted != isinstance(action, ForgetPool):
        raise LookupError(f"pool {action.pool_id} was not dropped, or is being deleted")
    if isinstance(action, DeletePool):
        deleted = msgspec.structs.replace(dropped, is_deleted=True)
        return replace(state, dropped=state.dropped.insert(action.pool_id, deleted))
    left = replace(state, dropped=state.dropped.remove(action.pool_id))
    if isinstance(action, ForgetPool):
        return left
    return _listed(left, msgspec.structs.replace(dropped.pool, name=action.name, restored=version))


def _listed(state: PoolsState, pool: PoolConfig) -> PoolsState:
    if pool.name in state.names:
        raise LookupError(f"pool {pool.name!r} exists")
    return replace(
        state, pools=state.pools.insert(pool.id, pool), names=state.names.insert(pool.name, pool.id)
    )


def _unlisted(state: PoolsState, pool: PoolConfig) -> PoolsState:
    return replace(state, pools=state.pools.remove(pool.id), names=state.names.remove(pool.name))
