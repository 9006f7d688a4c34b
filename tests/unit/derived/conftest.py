"""A pool `p` of people, and what a derived pool holds beside what its query has."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest

from lake_core.ids import IdSource
from log_lake.derived.create import derive
from log_lake.derived.step import keep
from log_lake.derived.writing import StepResult
from log_lake.lake import Lake
from log_lake.stores.memory import MemoryStore
from log_lake.system_tables.sql import query
from tests.support.clocks import Clock

BY_PREFIX = "SELECT k // 10 AS b, who, count(*) AS n, sum(v) AS s FROM p GROUP BY ALL"


@dataclass
class DerivedWorld:
    """A lake with the pool `p`: `k` is the key, `who` a name, `v` a number."""

    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self.store = MemoryStore("memory://derived", clock=self.clock)
        self.lake = Lake.create_on(self.store, ids=IdSource(clock=self.clock), author="test")
        self.pool = self.lake.create_pool("p", key="k")
        self.load(*range(40))

    def load(self, *keys: int, who: str | None = "ann", v: int = 1) -> None:
        rows = [{"k": key, "who": who, "v": v} for key in keys]
        fields = [("k", pa.int64()), ("who", pa.string()), ("v", pa.int64())]
        self.pool.branch().append(pa.Table.from_pylist(rows, pa.schema(fields)))

    def derive(self, name: str = "d", sql: str = BY_PREFIX, **options: Any) -> StepResult:
        return derive(self.lake, name, source=options.pop("source", "p"), query=sql, **options).step

    def keep(self, name: str = "d") -> StepResult:
        return keep(self.lake, self.lake.pool(name))

    def reopened(self) -> Lake:
        """The lake as another process sees it."""
        return Lake.open_on(self.store, ids=IdSource(clock=self.clock), author="other")

    def rows(self, sql: str) -> list[str]:
        return sorted(repr(row) for row in query(self.reopened(), sql).read_all().to_pylist())

    def check(self, name: str = "d", sql: str = BY_PREFIX) -> None:
        assert self.rows(f"SELECT * FROM {name}") == self.rows(sql)


@pytest.fixture
def world() -> DerivedWorld:
    return DerivedWorld()
