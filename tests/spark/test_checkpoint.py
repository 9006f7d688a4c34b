"""The checkpoint application: journals spread over Spark's tasks, each on its own."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from log_lake.agents.checkpoint.run import checkpoint_pools
from log_lake.lake import Lake
from spark_apps.workers import workers_of
from tests.spark.conftest import Landing
from tests.support.damage import turn_a_bit

pytestmark = pytest.mark.spark


def grown(lake: Lake, name: str, transactions: int) -> None:
    """A pool with so many transactions, whose history need not be kept."""
    pool = lake.create_pool(name, key="k", settings={"history.keep": "0s"})
    for k in range(transactions):
        pool.branch().append(pa.table({"k": [k]}))


def test_each_journal_is_kept_by_a_task_of_its_own(spark: Any, landing: Landing) -> None:
    for number in range(5):
        grown(landing.lake, f"p{number}", number + 1)
    names = [f"p{number}" for number in range(5)]
    done = checkpoint_pools(workers_of(spark, landing.lake.context), [*names, "lake:pools"])
    assert [(one.pool, one.checkpoint, one.written) for one in done] == [
        ("lake:pools", 5, True),
        *((f"p{number}", number + 1, True) for number in range(5)),
    ]
    assert [one.entries for one in done] == [0, 1, 2, 3, 4, 5]
    again = checkpoint_pools(workers_of(spark, landing.lake.context), names)
    assert [(one.written, one.entries) for one in again] == [(False, 0)] * 5
    lake = Lake.open(landing.uri)
    assert [lake.pool(name).at().records for name in names] == [1, 2, 3, 4, 5]


def test_one_that_fails_leaves_the_others_standing(spark: Any, landing: Landing) -> None:
    grown(landing.lake, "good", 2)
    grown(landing.lake, "bad", 2)
    journal = landing.lake.pool("bad").history.journal
    landing.lake.store.delete(f"{journal.name}/{1:020}.txn")
    landing.lake.store.put(f"{journal.name}/{1:020}.txn", b"garbage")
    bad, good = checkpoint_pools(workers_of(spark, landing.lake.context), ["bad", "good"])
    assert (bad.pool, bad.kind, "not a journal entry" in bad.failed) == ("bad", "Corrupt", True)
    assert (good.pool, good.written) == ("good", True)
    assert landing.lake.pool("good").history.journal.marks().fence == 2


def test_a_damaged_page_of_the_newest_checkpoint_changes_no_answer(spark: Any, landing: Landing) -> None:
    branch = landing.lake.create_pool("p", key="k").branch()
    for k in range(4):
        branch.append(pa.table({"k": [k]}))
        checkpoint_pools(workers_of(spark, landing.lake.context), ["p"])
    newest = landing.lake.pool("p").history.journal.marks().checkpoints[0]
    turn_a_bit(landing.lake.store, newest.name)
    read = spark.read.format("lake").option("lake", landing.uri).load("p")
    assert [row.k for row in read.collect()] == [0, 1, 2, 3]
