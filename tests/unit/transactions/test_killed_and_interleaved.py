"""A commit over two pools that is killed at each of its requests, or during which others work at each of them.

Whatever happens, both pools show the transaction or neither does, at every moment and in every process.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest

from lake_core.errors import Conflict, Corrupt, LakeError, NotFound, OutcomeUnknown
from lake_core.history import Draft
from lake_core.journal import write_state
from lake_core.journal.purge import purge
from lake_core.records import CreateBranch, Prepare
from log_lake.lake import Lake
from log_lake.lake.moment import states_at_one_moment
from log_lake.lake.open_transactions import clean
from log_lake.stores.memory import MemoryStore
from tests.support.stores import StoreInFront, one_by_one

BASE = {"a": [1, 2], "b": [5, 6]}
WITH = {"a": [1, 2, 3], "b": [6, 9]}


class Killed(BaseException):
    """The process is gone."""


@dataclass
class Clock:
    """The clock of the store and of all processes."""

    time: float = 1_790_000_000.0

    def __call__(self) -> float:
        self.time += 0.001
        return self.time


class Stepped(StoreInFront):
    """Calls `at` before, or after, the request of a number, from 0."""

    def __init__(self, behind: MemoryStore, number: int, at: Callable[[], None], *, after: bool) -> None:
        self.behind, self.number, self.at, self.after = behind, number, at, after
        self.count = 0
        self.is_dead = False

    def ask(self, request: str, name: str, call: Callable[[], Any]) -> Any:
        number, self.count = self.count, self.count + 1
        if self.is_dead:
            raise Killed
        if number == self.number and not self.after:
            self.at()
        answer = call()
        if number == self.number and self.after:
            self.at()
        return answer


@dataclass
class World:
    """A lake of two pools with a transaction that has written and is not committed."""

    store: MemoryStore
    clock: Clock
    id: str = ""
    seen: list[bool] = field(default_factory=list)

    def lake(self, store: Any = None) -> Lake:
        return Lake.open_on(self.store if store is None else store, author="test")

    def shows(self) -> bool:
        """Whether readers see the transaction: pool by pool in both orders, and together."""
        lake = self.lake()
        kept: list[bool] = []
        for name in ("a", "b", "a"):
            there = keys(lake, name)
            assert there in (BASE[name], WITH[name]), (name, there)
            kept.append(there == WITH[name])
        assert kept == sorted(kept), f"shown, and then not: {kept}"
        states = states_at_one_moment([lake.pool("a"), lake.pool("b")])
        assert len(states) == 2
        if self.seen and self.seen[-1]:
            assert kept[0], "it was shown before"
        self.seen.append(kept[-1])
        return kept[-1]


def keys(lake: Lake, name: str) -> list[int]:
    found: list[int] = lake.pool(name).at().to_table()["k"].to_pylist()
    return found


def table(*found: int) -> pa.Table:
    return pa.table({"k": pa.array(found, pa.int64())})


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lake_core.history.transactions.waiting.DecisionWait.asks", lambda self: True)
    monkeypatch.setattr("lake_core.journal.retry.Retry.pause", lambda self, attempt: None)


@pytest.fixture(scope="module")
def begun() -> World:
    clock = Clock()
    world = World(MemoryStore("memory://tx", clock=clock), clock)
    lake = Lake.create_on(world.store, author="test")
    for name, there in BASE.items():
        lake.create_pool(name, key="k").branch().append(table(*there))
    tx = lake.transaction(token="once")
    tx.pool("a").append(table(3))
    tx.pool("b").delete(where="k = 5")
    tx.pool("b").append(table(9))
    world.id = tx.id
    return world


def copied(world: World) -> World:
    clock = Clock(world.clock.time)
    store = MemoryStore("memory://tx", clock=clock)
    for info in world.store.list(""):
        store.put(info.name, world.store.get(info.name) or b"")
    return World(store, clock, world.id)


STRIDE = int(os.environ.get("LAKE_TEST_STRIDE", "23"))
"""Every so many requests of a commit are tried, from another one on in each test; 1 tries all, in ten minutes."""


def steps(begun: World, at: Callable[[World], None], *, after: bool) -> Iterator[tuple[World, Any]]:
    """A world for each request of the commit that is tried, with its outcome."""
    number = (len(getattr(at, "__name__", "")) + after) % STRIDE
    while True:  # bounded by the requests of a commit
        world = copied(begun)
        store = Stepped(world.store, number, lambda world=world: at(world), after=after)
        outcome: Any
        try:
            lake = world.lake(store)
            lake.catalog.journal.fetch = one_by_one
            outcome = lake.transaction(world.id).commit()
        except Killed:
            outcome = Killed
        except LakeError as error:
            outcome = error
        if store.count <= number:
            return
        yield world, outcome
        number += STRIDE


def end(world: World) -> bool:
    """Commit again, as a person would; whether the transaction is in both pools.  Nothing is left behind."""
    was, is_forgotten = world.shows(), False
    world.clock.time += 60
    try:
        world.lake().transaction(world.id).commit()
        done = True
    except (Conflict, NotFound) as error:
        done = False
        is_forgotten = isinstance(error, NotFound)
    assert world.shows() is done or (was and is_forgotten)
    assert not was or done or is_forgotten
    lake = world.lake()
    for name in BASE:
        state = lake.pool(name).history.load().state
        assert not len(state.pending)
        assert set(state.branches.keys()) == {"main"}
    return done


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("after", [False, True])
def test_killed_at_each_request(begun: World, after: bool) -> None:
    def die(world: World) -> None:
        raise Killed

    done = [end(world) for world, outcome in steps(begun, die, after=after) if outcome is Killed]
    assert all(done)  # the next commit finishes what the killed one began
    assert done


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("after", [False, True])
def test_killed_and_met_by_a_writer_that_does_not_commute(begun: World, after: bool) -> None:
    def die(world: World) -> None:
        raise Killed

    outcomes = set()
    for world, outcome in steps(begun, die, after=after):
        if outcome is not Killed:
            continue
        shown = world.shows()
        world.clock.time += 60
        lake = world.lake()
        saw = 9 in keys(lake, "b")
        assert saw is shown
        lake.pool("b").branch().delete(where="k = 9 or k = 1000")
        lake.pool("a").branch().delete(where="k = 77 or k = 3")
        after_all = {name: keys(world.lake(), name) for name in BASE}
        if shown:
            assert after_all == {"a": [1, 2], "b": [6]}  # the delete found what its writer saw
        else:
            assert after_all == BASE
        outcomes.add(shown)
        with contextlib.suppress(Conflict, NotFound):
            world.lake().transaction(world.id).commit()
        ended = {name: keys(world.lake(), name) for name in BASE}
        assert ended in (after_all, WITH, {"a": [1, 2, 3], "b": [6, 9]})
        assert (3 in ended["a"]) is (9 in ended["b"])
    assert outcomes == {False, True} or STRIDE > 3


def reads(world: World) -> None:
    world.shows()


def loads(world: World) -> None:
    """A load that commutes with the part in a; it must not wait, since the owner stands still."""
    world.lake().pool("a").branch().append(table(2))


def purges(world: World) -> None:
    lake = world.lake()
    for name in BASE:
        journal = lake.pool(name).history.journal
        loaded = journal.load()
        write_state(journal, loaded, id=lake.context.ids.new(), now=world.clock())
        purge(journal, until=loaded.version)


def aborts(world: World) -> None:
    with contextlib.suppress(Conflict):
        world.lake().transaction(world.id).abort()


def commits_too(world: World) -> None:
    with contextlib.suppress(Conflict, NotFound, OutcomeUnknown):
        world.lake().transaction(world.id).commit()


def stands_still(world: World) -> None:
    """The owner is silent for a minute, and a writer that does not commute comes by."""
    world.shows()
    world.clock.time += 60
    world.lake().pool("b").branch().delete(where="k = 12345")
    world.lake().pool("a").branch().delete(where="k = 12345")


def cleans(world: World) -> None:
    world.clock.time += 7_200
    clean(world.lake(), grace=3_600)


ACTORS = {one.__name__: one for one in (reads, aborts, commits_too, stands_still, cleans, purges)}


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("name", ACTORS)
def test_others_work_at_each_request(begun: World, name: str) -> None:
    for world, outcome in steps(begun, ACTORS[name], after=False):
        shown = world.shows()
        if isinstance(outcome, Exception):
            assert isinstance(outcome, Conflict | NotFound | OutcomeUnknown), outcome
            assert not shown or isinstance(outcome, OutcomeUnknown | NotFound)
        else:
            assert shown
        end(world)


@pytest.mark.usefixtures("quick")
def test_a_load_that_commutes_passes_at_each_request(begun: World) -> None:
    for world, outcome in steps(begun, loads, after=False):
        lake = world.lake()
        assert not isinstance(outcome, Exception)
        assert (keys(lake, "a"), keys(lake, "b")) == ([1, 2, 2, 3], [6, 9])


@pytest.mark.usefixtures("quick")
def test_another_transaction_over_the_same_pools_at_each_request(begun: World) -> None:
    """It waits for the first one, which stands still until its lease is dead."""

    def second(world: World) -> None:
        world.clock.time += 60
        with world.lake().transaction() as tx:
            tx.pool("b").append(table(100))
            tx.pool("a").append(table(100))

    for world, outcome in steps(begun, second, after=False):
        lake = world.lake()
        a, b = keys(lake, "a"), keys(lake, "b")
        assert a[-1] == b[-1] == 100
        is_in = not isinstance(outcome, Exception)
        assert (a[:-1], b[:-1]) == ((WITH["a"], WITH["b"]) if is_in else (BASE["a"], BASE["b"]))


@pytest.mark.usefixtures("quick")
def test_a_part_that_names_a_transaction_of_other_pools_does_not_end_it() -> None:
    """Who writes pool c alone prepares a part of it, and another writer of c waits for the decision."""
    lake = Lake.create_on(MemoryStore("memory://forged"), author="test")
    for name in ("a", "b", "c"):
        lake.create_pool(name, key="k").branch().append(table(1))
    tx = lake.transaction()
    tx.pool("a").append(table(2))
    tx.pool("b").append(table(2))
    pool, ids = lake.pool("c"), lake.context.ids
    pool.commit_actions((CreateBranch("main"),), branch=tx.branch, message="")
    pool.branch(tx.branch).append(table(3))
    part = Prepare(tx.id, tx.branch, "main", ids.new())
    pool.history.commit(Draft(ids.new(), "", pool.history.load().version, "evil", (part,)))
    with pytest.raises(Corrupt, match=r"/journal: a pending part of .*, whose commit has not begun"):
        pool.branch().delete(where="k = 1")
    tx.commit()
    assert [keys(lake, name) for name in ("a", "b", "c")] == [[1, 2], [1, 2], [1, 3]]
