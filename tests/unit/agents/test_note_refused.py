"""A pool whose writer may not renew its activity note is looked at soon, though an older note stands."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from lake_core.errors import Unavailable
from lake_core.ids import IdSource
from log_lake.agents.checkpoint import run as checkpoint
from log_lake.lake import Lake
from log_lake.stores.memory import MemoryStore
from tests.support.agents import find
from tests.support.clocks import Clock

START = 1_780_000_000.0
SETTINGS = {"compact.depth": "1", "tombstones.apply": "0s", "checkpoint.entries": "2"}


class Refusing(MemoryStore):
    """A store on which the writer may not put notes."""

    refuses = False

    def put(self, name: str, data: bytes, *, durable: bool = False) -> None:
        if self.refuses and name.startswith("activity/"):
            raise Unavailable("no right to write below activity/")
        super().put(name, data, durable=durable)


@pytest.mark.parametrize("agent", ["compact", "tombstones", "checkpoint"])
def test_an_agent_looks_at_its_next_run(agent: str) -> None:
    clock = Clock(START)
    store = Refusing("memory://notes", clock=clock)
    fresh: Callable[..., Lake] = lambda *_, **__: Lake.open_on(store, ids=IdSource(clock=clock))  # noqa: E731
    pool = Lake.create_on(store, ids=IdSource(clock=clock)).create_pool("p", key="k", settings=SETTINGS)
    pool.branch().append(pa.table({"k": [1]}))
    clock.now += 4000
    checkpoint.checkpoint_and_purge(fresh(), "p", now=clock.now)
    for _ in range(2):
        clock.now += 4000
        assert find(agent, {"lake": "x"}, open_lake=fresh) == []
    store.refuses = True
    branch = fresh().pool("p").branch()
    for _ in range(12):
        branch.append(pa.table({"k": [1]}))
    branch.delete(where="k = 1")
    clock.now += 1800
    assert [work["pool"] for work in find(agent, {"lake": "x"}, open_lake=fresh)] == ["p"]
