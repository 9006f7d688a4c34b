"""A lake with a pool to clone, on a store whose clock stands still until a test moves it."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa
import pytest

from lake_core.ids import IdSource
from log_lake.agents.compact.run import compact_pool, plan_pool
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.stores.memory import MemoryStore
from tests.support.clocks import Clock


@dataclass
class World:
    """A lake with the pool `p`."""

    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self.store = MemoryStore("memory://clones", clock=self.clock)
        self.lake = Lake.create_on(self.store, ids=IdSource(clock=self.clock), author="test")
        self.pool = self.lake.create_pool("p", key="k", settings={"vacuum.grace": "7d"})

    def opened(self, store: MemoryStore | None = None) -> Lake:
        """The lake as another process sees it."""
        return Lake.open_on(store or self.store, ids=IdSource(clock=self.clock), author="other")

    def load(self, *keys: int, pool: str = "p", branch: str = "main", token: str = "") -> None:
        self.clock.now += 1
        self.lake.pool(pool).branch(branch).append(pa.table({"k": list(keys)}), token=token)

    def keys(self, pool: str, at: str = "main") -> list[int]:
        """The keys that another process reads."""
        found: list[int] = self.opened().pool(pool).at(at).to_table()["k"].to_pylist()
        return found

    def compact(self, pool: str) -> None:
        self.clock.now += 1
        compact_pool(self.lake, pool, plan_pool(self.lake, pool, strategy="full", now=self.clock.now))

    def objects(self, pool: Pool) -> list[str]:
        """The data objects in the folder of the pool."""
        return [info.name for info in self.store.list(f"{pool.config.id}/data")]


@pytest.fixture
def world() -> World:
    return World()
