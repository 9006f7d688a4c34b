"""A pool on a store whose clock, like the lake's own, stands still until a test moves it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa
import pytest

from lake_core.ids import IdSource
from lake_core.naming import PARQUET, data_object, object_id_of
from log_lake.agents.compact.run import compact_pool, plan_pool
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.stores.memory import MemoryStore
from tests.support.clocks import DAY, Clock

GRACE = 7 * DAY


@dataclass
class World:
    """One pool; `ids` of the lake follow the clock of the store."""

    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self.store = MemoryStore("memory://vacuum", clock=self.clock)
        self.lake = Lake.create_on(self.store, ids=IdSource(clock=self.clock), author="test")
        self.pool = self.lake.create_pool("p", key="k", settings={"history.keep": "1d", "vacuum.grace": "7d"})

    def reopened(self) -> Pool:
        """The pool as another process sees it."""
        return Lake.open_on(self.store, ids=IdSource(clock=self.clock), author="other").pool("p")

    def load(self, *keys: int) -> int:
        """Append records; returns the version."""
        version = self.pool.branch().append(pa.table({"k": list(keys)})).version
        assert version is not None
        self.clock.now += 1
        return version

    def compact(self) -> int:
        """Merge everything into one object; returns the version."""
        plan = plan_pool(self.lake, "p", strategy="full", now=self.clock.now)
        compact_pool(self.lake, "p", plan)
        self.clock.now += 1
        return self.pool.history.load().version

    def replaced(self) -> None:
        """Two loads, merged into one object: their two objects wait out the grace time."""
        self.load(1)
        self.load(2)
        self.compact()

    def wait(self, seconds: float = GRACE + 10) -> None:
        """Let time pass."""
        self.clock.now += seconds

    @property
    def objects(self) -> set[str]:
        """The data objects on the store."""
        return {info.name.rpartition("/")[2][:27] for info in self.store.list(f"{self.pool.config.id}/data")}

    def held(self, revision: str = "main") -> set[str]:
        """The objects of a revision."""
        return {reference.object for reference in self.pool.at(revision).references}

    def orphan(self, seconds: float | None = None, *, format: str = PARQUET) -> str:
        """Write an object that nobody commits; returns its id."""
        id = IdSource(clock=lambda: self.clock.now if seconds is None else seconds).new()
        self.store.create(data_object(self.pool.config.id, object_id_of(id, format)), b"orphan")
        return id


@pytest.fixture
def world() -> Iterator[World]:
    return World()
