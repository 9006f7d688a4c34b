"""The index agent: makes what objects lack, once and within its limit, and leaves no index of an erased record."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from lake_core import naming
from lake_core.errors import Incomplete
from lake_core.ids import IdSource
from log_lake.agents.compact.run import compact_pool, plan_pool
from log_lake.agents.index.plan import DAY, LEAST_TURNS, SHARE, of_today
from log_lake.erasure.run import erase
from log_lake.erasure.verify import verify
from log_lake.indexes.names import index_folder, list_indexes
from log_lake.indexes.rule import parse_rule
from log_lake.lake import Lake
from log_lake.rewriting.indexing import lacking, make_index, make_indexes
from log_lake.stores.memory import MemoryStore
from log_lake.vacuum.execute import vacuum
from log_lake.workers import Here, Worker
from tests.support.agents import finder, report, run
from tests.support.clocks import Clock
from tests.support.stores import StoreInFront

RULE = parse_rule("index.who", "bloom(who)")


class Killed(BaseException):
    """The process of the agent ends."""


class WatchedStore(StoreInFront):
    """A store that calls `at` before the request with this number, which is counted from 1."""

    def __init__(self, behind: Any, number: int, at: Callable[[], None]) -> None:
        self.behind, self.number, self.at = behind, number, at
        self.asked = 0

    def ask(self, request: str, name: str, call: Callable[[], Any]) -> Any:
        self.asked += 1
        if self.asked == self.number:
            self.at()
        return call()


class World:
    """A pool with objects that are older than its rule."""

    def __init__(self, *, objects: int = 3, settings: Mapping[str, str] | None = None) -> None:
        self.clock = Clock()
        self.store = MemoryStore("memory://index-agent", clock=self.clock)
        self.lake = Lake.create_on(self.store, ids=IdSource(clock=self.clock), author="test")
        self.pool = self.lake.create_pool("p", key="k", settings={"load.inline": "0", **(settings or {})})
        for names in (("ada", "zoe"), ("aaa", "zoe"), ("bob", "eve"))[:objects]:
            self.load(*names)
        self.add_rule()

    def load(self, *names: str) -> None:
        self.pool.branch().append(pa.table({"k": list(range(len(names))), "who": list(names)}))
        self.clock.now += 1

    def add_rule(self) -> None:
        self.lake.configure_pool("p", {RULE.setting: str(RULE)})
        self.pool = self.lake.pool("p")

    def open(self, store: Any) -> Lake:
        return Lake.open_on(store, ids=IdSource(clock=self.clock), author="agent")

    def find(self, **params: Any) -> list[dict[str, Any]]:
        return finder("index")({"lake": "memory", **params}, open_lake=lambda name: self.lake)

    def work(self) -> dict[str, Any]:
        """The result of the work that a run finds now."""
        (work,) = self.find()
        return run("index", work, lake=self.lake)

    def indexed(self) -> set[str]:
        return {one.object_id for one in list_indexes(self.store, self.pool.config.id)}

    def objects(self) -> set[str]:
        names = (naming.data_id(info.name) for info in self.store.list(self.pool.config.id))
        return {name for name in names if name}

    def make(self, store: Any) -> None:
        make_indexes(self.open(store).pool("p"))


def test_a_run_makes_what_is_lacking_and_the_next_finds_nothing(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    world = World()
    world.pool.create_branch("work")
    assert world.find(dry_run=True) == []
    assert "p: 3 objects lack an index" in caplog.text
    assert not world.indexed()
    done = world.work()
    assert (done["objects"], done["left"], done["gone"], done["faults"]) == (3, 0, 0, [])
    assert done["size"] == sum(one.info.size for one in list_indexes(world.store, world.pool.config.id))
    assert world.indexed() == world.objects()
    assert world.find() == []
    assert world.pool.at().plan(where="who = 'ada'").left_out.by_index == 1


def test_a_pool_without_rules_is_left_alone() -> None:
    world = World()
    world.lake.configure_pool("p", {RULE.setting: ""})
    assert world.find() == []
    assert not world.indexed()


def test_a_run_reads_no_more_than_its_limit_but_one_object_at_least() -> None:
    world = World(settings={"index.run.bytes": "1B"})
    for left in (2, 1, 0):
        done = world.work()
        assert (done["objects"], done["left"]) == (1, left)
    assert world.find() == []


def test_a_lost_index_is_made_again_and_a_damaged_one_on_its_day() -> None:
    world = World()
    world.work()
    lost, damaged, _ = sorted(one.info.name for one in list_indexes(world.store, world.pool.config.id))
    world.store.delete(lost)
    world.store.put(damaged, b"damaged")
    found = 0
    for _ in range(LEAST_TURNS):
        world.clock.now += DAY
        for work in world.find():
            found += run("index", work, lake=world.lake)["damaged"]
    assert found == 1
    assert len(world.store.get(damaged) or b"") > len(b"damaged")
    assert world.indexed() == world.objects()


def test_each_index_has_its_day_and_many_have_more_days() -> None:
    few = [_listed(f"a/{n}", 1) for n in range(100)]
    days = [of_today(few, now=day * DAY) for day in range(LEAST_TURNS)]
    assert sorted(one.info.name for day in days for one in day) == sorted(one.info.name for one in few)
    many = [replace_size(one, SHARE) for one in few]
    assert sum(len(of_today(many, now=day * DAY)) for day in range(100)) == 100
    assert max(len(of_today(many, now=day * DAY)) for day in range(100)) < 9


def _listed(name: str, size: int) -> Any:
    return SimpleNamespace(info=SimpleNamespace(name=name, size=size))


def replace_size(one: Any, size: int) -> Any:
    return _listed(one.info.name, size)


def test_an_object_that_cannot_be_read_fails_the_run_after_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World()
    first = min(world.objects())
    world.store.put(naming.data_object(world.pool.config.id, first), b"damaged")
    (work,) = world.find()
    done = run("index", work, lake=world.lake)
    assert (done["objects"], len(done["faults"])) == (2, 1)
    with pytest.raises(Incomplete, match=first):
        report("index", [work], [done])


def test_an_object_that_a_vacuum_took_gets_no_index() -> None:
    world = World()
    pool = world.pool
    task = lacking(pool, pool.history.load_open().state, [])[0]
    name = naming.data_object(pool.config.id, task.reference.object)
    worker = Worker(lambda: world.store, world.lake.context.ids.new)
    world.store.delete(name)
    assert make_index(pool.config, worker, task).is_gone
    assert not world.indexed()


# ---------------------------------------------------------------- races, and kills


def counted(do: Callable[[World, Any], object]) -> int:
    """The requests of some work in a world."""
    world = World(objects=2)
    watched = WatchedStore(world.store, 0, lambda: None)
    do(world, watched)
    return watched.asked


def check_done(world: World, object_id: str) -> None:
    """No index of the erased object is there once the receipt says that the erasure is done."""
    receipt = erase(world.lake.pool("p"), where="who = 'ada'", grace=0.0)
    assert receipt.status == "done"
    assert object_id not in world.objects() | world.indexed()
    assert not list(verify(world.lake.pool("p"), receipt))


def holder_of(world: World) -> str:
    """The object that has the record that is erased."""
    return world.pool.at().plan(where="who = 'ada'").references[0].object


def compacted(world: World) -> None:
    compact_pool(world.lake, "p", plan_pool(world.lake, "p", strategy="full", now=world.clock.now))
    world.clock.now += 60 * DAY


def emptied(world: World, store: Any) -> None:
    compacted(world)
    vacuum(world.open(store).pool("p"), grace=0.0)


STEP = 1 if os.environ.get("LAKE_TEST_KILLS") else 3
"""With LAKE_TEST_KILLS each request counts, otherwise each third."""
REQUESTS = counted(World.make)
REQUESTS_OF_VACUUM = counted(emptied)


@pytest.mark.parametrize("number", range(1, REQUESTS + 1, STEP))
def test_an_agent_that_is_killed_at_any_request_leaves_nothing_that_outlives_an_erasure(number: int) -> None:
    world = World(objects=2)
    object_id = holder_of(world)

    def die() -> None:
        raise Killed

    with pytest.raises(Killed):
        world.make(WatchedStore(world.store, number, die))
    world.clock.now += 2 * 3600  # its lease dies with it
    check_done(world, object_id)


@pytest.mark.parametrize("waits", [False, True], ids=["its lease lives", "its lease is dead"])
@pytest.mark.parametrize("number", range(1, REQUESTS + 1, STEP))
def test_an_erasure_at_any_request_of_the_agent_leaves_no_index_of_its_record(
    number: int, waits: bool
) -> None:
    world = World(objects=2)
    object_id = holder_of(world)
    statuses: list[str] = []

    def meanwhile() -> None:
        world.clock.now += 2 * 3600 if waits else 1
        statuses.append(erase(world.lake.pool("p"), where="who = 'ada'", grace=0.0).status)

    world.make(WatchedStore(world.store, number, meanwhile))
    if statuses == ["done"]:
        assert object_id not in world.objects() | world.indexed()
    else:
        check_done(world, object_id)


@pytest.mark.parametrize("number", range(1, REQUESTS_OF_VACUUM + 1, STEP))
def test_an_index_that_is_made_at_any_request_of_a_vacuum_goes_with_its_object(number: int) -> None:
    """The process of the agent has lost its lease, and writes its index as the vacuum works."""
    world = World(objects=2)
    pool, worker = world.pool, Here.of(world.lake.context).worker
    tasks = lacking(pool, pool.history.load_open().state, [])

    def late() -> None:
        for task in tasks:
            make_index(pool.config, worker, task)

    emptied(world, WatchedStore(world.store, number, late))
    assert len(world.objects()) == 1
    assert world.indexed() <= world.objects()


def test_index_objects_lie_where_the_agent_may_write() -> None:
    world = World()
    world.work()
    folder = index_folder(world.pool.config.id)
    assert all(
        one.info.name.startswith(f"{folder}/") for one in list_indexes(world.store, world.pool.config.id)
    )
