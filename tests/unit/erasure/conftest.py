"""Pools of each kind on a store whose clock a test moves, and what the objects on the store really hold."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lake_core import naming
from lake_core.ids import IdSource
from log_lake.agents.compact.run import compact_pool, plan_pool
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.stores.memory import MemoryStore
from tests.support.clocks import Clock
from tests.support.inlined import rows_in_journal
from tests.support.stores import StoreInFront

Row = dict[str, Any]


class Killing(StoreInFront):
    """A store whose caller is killed when it writes an entry of a journal."""

    def __init__(self, behind: MemoryStore) -> None:
        self.behind = behind

    def ask(self, request: str, name: str, call: Callable[[], Any]) -> Any:
        if request == "create" and naming.entry_version(name) is not None:
            raise KeyboardInterrupt
        return call()


@dataclass
class World:
    """One pool of a kind, with records of people: `k` is the key, `who` a name."""

    kind: str = "append"
    clock: Clock = field(default_factory=Clock)
    settings: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.store = MemoryStore("memory://erasure", clock=self.clock)
        self.lake = Lake.create_on(self.store, ids=IdSource(clock=self.clock), author="test")
        aggregates = {"n": "sum"} if self.kind == "aggregate" else {}
        self.pool = self.lake.create_pool(
            "p", key="k", kind=self.kind, aggregates=aggregates, settings=self.settings
        )

    def reopened(self) -> Pool:
        """The pool as another process sees it."""
        return Lake.open_on(self.store, ids=IdSource(clock=self.clock), author="other").pool("p")

    def load(self, *rows: Row, branch: str = "main") -> None:
        """Load records in one transaction."""
        self.pool.branch(branch).append(pa.Table.from_pylist(list(rows)))
        self.clock.now += 1

    def orphan(self, *rows: Row) -> str:
        """A load whose process is killed before it commits; returns the id of its object."""
        before = set(self.objects)
        lake = Lake.open_on(Killing(self.store), ids=IdSource(clock=self.clock), author="loader")
        pool = lake.pool("p")
        writes_files = msgspec.structs.replace(
            pool.config, settings=pool.config.settings | {"load.inline": "0"}
        )
        with contextlib.suppress(KeyboardInterrupt):
            replace(pool, config=writes_files).branch().append(pa.Table.from_pylist(list(rows)))
        (id,) = set(self.objects) - before
        return id

    def people(self, *names: str, first: int = 0, branch: str = "main") -> None:
        """Load a record a name, with keys from `first` on."""
        rows = [{"k": first + n, "who": name, "n": 1} for n, name in enumerate(names)]
        self.load(*rows, branch=branch)

    def compact(self, branch: str = "main") -> None:
        """Merge everything that overlaps."""
        plan = plan_pool(self.lake, "p", branch=branch, strategy="full", now=self.clock.now)
        compact_pool(self.lake, "p", plan, branch=branch)
        self.clock.now += 1

    @property
    def objects(self) -> dict[str, bytes]:
        """The data objects on the store, by id."""
        infos = list(self.store.list(naming.data(self.pool.config.id)))
        return {str(naming.data_id(info.name)): self.store.get(info.name) or b"" for info in infos}

    def rows(self, object_id: str) -> list[Row]:
        """The records of an object, read by Arrow alone."""
        return pq.read_table(pa.BufferReader(self.objects[object_id])).to_pylist()  # type: ignore[no-any-return]

    def holding(self, is_such: Callable[[Row], bool]) -> set[str]:
        """The objects on the store that hold such a record."""
        return {id for id in self.objects if any(map(is_such, self.rows(id)))}

    def in_journal(self, is_such: Callable[[Row], bool]) -> list[str]:
        """The entries, checkpoints and requests in whose bytes such a record can be read."""
        found = rows_in_journal(self.store, self.pool.config.id)
        return [name for name, rows in found.items() if any(map(is_such, rows))]

    def names(self, revision: str = "main") -> list[str]:
        """The names in a revision, by key."""
        return self.pool.at(revision).to_table(columns=["who"])["who"].to_pylist()


def is_ann(row: Row) -> bool:
    """Whether the record names the person whom the tests erase."""
    return row.get("who") == "ann"


@pytest.fixture
def world() -> Iterator[World]:
    return World()
