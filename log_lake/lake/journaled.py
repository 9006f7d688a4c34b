"""A pool as its journal: the base of `Pool`, for `branches` and `tags`.

`Pool` calls the functions of those modules, so they cannot import `Pool`.
"""

from __future__ import annotations

from dataclasses import dataclass

from lake_core.context import Context
from lake_core.history import Committed, Draft, History
from lake_core.records import Action
from lake_core.records.pools import PoolConfig
from lake_core.store import Store
from log_lake.reading.limits import LIMITS, ScanLimits
from log_lake.settings import Settings


@dataclass(frozen=True)
class Journaled:
    """A pool of the lake, or a sub-pool of it, with its history."""

    context: Context
    config: PoolConfig
    history: History
    sub_pool: str = ""
    limits: ScanLimits = LIMITS

    @property
    def store(self) -> Store:
        """The store that holds the lake."""
        return self.context.store

    @property
    def name(self) -> str:
        """The pool's name, or that of the sub-pool, as users write it."""
        return f"{self.config.name}.{self.sub_pool}" if self.sub_pool else self.config.name

    @property
    def settings(self) -> Settings:
        """The settings of the pool."""
        return Settings(self.config.settings)

    def commit_actions(
        self, actions: tuple[Action, ...], *, branch: str = "", on: int | None = None, message: str
    ) -> Committed:
        """Commits a transaction on a branch, or on none.  `on`: the version on which it was decided; default: the
        newest version.

        Raises what `History.commit` raises.
        """
        context = self.context
        read_version = self.history.load_open().version if on is None else on
        draft = Draft(context.ids.new(), branch, read_version, context.author, actions, message=message)
        return self.history.commit(draft)
