"""A lake in memory whose clock a test moves: the machine's and the store's are one unless a test parts them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest

from lake_core.ids import IdSource
from lake_core.store import Store
from log_lake.doctor.examine import examine
from log_lake.doctor.health_finding import HealthFinding, LakeHealth, Severity
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.stores.memory import MemoryStore
from tests.support.clocks import Clock

HOUR, DAY = 3_600.0, 86_400.0


@dataclass
class Ward:
    """A lake, and the clocks of this machine and of its store."""

    clock: Clock = field(default_factory=Clock)
    store_clock: Clock | None = None
    folder: Path = Path()

    def __post_init__(self) -> None:
        self.store: Store = MemoryStore("memory://ward", clock=self.store_clock or self.clock)
        self.lake = Lake.create_on(self.store, ids=IdSource(self.clock), author="ann")

    def opened(self, store: Store | None = None, *, clock: Clock | None = None) -> Lake:
        """The lake as another process opens it."""
        return Lake.open_on(store or self.store, ids=IdSource(clock or self.clock), author="bob")

    def pool(self, name: str = "logs", *, loads: int = 0, **how: object) -> Pool:
        """A pool with so many loads of the same keys, a second apart."""
        pool = self.lake.create_pool(name, key="k", **{"settings": {}, **how})  # type: ignore[arg-type]
        self.load(pool, loads)
        return pool

    def load(self, pool: Pool, loads: int = 1) -> None:
        """Load the same keys again."""
        for _ in range(loads):
            pool.branch().append(pa.table({"k": [1, 9]}))
            self.clock.now += 1

    def wait(self, seconds: float) -> None:
        """Let time pass, by all clocks."""
        self.clock.now += seconds
        if self.store_clock is not None:
            self.store_clock.now += seconds

    def health(self, lake: Lake | None = None, *pools: str, anew: bool = False) -> LakeHealth:
        """The doctor's answer; by default to another process."""
        return examine(lake or self.opened(), pools, anew=anew)

    def findings(self, lake: Lake | None = None) -> list[HealthFinding]:
        """What is more than a note."""
        return [one for one in self.health(lake).all_findings if one.severity > Severity.NOTE]


@pytest.fixture
def ward(tmp_path: Path) -> Ward:
    """A new lake."""
    return Ward(folder=tmp_path)
