"""Retention on Spark: names listed and objects deleted by tasks, committed by the driver."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lake_core.errors import Incomplete
from lake_core.ids import IdSource, first_id
from lake_core.store import ObjectInfo, Store
from log_lake.agents.compact.run import compact_pool, plan_pool
from log_lake.agents.retention.run import retain
from log_lake.lake import Lake
from log_lake.stores import open_store
from log_lake.vacuum.execute import delete_batch
from log_lake.vacuum.orphans import iter_names, list_names, spans
from spark_apps.command import main
from spark_apps.session import spark_session
from spark_apps.workers import OnSpark
from tests.spark.conftest import Landing
from tests.support.agents import finder, run
from tests.support.stores import StoreInFront

find = finder("retention")

pytestmark = pytest.mark.spark

AT_ONCE = {"vacuum.grace": "0s", "history.keep": "0s"}
SECOND = 1_700_000_000


def no_spark() -> Any:
    raise AssertionError("Spark is not needed")


def grown(lake: Lake, name: str, loads: int, **settings: str) -> None:
    """A pool of so many loads, whose removed objects may be deleted at once."""
    pool = lake.create_pool(name, key="k", settings=AT_ONCE | settings)
    for k in range(loads):
        pool.branch().append(pa.table({"k": [k]}))


def test_removed_objects_are_deleted_by_tasks_and_the_rest_stays(spark: Any, landing: Landing) -> None:
    grown(landing.lake, "p", 10)
    plan = plan_pool(landing.lake, "p", strategy="full", now=landing.lake.context.now())
    compact_pool(landing.lake, "p", plan)
    assert len(landing.data("p")) == 11
    asked: list[Any] = []

    def session() -> Any:
        asked.append(spark)
        return spark

    done = retain(landing.lake, "p", workers=OnSpark(session, landing.lake.context, always=True))
    assert (done.vacuumed, done.spared) == (10, 0)
    assert asked
    assert landing.data("p") == landing.held("p")
    assert landing.keys("p") == list(range(10))


def test_a_little_work_needs_no_spark(landing: Landing) -> None:
    grown(landing.lake, "p", 4, **{"expire.records": "1"})
    done = retain(landing.lake, "p", workers=OnSpark(no_spark, landing.lake.context))
    assert (done.expired, done.vacuumed) == (3, 3)
    assert landing.keys("p") == [3]


def test_deleting_again_what_a_killed_task_deleted_already_does_no_harm(spark: Any, landing: Landing) -> None:
    store = landing.lake.store
    names = [f"x/{n:03}" for n in range(20)]
    for name in names[:15]:
        store.create(name, b"x")
    for _ in range(2):
        OnSpark(lambda: spark, landing.lake.context, always=True).map(delete_batch, [names[:9], names[9:]])
        assert list(store.list("x")) == []


class ListsFromName(StoreInFront):
    """A local store that says of itself that it lists from any name on, as S3 does."""

    def __init__(self, behind: Store) -> None:
        self.behind = behind

    @property
    def lists_from_name(self) -> bool:
        return True


def test_names_are_listed_by_tasks_each_once_and_in_order(spark: Any, landing: Landing) -> None:
    grown(landing.lake, "p", 0)
    store, pool_id = landing.lake.store, landing.lake.pool("p").config.id
    for second in [*range(0, 300, 7), 300, 300, 299]:  # several in one second too
        id = IdSource(clock=lambda at=second: SECOND + at).new()  # type: ignore[misc]
        store.create(f"{pool_id}/data/{id}.parquet", b"x" * (second + 1))
    pool = Lake.open_on(ListsFromName(store)).pool("p")
    for since, upto in (("", first_id(SECOND + 301)), (first_id(SECOND + 50), first_id(SECOND + 299.0))):
        listed = list_names(pool, since, upto, OnSpark(lambda: spark, pool.context), alone=2)
        assert listed == list(iter_names(store, pool_id, since, upto))
        assert len(listed) > 10
        assert all(isinstance(info, ObjectInfo) for info in listed)
    last = first_id(SECOND + 301)
    alone = list_names(pool, "", last, OnSpark(no_spark, pool.context))
    assert alone == list_names(pool, "", last, OnSpark(lambda: spark, pool.context), alone=2)


def test_other_stores_are_listed_by_the_driver(landing: Landing) -> None:
    grown(landing.lake, "p", 5)
    pool = landing.lake.pool("p")
    listed = list_names(pool, "", first_id(2**32), OnSpark(no_spark, pool.context), alone=2)
    assert len(listed) == 5


@pytest.mark.parametrize("count", [1, 3, 8, 1000])
def test_spans_of_time_lie_side_by_side(count: int) -> None:
    since, upto = first_id(SECOND + 5), first_id(SECOND + 100)
    bounds = spans(since, upto, count)
    assert (bounds[0], bounds[-1], bounds == sorted(set(bounds))) == (since, upto, True)
    assert 2 <= len(bounds) <= count + 1
    assert len(bounds) > min(count, 90)
    assert spans(since, since[:-1] + "1", 4)[0] == since


def test_the_agent_does_what_is_due_and_then_nothing(landing: Landing) -> None:
    grown(landing.lake, "p", 3, **{"expire.records": "1"})
    assert find({"lake": landing.uri, "dry_run": True}) == []
    (work,) = find({"lake": landing.uri})
    assert run("retention", work, open_spark=spark_session)["expired"] == 2
    assert landing.data("p") == landing.held("p")
    assert landing.keys("p") == [2]


def test_the_application_names_a_pool_that_fails_and_does_the_others(
    landing: Landing, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("bad", "good"):
        grown(landing.lake, name, 3, **{"expire.records": "1"})
    journal = landing.lake.pool("bad").history.journal.name
    landing.lake.store.put(f"{journal}/{2:020d}.txn", b"garbage")
    retention = ["retention", "--spark", "--lake"]
    assert main([*retention, landing.uri]) == Incomplete.exit_status
    assert "bad: " in capsys.readouterr().err
    assert landing.keys("good") == [2]
    assert main([*retention, str(Path(landing.uri) / "nowhere"), "good"]) != 0
    assert open_store(landing.uri).uri == landing.uri
