"""An erasure that is killed at any call of the store is finished by the next run; no reader sees a wrong state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from lake_core.ids import IdSource
from log_lake.erasure.receipt import DONE, Receipt, read_all
from log_lake.erasure.run import erase
from log_lake.erasure.verify import verify
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.stores.memory import MemoryStore
from tests.support.stores import StoreInFront
from tests.unit.erasure.conftest import Row, World

ANN = "who = 'ann'"


class KilledStore(StoreInFront):
    """A store whose caller is killed at the call of this number, before it acts or after it has acted."""

    def __init__(self, behind: MemoryStore, at: int, *, acts: bool) -> None:
        self.behind = behind
        self.calls, self._at, self._acts = 0, at, acts

    def ask(self, request: str, name: str, call: Callable[[], Any]) -> Any:
        self.calls += 1
        if self.calls == self._at:
            if self._acts:
                call()
            raise KeyboardInterrupt
        return call()


def prepared(kind: str, *, inline: str = "0") -> World:
    """A pool with two branches, a removed object and a hidden version, all with records of `ann`."""
    world = World(kind, settings={"load.inline": inline})
    world.load({"k": 1, "who": "old", "n": 1}, {"k": 2, "who": "ann", "n": 1})
    world.load({"k": 1, "who": "ann", "n": 1}, {"k": 3, "who": "bob", "n": 1})
    world.pool.create_branch("dev")
    world.load({"k": 7, "who": "ann", "n": 1}, {"k": 8, "who": "eve", "n": 1}, branch="dev")
    world.compact()
    return world


def pool_on(store: Any, world: World) -> Pool:
    return Lake.open_on(store, ids=IdSource(clock=world.clock), author="eraser").pool("p")


def copied(world: World) -> World:
    """The same lake on a store of its own."""
    copy = object.__new__(World)
    copy.kind, copy.clock = world.kind, type(world.clock)(world.clock.now)
    copy.store = MemoryStore("memory://erasure", clock=copy.clock)
    for info in world.store.list(""):
        copy.store.put(info.name, world.store.get(info.name) or b"")
    copy.lake = Lake.open_on(copy.store, ids=IdSource(clock=copy.clock), author="test")
    copy.pool = copy.lake.pool("p")
    return copy


def run(pool: Pool, kind: str) -> Receipt:
    return erase(pool, where="k = 1" if kind == "aggregate" else ANN)


def is_such(kind: str) -> Callable[[Row], bool]:
    return (lambda row: row["k"] == 1) if kind == "aggregate" else (lambda row: row["who"] == "ann")


@pytest.mark.parametrize("acts", [False, True])
@pytest.mark.parametrize(
    ("kind", "every", "inline"),
    [
        *((kind, 13, inline) for kind in ("append", "upsert", "aggregate") for inline in ("0", "64KiB")),
        *(
            pytest.param(kind, every, inline, marks=pytest.mark.slow)
            for kind, every, inline in (
                ("append", 1, "0"),
                ("upsert", 3, "0"),
                ("aggregate", 3, "0"),
                ("append", 3, "64KiB"),
            )
        ),
    ],
)
def test_killed_at_any_call_and_run_again_it_ends_the_same(
    kind: str, acts: bool, every: int, inline: str
) -> None:
    """At every thirteenth call; among the slow tests at each, or at every third."""
    first = prepared(kind, inline=inline)
    before = {name: first.pool.at(name).to_table().to_pylist() for name in ("main", "dev")}
    whole = copied(first)
    counting = KilledStore(whole.store, 0, acts=False)
    assert run(pool_on(counting, whole), kind).status == DONE
    after = {name: whole.pool.at(name).to_table().to_pylist() for name in ("main", "dev")}
    assert before != after
    for at in range(1 + acts * (every // 2), counting.calls + 1, every):
        world = copied(first)
        try:
            run(pool_on(KilledStore(world.store, at, acts=acts), world), kind)
        except KeyboardInterrupt:
            for name, rows in before.items():  # at once or not yet, never an older version
                seen = world.reopened().at(name).to_table().to_pylist()
                assert seen in (rows, after[name]), f"call {at}"
        world.clock.now += 700  # a vacuum's lease is dead
        done = run(world.reopened(), kind)
        assert done.status == DONE, f"call {at}"
        assert not world.holding(is_such(kind)), f"call {at}"
        assert not world.in_journal(is_such(kind)), f"call {at}"
        assert {name: world.reopened().at(name).to_table().to_pylist() for name in before} == after
        assert len(list(read_all(world.reopened()))) <= 2
        assert not list(verify(world.reopened(), done))


def test_a_writer_that_brings_such_records_back_meanwhile_is_met() -> None:
    """A load between the steps: the next round hides, rewrites and vacuums what it wrote."""
    world = prepared("append")

    class Loading(StoreInFront):
        behind = world.store
        loads = 0

        def ask(self, request: str, name: str, call: Callable[[], Any]) -> Any:
            answer = call()
            if request == "delete_all" and self.loads < 3:
                self.loads += 1
                world.reopened().branch().append(pa.table({"k": [40 + self.loads], "who": ["ann"], "n": [1]}))
            return answer

    done = erase(pool_on(Loading(), world), where=ANN)
    assert done.status == DONE
    assert not world.holding(is_such("append"))
    assert not list(verify(world.reopened(), done))
