"""The list of pools, folded from its journal; creating, changing, renaming and dropping.

A pool is its id; the name is a label that can move.  Names are unique among the pools that are not dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec
from rpds import HashTrieMap

from lake_core import naming
from lake_core.catalog.settings import check_settings
from lake_core.errors import AlreadyExists, Corrupt, NotFound
from lake_core.journal import Head, Journal
from lake_core.records import ConfigurePool, CreatePool, DropPool, PoolAction, PoolsEntry, RenamePool
from lake_core.records.codec import Codec
from lake_core.records.pools import PoolConfig
from lake_core.store import Store


@dataclass(frozen=True)
class PoolsState:
    """The pools of a lake after some entry: by id, and the ids by name."""

    pools: HashTrieMap[str, PoolConfig] = field(default_factory=HashTrieMap)
    names: HashTrieMap[str, str] = field(default_factory=HashTrieMap)

    def named(self, name: str) -> PoolConfig:
        """The pool of this name; raises NotFound."""
        id = self.names.get(name)
        if id is None:
            known = (
                ", ".join(sorted(self.names)[:10]) or "none yet; make one with: lake create POOL --key FIELD"
            )
            raise NotFound(f"pool {name!r} does not exist; there are: {known}")
        return self.pools[id]


def fold_pools(state: PoolsState, n: int, entry: PoolsEntry) -> PoolsState:
    """The list after entry `n`; raises Corrupt where an action does not fit."""
    for action in entry.actions:
        try:
            state = _fold_action(state, action)
        except LookupError as error:
            raise Corrupt(f"journal of pools, entry {n}: {error}") from error
    return state


def _fold_action(state: PoolsState, action: PoolAction) -> PoolsState:
    if isinstance(action, CreatePool):
        if action.pool.name in state.names or action.pool.id in state.pools:
            raise LookupError(f"pool {action.pool.name!r} exists")
        return PoolsState(
            state.pools.insert(action.pool.id, action.pool),
            state.names.insert(action.pool.name, action.pool.id),
        )
    pool = state.pools.get(action.pool)
    if pool is None:
        raise LookupError(f"pool {action.pool} does not exist")
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


class Catalog:
    """The journal of pools on a store."""

    def __init__(self, store: Store, *, ids: naming.IdSource, author: str) -> None:
        self._ids, self._author = ids, author
        self._journal: Journal[PoolsEntry, PoolsState] = Journal(
            store, naming.POOLS_JOURNAL, Codec(PoolsEntry), PoolsState(), fold_pools
        )

    def load(self) -> Head[PoolsState]:
        """The newest list."""
        return self._journal.load()

    def create(self, pool: PoolConfig) -> int:
        """Add the pool; returns the entry's number.  Raises AlreadyExists, InvalidInput (settings)."""
        check_settings(pool.settings)

        def propose(state: PoolsState) -> PoolAction:
            if pool.name in state.names:
                raise AlreadyExists(f"pool {pool.name!r} exists already")
            return CreatePool(pool)

        return self._append(propose)

    def configure(self, name: str, settings: dict[str, str]) -> int:
        """Change settings.  Raises NotFound, InvalidInput."""
        check_settings(settings)
        return self._append(lambda state: ConfigurePool(state.named(name).id, settings))

    def rename(self, name: str, new: str) -> int:
        """Give the pool another name.  Raises NotFound, AlreadyExists, InvalidInput."""
        naming.check_pool_name(new)

        def propose(state: PoolsState) -> PoolAction:
            pool = state.named(name)
            if new in state.names:
                raise AlreadyExists(f"pool {new!r} exists already")
            return RenamePool(pool.id, new)

        return self._append(propose)

    def drop(self, name: str) -> int:
        """Take the pool off the list.  Raises NotFound."""
        return self._append(lambda state: DropPool(state.named(name).id))

    def _append(self, propose: Callable[[PoolsState], PoolAction]) -> int:
        id = self._ids.new()
        time = int(self._ids.clock() * 1_000_000)
        appended = self._journal.append(
            lambda head: PoolsEntry(id, time, self._author, (propose(head.state),))
        )
        assert appended is not None  # every proposal is an entry
        return appended.n
