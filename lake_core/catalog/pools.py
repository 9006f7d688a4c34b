"""The list of pools on its store: creating, configuring, renaming and dropping pools."""

from __future__ import annotations

import logging
from collections.abc import Callable

from lake_core import naming
from lake_core.catalog.checkpoint import PoolsFormat
from lake_core.catalog.settings import check_settings
from lake_core.catalog.state import PoolsState, fold_pools
from lake_core.context import Context
from lake_core.errors import AlreadyExists, NotFound
from lake_core.journal import JOURNAL_LIMITS, Journal, JournalLimits, LoadedState
from lake_core.records import ConfigurePool, CreatePool, DropPool, PoolAction, PoolsEntry, RenamePool
from lake_core.records.codec import Codec
from lake_core.records.pools import PoolConfig

log = logging.getLogger(__name__)


class Catalog:
    """The list of pools: a journal on a store."""

    def __init__(self, context: Context, *, limits: JournalLimits = JOURNAL_LIMITS) -> None:
        self._context = context
        self.journal: Journal[PoolsEntry, PoolsState] = Journal(
            context.store,
            naming.POOLS_JOURNAL,
            Codec(PoolsEntry, version=context.format_version),
            PoolsState(),
            fold_pools,
            format=PoolsFormat(),
            limits=limits,
        )

    def load(self) -> LoadedState[PoolsState]:
        """The newest list of pools."""
        return self.journal.load()

    def create(self, config: PoolConfig) -> int:
        """Add the pool; returns the version of the list.  Raises AlreadyExists, InvalidInput (settings)."""
        check_settings(config.settings, kind=config.kind, key=config.key, aggregates=config.aggregates)

        def propose(state: PoolsState) -> PoolAction:
            if config.name in state.names:
                raise AlreadyExists(f"pool {config.name!r} exists already; use another name")
            return CreatePool(config)

        return self._append(propose)

    def configure(self, name: str, settings: dict[str, str]) -> int:
        """Change settings of the pool of this name; returns the version.  Raises NotFound, InvalidInput."""

        def propose(state: PoolsState) -> PoolAction:
            pool = state.named(name)
            check_settings(
                settings, kind=pool.kind, key=pool.key, aggregates=pool.aggregates, stored=pool.settings
            )
            return ConfigurePool(pool.id, settings)

        return self._append(propose)

    def rename(self, name: str, new: str) -> int:
        """Give the pool another name; returns the version.  Raises NotFound, AlreadyExists, InvalidInput."""
        naming.check_pool_name(new)

        def propose(state: PoolsState) -> PoolAction:
            pool = state.named(name)
            if new in state.names:
                raise AlreadyExists(f"pool {new!r} exists already; use another name")
            return RenamePool(pool.id, new)

        return self._append(propose)

    def drop(self, pool_id: str) -> int:
        """Remove the pool with this id from the list; returns the version.  Raises NotFound.

        `Lake.drop_pool` closes the pool's own journal first (decision 30).
        """

        def propose(state: PoolsState) -> PoolAction:
            if pool_id not in state.pools:
                raise NotFound(f"pool {pool_id} does not exist: another command dropped it at the same time")
            return DropPool(pool_id)

        return self._append(propose)

    def _append(self, propose: Callable[[PoolsState], PoolAction]) -> int:
        id = self._context.ids.new()
        time = int(self._context.now() * 1_000_000)
        appended = self.journal.append(
            lambda loaded: PoolsEntry(id, time, self._context.author, (propose(loaded.state),)), id=id
        )
        assert appended is not None  # every proposal is an entry
        log.info("%s: version %d written, try %d", self.journal.name, appended.version, appended.tries)
        return appended.version
