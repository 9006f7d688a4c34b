"""What agents put off is a job too: once for each reason, and again only if something happens in the pool."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest

from lake_core import naming
from lake_core.errors import Unavailable
from lake_core.ids import IdSource
from log_lake.agents import put_off_jobs
from log_lake.agents.jobs import PUT_OFF, list_jobs
from log_lake.agents.put_off_jobs import MAX_RECORDED, record_put_off
from log_lake.agents.work import PutOff
from log_lake.lake import Lake
from log_lake.stores.memory import MemoryStore
from tests.support.clocks import DAY, Clock
from tests.support.stores import ScriptedStore

HOUR = DAY / 24
PAUSED = "agents=paused"


@dataclass
class World:
    """A lake whose clock, and that of its store, a test moves."""

    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self.store = MemoryStore("memory://put-off", clock=self.clock)
        self.lake = Lake.create_on(self.store, ids=IdSource(clock=self.clock), author="test")
        for name in ("a", "b"):
            self.lake.create_pool(name, key="k")
            self.load(name)

    def load(self, pool: str) -> None:
        """Write to a pool, as another process does: it writes an activity note."""
        other = Lake.open_on(self.store, ids=IdSource(clock=self.clock))
        other.pool(pool).branch().append(pa.table({"k": [1]}))

    def put_off(self, *pools: str, why: str = PAUSED, **more: Any) -> int:
        """A run, an hour after the last one, that puts off pools; how many records it wrote."""
        self.clock.now += HOUR
        before = len(list_jobs(self.lake))
        work = [
            PutOff(**{"pool": pool, "branch": "main", "title": pool, "why": why} | more) for pool in pools
        ]
        record_put_off(self.lake, work, agent="compact")
        return len(list_jobs(self.lake)) - before


@pytest.fixture
def world() -> World:
    return World()


def test_a_pool_that_is_put_off_has_a_job_that_says_why(world: World) -> None:
    assert world.put_off("a", "b") == 2
    job = next(one for one in list_jobs(world.lake, pool_name="a"))
    assert (job.agent, job.pool, job.branch, job.state, job.why) == ("compact", "a", "main", PUT_OFF, PAUSED)
    assert (job.ended, job.seconds, job.error, job.figures) == (job.began, 0.0, None, {})
    assert {one.pool for one in list_jobs(world.lake, state=PUT_OFF)} == {"a", "b"}


def test_a_pool_that_is_put_off_every_hour_is_recorded_once_a_day_while_it_is_written_to(
    world: World,
) -> None:
    for _ in range(3 * 24):
        world.load("a")
        world.put_off("a", "b")
    assert len(list_jobs(world.lake, pool_name="a")) == 3
    assert len(list_jobs(world.lake, pool_name="b")) == 1, "nothing happens there: once is enough"


def test_another_reason_is_recorded_at_once(world: World) -> None:
    hours = "it is outside of upkeep.window (22:00-06:00)"
    assert [world.put_off("a"), world.put_off("a", why=hours), world.put_off("a", why=hours)] == [1, 1, 0]
    assert [job.why for job in list_jobs(world.lake, pool_name="a")] == [hours, PAUSED]


def test_a_pool_that_was_made_again_under_the_same_name_is_another_one(world: World) -> None:
    assert [world.put_off("a"), world.put_off("a")] == [1, 0]
    world.lake.drop_pool("a")
    world.lake.create_pool("a", key="k")
    assert [world.put_off("a"), world.put_off("a")] == [1, 0]


def test_each_agent_and_each_branch_is_recorded(world: World) -> None:
    world.put_off("a")
    assert world.put_off("a", branch="dev") == 1
    work = [PutOff(pool="a", branch="main", title="a", why=PAUSED)]
    record_put_off(world.lake, work, agent="retention")
    agents = [(job.agent, job.branch) for job in list_jobs(world.lake, pool_name="a")]
    assert sorted(agents) == [("compact", "dev"), ("compact", "main"), ("retention", "main")]


def test_what_the_limit_of_a_run_left_is_recorded_once_a_day(world: World) -> None:
    assert sum(world.put_off("", left=7) for _ in range(2 * 24 + 1)) == 3
    oldest = list_jobs(world.lake, state=PUT_OFF)[-1]
    assert (oldest.pool, oldest.figures) == ("", {"left": 7})


def test_what_a_person_refused_is_recorded_once_a_day_although_nothing_is_written(world: World) -> None:
    assert sum(world.put_off("a", why="ann refused", looked_at=True) for _ in range(2 * 24 + 1)) == 3


def test_a_run_that_puts_off_nothing_asks_nothing_and_one_without_news_asks_one_read() -> None:
    store = ScriptedStore()
    lake = Lake.create_on(store)
    lake.create_pool("a", key="k")
    work = [PutOff(pool="a", title="a", why=PAUSED)]
    record_put_off(lake, work, agent="compact")
    lake.pools()
    store.requests.clear()
    record_put_off(lake, [], agent="compact")
    assert store.requests == []
    record_put_off(lake, work, agent="compact")
    of_the_list = (f"{naming.POOLS_JOURNAL}/", naming.gates(naming.POOLS_JOURNAL))
    asked = [(request, name) for request, name in store.requests if not name.startswith(of_the_list)]
    assert asked == [("get", naming.quiet("compact", put_off_jobs.WAY))]


def test_no_run_writes_more_records_than_its_bound(world: World) -> None:
    names = [f"p{number}" for number in range(MAX_RECORDED + 5)]
    assert world.put_off(*names) == MAX_RECORDED
    assert world.put_off(*names) == 5, "the next run writes the rest"


def test_work_on_the_pool_of_jobs_is_not_recorded_and_pools_that_are_gone_are_forgotten(world: World) -> None:
    world.put_off("a", naming.JOBS)
    assert [job.pool for job in list_jobs(world.lake)] == ["a"]
    world.lake.drop_pool("a")
    world.put_off("b")
    kept = world.store.get(naming.quiet("compact", put_off_jobs.WAY)) or b""
    assert b"b@main" in kept
    assert b"a@main" not in kept


def test_a_record_that_cannot_be_written_fails_no_run(
    world: World, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object, **__: object) -> None:
        raise Unavailable("the store is away")

    monkeypatch.setattr(world.store, "create", away)
    assert world.put_off("a") == 0
    assert "compact: what was put off is not recorded: " in caplog.text


def test_a_memory_that_is_garbage_writes_the_record_once_more(world: World) -> None:
    world.put_off("a")
    world.store.put(naming.quiet("compact", put_off_jobs.WAY), b"[1]")
    assert [world.put_off("a"), world.put_off("a")] == [1, 0]


def test_what_the_limit_left_is_remembered_beside_other_news(world: World) -> None:
    assert world.put_off("", why="the limit of a run is 1", left=3) == 1
    assert world.put_off("a") == 1
    assert world.put_off("", why="the limit of a run is 1", left=3) == 0
    assert world.put_off("b.$rejected") == 1
    assert world.put_off("a", why="upkeep.window=22:00-06:00") == 1
    assert world.put_off("b.$rejected") == 0
