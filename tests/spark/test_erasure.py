"""Erasure on Spark: objects searched, summed and rewritten by tasks, committed by the driver."""

from __future__ import annotations

from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lake_core import naming
from lake_core.errors import Incomplete, InvalidInput, ObjectMissing
from lake_core.keys import KeyRange
from log_lake.agents.erasure.run import erase_pending
from log_lake.erasure.holding import answer_of
from log_lake.erasure.noting import summed_if_there
from log_lake.erasure.receipt import read, read_all
from log_lake.erasure.run import erase, go_on
from log_lake.erasure.target import Target
from log_lake.erasure.verify import verify
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.objects.located import Located
from log_lake.workers import Here
from spark_apps.command import main
from spark_apps.workers import OnSpark
from tests.spark.conftest import Landing
from tests.support.agents import finder
from tests.support.workers import Watched

find = finder("erasure")

pytestmark = pytest.mark.spark

ANN = "who = 'ann'"
LOADS = 7


def no_spark() -> Any:
    raise AssertionError("Spark is not needed")


def filled(lake: Lake, name: str = "p", kind: str = "append") -> Pool:
    """Loads that overlap: each has a record of `ann`, the last one no other."""
    pool = lake.create_pool(name, key="k", kind=kind)
    for load in range(LOADS):
        pool.branch().append(pa.table({"k": [load, load + 100], "who": ["ann", f"bob{load}"]}))
    pool.branch().append(pa.table({"k": [50], "who": ["ann"]}))
    return pool


def rows(landing: Landing, name: str) -> list[dict[str, Any]]:
    """Every record of every object on the store, read by Arrow alone."""
    store, pool_id = landing.lake.store, landing.lake.pool(name).config.id
    listed = [info.name for info in store.list(naming.data(pool_id))]
    return [row for file in listed for row in pq.read_table(store.open_input(file)).to_pylist()]


@pytest.mark.parametrize("kind", ["append", "upsert"])
def test_no_object_holds_the_record_afterwards_as_without_spark(
    spark: Any, landing: Landing, kind: str
) -> None:
    for name in ("tasks", "here"):
        pool = filled(landing.lake, name, kind)
        pool.create_branch("dev")
        pool.branch("dev").append(pa.table({"k": [200, 201], "who": ["ann", "eve"]}))
    by_hand = erase(landing.lake.pool("here"), where=ANN)
    (work,) = find({"lake": landing.uri, "pools": ["tasks"], "where": ANN})
    asked: list[Any] = []

    def session() -> Any:
        asked.append(spark)
        return spark

    workers = OnSpark(session, landing.lake.context, always=True)
    (done,) = erase_pending(landing.lake, "tasks", work["erasures"], workers=workers)
    result = vars(done)
    assert (result["status"], result["deleted"], result["written"]) == (
        "done",
        len(by_hand.erased),
        len(by_hand.written),
    )
    assert asked
    assert not [row for row in rows(landing, "tasks") if row["who"] == "ann"]
    lake = Lake.open(landing.uri)
    for branch in ("main", "dev"):
        tables = [lake.pool(name).at(branch).to_table() for name in ("tasks", "here")]
        assert tables[0] == tables[1]
    receipt = read(lake.pool("tasks"), result["erasure"])
    assert not list(verify(lake.pool("tasks"), receipt))
    assert {one.object for one in receipt.written} <= landing.data("tasks")


def test_the_tasks_answer_as_the_driver_does(spark: Any, landing: Landing) -> None:
    """Object by object: one that holds such records, one that does not, a damaged one, one that is gone."""
    pool = filled(landing.lake)
    before = landing.data("p")
    pool.branch().append(pa.table({"k": [300], "who": ["cid"]}))
    (last,) = landing.data("p") - before
    damaged, *others = sorted(before)
    gone = pool.context.ids.new()
    landing.lake.store.put(naming.data_object(pool.config.id, damaged), b"PAR1 ann")
    ids = [damaged, *others, last, gone]
    objects = list(map(Located, ids))
    tasks, alone = OnSpark(lambda: spark, pool.context, always=True), Here.of(pool.context)
    target = Target(pool.config, KeyRange(pool.at().bound(300)))
    for workers in (tasks, alone):
        answers = dict(zip(ids, workers.map(partial(answer_of, target), objects, each=2), strict=True))
        assert isinstance(answers.pop(gone), ObjectMissing)
        assert damaged in str(answers.pop(damaged))
        assert [id for id, holds in answers.items() if holds] == [last]
    total = partial(summed_if_there, pool.config.id)
    assert tasks.map(total, objects, each=2) == alone.map(total, objects)
    assert tasks.map(total, objects)[-1] is None


def test_a_run_that_is_killed_is_gone_on_with(spark: Any, landing: Landing) -> None:
    """Killed after the objects were written and before they were committed."""
    filled(landing.lake)
    (work,) = find({"lake": landing.uri, "pools": ["p"], "where": ANN})

    pool = landing.lake.pool("p")

    def killed(name: str, count: int) -> None:
        if name == "write_whole":
            assert count == LOADS + 1
            raise KeyboardInterrupt

    tasks = OnSpark(lambda: spark, pool.context, always=True)
    with pytest.raises(KeyboardInterrupt):
        go_on(pool, read(pool, work["erasures"][0]), workers=Watched(tasks, after=killed))
    assert len(landing.data("p")) > LOADS + 1
    assert [row for row in rows(landing, "p") if row["who"] == "ann"]
    (again,) = find({"lake": landing.uri})
    assert again["erasures"] == work["erasures"]
    (result,) = erase_pending(landing.lake, "p", workers=OnSpark(lambda: spark, landing.lake.context))
    assert result.status == "done"
    assert not [row for row in rows(landing, "p") if row["who"] == "ann"]
    assert sorted(row["who"] for row in landing.lake.pool("p").at().to_table().to_pylist()) == [
        f"bob{load}" for load in range(LOADS)
    ]


def test_a_little_work_needs_no_spark(landing: Landing) -> None:
    pool = landing.lake.create_pool("p", key="k")
    pool.branch().append(pa.table({"k": [1, 2], "who": ["ann", "bob"]}))
    (work,) = find({"lake": landing.uri, "pools": ["p"], "key": "1"})
    workers = OnSpark(no_spark, landing.lake.context)
    (done,) = erase_pending(landing.lake, "p", work["erasures"], workers=workers)
    assert done.status == "done"
    assert landing.keys("p") == [2]
    assert find({"lake": landing.uri}) == []


def test_the_application_begins_reports_and_goes_on(
    landing: Landing, capsys: pytest.CaptureFixture[str]
) -> None:
    pool = landing.lake.create_pool("p", key="k")
    pool.branch().append(pa.table({"k": [1, 2], "who": ["ann", "bob"]}))
    pool.tag("yearly")
    erasure = ["erasure", "--spark", "--lake", landing.uri]
    assert main([*erasure, "--where", ANN]) == InvalidInput.exit_status
    assert "name the pools" in capsys.readouterr().err
    assert main([*erasure, "--where", ANN, "--dry-run", "p"]) == 0
    assert not list(read_all(pool))
    assert main([*erasure, "--where", ANN, "p"]) == Incomplete.exit_status
    assert "held by tag yearly: delete it: lake tag p -d yearly" in capsys.readouterr().err
    assert [one.status for one in read_all(pool)] == ["pending"]
    pool.delete_tag("yearly")
    assert main(erasure) == 0
    assert [one.status for one in read_all(pool)] == ["done"]
    assert landing.keys("p") == [2]
