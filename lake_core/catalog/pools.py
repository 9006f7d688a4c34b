"""The list of pools on its store: creating, configuring, renaming, dropping and restoring pools."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

import msgspec

from lake_core import naming
from lake_core.catalog.checkpoint import PoolsFormat
from lake_core.catalog.fields import check_fields
from lake_core.catalog.state import PoolsState, fold_pools
from lake_core.context import Context
from lake_core.errors import AlreadyExists, Conflict, InvalidInput, JournalLost, NotFound, PlanAgain
from lake_core.journal import JOURNAL_LIMITS, Journal, JournalLimits, LoadedState, gates
from lake_core.journal.hints import forget_begun
from lake_core.records import (
    ConfigurePool,
    CreatePool,
    DeletePool,
    DropPool,
    ForgetPool,
    PoolAction,
    PoolsEntry,
    RenamePool,
    RestorePool,
)
from lake_core.records.codec import Codec
from lake_core.records.pools import PoolConfig

log = logging.getLogger(__name__)


ConfigCheck = Callable[[PoolConfig, Mapping[str, str]], None]
"""Gets a pool's configuration and settings to add; raises InvalidInput if the pool cannot have them."""


class Catalog:
    """The list of pools: a journal on a store.  `check` refuses invalid settings.  It is passed in from a
    higher layer, because there the settings are declared, beside the code that reads them."""

    def __init__(
        self, context: Context, *, check: ConfigCheck, limits: JournalLimits = JOURNAL_LIMITS
    ) -> None:
        self._context = context
        self._check = check
        self.journal: Journal[PoolsEntry, PoolsState] = Journal(
            context.store,
            naming.POOLS_JOURNAL,
            Codec(PoolsEntry, version=context.format_version),
            PoolsState(),
            fold_pools,
            format=PoolsFormat(),
            limits=limits,
            gated=context.gated and context.format_version >= gates.FORMAT,
        )

    def load(self) -> LoadedState[PoolsState]:
        """Returns the newest list of pools."""
        return self.journal.load()

    def begin_anew(self) -> None:
        """Lets the next change begin a new list, if the list is lost.  Raises Corrupt, Unavailable."""
        try:
            self.load()
        except JournalLost:
            forget_begun(self.journal.store, self.journal.name)

    def create(self, config: PoolConfig, *, own: bool = False) -> int:
        """Adds the pool; returns the version of the list.  Raises AlreadyExists, InvalidInput (settings).
        `own`: the lake makes the pool itself, so no user chose its name."""
        self.check_new(config, own=own)

        def propose(state: PoolsState) -> PoolAction:
            if config.name in state.names:
                raise AlreadyExists(f"pool {config.name!r} exists already; use another name")
            return CreatePool(config)

        return self._append(propose)

    def configure(self, name: str, settings: dict[str, str]) -> int:
        """Changes settings of the pool with this name; returns the version of the list.  Raises NotFound,
        InvalidInput."""

        def propose(state: PoolsState) -> PoolAction:
            pool = state.named(name)
            self._check(pool, settings)
            return ConfigurePool(pool.id, settings)

        return self._append(propose)

    def change(
        self, *, created: Sequence[PoolConfig], changed: Sequence[tuple[PoolConfig, Mapping[str, str]]]
    ) -> int:
        """Adds pools, and changes settings of others, in one entry; returns the version of the list.

        Raises PlanAgain if a name was taken, or if a pool was changed after the change was planned.  Raises
        InvalidInput.
        """
        for config in created:
            self.check_new(config)

        def propose(state: PoolsState) -> tuple[PoolAction, ...]:
            for config in created:
                if config.name in state.names:
                    raise PlanAgain(f"pool {config.name!r} was made meanwhile; look again, then repeat")
            for pool, settings in changed:
                if state.pools.get(pool.id) != pool:
                    raise PlanAgain(f"pool {pool.name!r} was changed meanwhile; look again, then repeat")
                self._check(pool, settings)
            actions: list[PoolAction] = [CreatePool(config) for config in created]
            return (*actions, *(ConfigurePool(pool.id, dict(settings)) for pool, settings in changed))

        return self._append(propose)

    def rename(self, name: str, new: str) -> int:
        """Gives the pool another name; returns the version of the list.  Raises NotFound, AlreadyExists,
        InvalidInput."""
        naming.check_chosen_name(naming.check_pool_name(new), what="pool")

        def propose(state: PoolsState) -> PoolAction:
            pool = state.named(name)
            if new in state.names:
                raise AlreadyExists(f"pool {new!r} exists already; use another name")
            return RenamePool(pool.id, new)

        return self._append(propose)

    def drop(self, pool: PoolConfig) -> int:
        """Moves the pool to the dropped ones; returns the version of the list.

        `Lake.drop_pool` closes the pool's own journal first (decision 30).  Raises NotFound if there is no such
        pool.  Raises PlanAgain if the pool was restored after the caller read `pool`: its journal may then be
        open (decision 78).
        """

        def propose(state: PoolsState) -> PoolAction:
            listed = state.pools.get(pool.id)
            if listed is None:
                raise NotFound(f"pool {pool.id} does not exist: another command dropped it at the same time")
            if listed.restored != pool.restored:
                raise PlanAgain(f"pool {pool.name!r} was restored at the same time; drop it again")
            return DropPool(pool.id)

        return self._append(propose)

    def restore(self, pool_id: str, *, name: str) -> int:
        """Lists a dropped pool again, under this name; returns the version of the list.  `Lake.restore_pool`
        opens the pool's own journal afterwards.  Raises NotFound, AlreadyExists, InvalidInput."""
        naming.check_pool_name(name)
        self._check_version_2("lake restore")

        def propose(state: PoolsState) -> PoolAction:
            if state.names.get(name, pool_id) != pool_id:
                raise AlreadyExists(
                    f"pool {name!r} exists; restore the dropped one under another name: --as NAME"
                )
            if pool_id not in state.pools:
                self._dropped(state, pool_id)
            return RestorePool(pool_id, name)

        return self._append(propose)

    def begin_delete(self, pool_id: str, *, version: int) -> int:
        """States that the objects of a dropped pool are being deleted.  Returns the version of the list.

        `version` is the version of the list that dropped the pool.  Raises Conflict if the pool was restored,
        or if its deletion has already begun.
        """
        self._check_version_2("lake vacuum --dropped")

        def propose(state: PoolsState) -> PoolAction:
            dropped = state.dropped.get(pool_id)
            if dropped is None or dropped.is_deleted or dropped.version != version:
                raise Conflict(f"pool {pool_id} was restored, or another process deletes it")
            return DeletePool(pool_id)

        return self._append(propose)

    def forget(self, pool_id: str) -> int:
        """Removes a dropped pool from the list, once its objects are deleted. Returns the version of the list.
        Raises Conflict if the pool is not being deleted."""

        def propose(state: PoolsState) -> PoolAction:
            dropped = state.dropped.get(pool_id)
            if dropped is None or not dropped.is_deleted:
                raise Conflict(f"pool {pool_id} is off the list already")
            return ForgetPool(pool_id)

        return self._append(propose)

    def check_new(self, config: PoolConfig, *, own: bool = False) -> None:
        """Raises InvalidInput for a name, fields or settings that no new pool can have."""
        if not own:
            naming.check_chosen_name(config.name, what="pool")
        check_fields(config.key, config.aggregates)
        self._check(msgspec.structs.replace(config, settings={}), config.settings)

    @staticmethod
    def _dropped(state: PoolsState, pool_id: str) -> None:
        dropped = state.dropped.get(pool_id)
        if dropped is None or dropped.is_deleted:
            raise NotFound(f"pool {pool_id}: its grace time is over; its objects are deleted, or about to be")

    def _check_version_2(self, command: str) -> None:
        if self._context.format_version < 2:
            raise InvalidInput(f"{command}: this lake has format version 1; run lake upgrade first")

    def _append(self, propose: Callable[[PoolsState], PoolAction | tuple[PoolAction, ...]]) -> int:
        id = self._context.ids.new()
        time = int(self._context.now() * 1_000_000)

        def entry(loaded: LoadedState[PoolsState]) -> PoolsEntry:
            proposed = propose(loaded.state)
            actions = proposed if isinstance(proposed, tuple) else (proposed,)
            return PoolsEntry(id, time, self._context.author, actions)

        appended = self.journal.append(entry, id=id)
        assert appended is not None  # every proposal is an entry
        log.info("%s: version %d written, try %d", self.journal.name, appended.version, appended.tries)
        return appended.version
