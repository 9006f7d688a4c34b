"""A run of a DAG as one transaction over three pools, by `dag.test()`: fails, is run again, and twice.

The runs have the same id, as one that is cleared.
"""

from __future__ import annotations

import contextlib
import sqlite3
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from log_lake.lake import Lake
from log_lake.lake.open_transactions import transactions
from tests.support.user_dags import Run, run_dags

pytestmark = [pytest.mark.airflow, pytest.mark.slow]

DAGS = """
from airflow.sdk import DAG, task
from airflow_lake.groups import LakeTransaction
from airflow_lake.operators.delete import LakeDeleteOperator
from airflow_lake.operators.load import LakeLoadOperator
from airflow_lake.operators.query import LakeQueryOperator
from airflow_lake.operators.replace import LakeReplaceOperator

with DAG("nightly", schedule=None, default_args={"retries": 0}) as nightly:
    with LakeTransaction(pools=["orders", "totals", "old"], group_id="night") as tx:

        @task
        def sum_up(id):
            import pyarrow as pa
            from airflow_lake.hooks.lake import LakeHook

            transaction = LakeHook().get_lake().transaction(id)
            total = sum(transaction.at("orders").to_table()["v"].to_pylist())
            transaction.pool("totals").append(pa.table({"k": [1], "v": [total]}))

        load = LakeLoadOperator(task_id="load", pool_name="orders", files="FOLDER/orders.csv", transaction=tx.id)
        delete = LakeDeleteOperator(task_id="delete", pool_name="old", where="k < 3", transaction=tx.id)
        replace = LakeReplaceOperator(task_id="replace", pool_name="old", low="5", high="6", transaction=tx.id)
        sql = 'SELECT (SELECT sum(v) FROM totals) = {{ dag_run.conf.total }} AND count(*) = 2 FROM "old"'
        check = LakeQueryOperator(task_id="check", sql=sql, must_hold=True, transaction=tx.id)
        load >> sum_up(tx.id) >> check
        [delete, replace] >> check

with DAG("corrected", schedule=None, default_args={"retries": 0}) as corrected:
    with LakeTransaction(pools=["orders", "totals"], once=False) as tx:
        both = {"files": "FOLDER/orders.csv", "low": "1", "high": "9", "transaction": tx.id}
        LakeReplaceOperator(task_id="orders", pool_name="orders", **both)
        LakeReplaceOperator(task_id="totals", pool_name="totals", **both)
"""

TASKS = {
    f"night.{name}[-1]": "success"
    for name in ("begin", "load", "sum_up", "delete", "replace", "check", "commit")
}


@dataclass(frozen=True)
class Lived:
    """The lake, and what became of the runs."""

    lake: Lake
    runs: list[Run]
    folder: Path


def rows(lake: Lake, pool: str) -> list[int]:
    table = lake.pool(pool).at().to_table()
    return table["k"].to_pylist() if table.num_columns else []


def begun(folder: Path) -> Lake:
    lake = Lake.create(str(folder / "lake"))
    for name in ("orders", "totals"):
        lake.create_pool(name, key="k")
    lake.create_pool("old", key="k").branch().append(pa.table({"k": [1, 2, 3, 4, 5]}))
    (folder / "orders.csv").write_text("k,v\n1,10\n2,20\n")
    return lake


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> Lived:
    folder = tmp_path_factory.mktemp("failed")
    lake = begun(folder)
    runs, _ = run_dags(folder, DAGS, [("nightly", {"total": 31})])
    return Lived(lake, runs, folder)


@pytest.fixture(scope="module")
def repeated(tmp_path_factory: pytest.TempPathFactory) -> Lived:
    folder = tmp_path_factory.mktemp("repeated")
    lake = begun(folder)
    runs, _ = run_dags(folder, DAGS, [("nightly", {"total": total}) for total in (31, 30, 30)], same_run=True)
    return Lived(lake, runs, folder)


def test_a_check_that_fails_leaves_nothing_in_any_pool(failed: Lived) -> None:
    (run,) = failed.runs
    assert run.state == "failed"
    assert run.tasks["night.check[-1]"] == "failed"
    assert run.tasks["night.commit[-1]"] == "upstream_failed"
    assert run.tasks["night.end[-1]"] == "success"
    assert {name: rows(failed.lake, name) for name in ("orders", "totals", "old")} == {
        "orders": [],
        "totals": [],
        "old": [1, 2, 3, 4, 5],
    }
    assert transactions(failed.lake) == []
    for name in ("orders", "totals", "old"):
        assert set(failed.lake.pool(name).history.load_open().state.branches) == {"main"}


def test_a_run_that_is_run_again_commits_all_pools_once(repeated: Lived) -> None:
    assert [run.state for run in repeated.runs] == ["failed", "success", "success"]
    assert repeated.runs[1].tasks == TASKS | {"night.end[-1]": "success"}
    assert set(repeated.runs[2].tasks.values()) == {"skipped"}
    assert {name: rows(repeated.lake, name) for name in ("orders", "totals", "old")} == {
        "orders": [1, 2],
        "totals": [1],
        "old": [3, 4],
    }
    assert [row.state for row in transactions(repeated.lake) if row.state != "committed"] == []


def test_the_commit_alone_emits_events_of_the_pools(repeated: Lived) -> None:
    with contextlib.closing(sqlite3.connect(repeated.folder / "airflow" / "airflow.db")) as base:
        tasks = base.execute("SELECT DISTINCT source_task_id FROM asset_event").fetchall()
    assert tasks == [("night.commit",)]


def test_a_run_that_may_be_repeated_commits_again_when_it_is_cleared(tmp_path: Path) -> None:
    lake = begun(tmp_path)
    runs, _ = run_dags(tmp_path, DAGS, [("corrected", {}), ("corrected", {})], same_run=True)
    assert [run.state for run in runs] == ["success"] * 2
    assert set(runs[1].tasks.values()) == {"success"}
    assert {name: rows(lake, name) for name in ("orders", "totals")} == {"orders": [1, 2], "totals": [1, 2]}
    assert [row.state for row in transactions(lake)] == ["committed"] * 2
