"""A pool: read it at a revision, write to a branch, follow a branch, look at its history.

`lake.pool("logs")` is the pool, `lake.pool("logs.$nokey")` the view of a sub-pool of it: the same journal,
other objects.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lake_core.branch import Branch
from lake_core.catalog import Settings
from lake_core.commits import History
from lake_core.commits.state import MAIN
from lake_core.context import Context
from lake_core.errors import InvalidInput, NotFound
from lake_core.feed import Feed
from lake_core.records import Transaction
from lake_core.records.pools import PoolConfig
from lake_core.store import Store
from lake_core.view import View


@dataclass(frozen=True)
class Pool:
    """A pool of the lake; keep it to make later commits cheap, since it remembers the newest state."""

    context: Context
    config: PoolConfig
    history: History
    sub: str = ""

    @property
    def store(self) -> Store:
        """Where the lake is kept."""
        return self.context.store

    @property
    def name(self) -> str:
        """As a user writes it."""
        return f"{self.config.name}.{self.sub}" if self.sub else self.config.name

    @property
    def settings(self) -> Settings:
        """The pool's policies."""
        return Settings(self.config.settings)

    def branch(self, name: str = MAIN) -> Branch:
        """A branch to write to; raises NotFound, and InvalidInput for a sub-pool."""
        if self.sub:
            raise InvalidInput(f"the sub-pool {self.sub} is read-only: load into the pool itself")
        self._check_branch(name)
        return Branch(self.context, self.config, name, self.history)

    def at(self, revision: str = MAIN) -> View:
        """The pool at a transaction number or id, a branch, or BRANCH@TIME; raises NotFound, InvalidInput."""
        head, branch = self.history.resolve(revision)
        return View(self.store, self.config, head.n, branch, head.state, self.sub, now=self.context.now())

    def feed(self, branch: str = MAIN) -> Feed:
        """What the branch's transactions bring, to be followed; raises NotFound."""
        self._check_branch(branch)
        return Feed(self.history, branch, self.sub)

    def log(self, *, branch: str | None = None) -> Iterator[tuple[int, Transaction]]:
        """Transactions newest first; raises NotFound for an unknown branch."""
        if branch is not None:
            self._check_branch(branch)
        return self.history.transactions(branch=branch)

    def _check_branch(self, name: str) -> None:
        branches = self.history.load().state.branches
        if name not in branches:
            raise NotFound(
                f"pool {self.name!r}: branch {name!r} does not exist; there are: {', '.join(branches)}"
            )
