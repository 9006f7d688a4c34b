"""DAGs of users whose statements, conditions, file names and default arguments say something else than they mean.

They run by `dag.test()` in an Airflow of their own.  Each is a sibling of a case that went wrong once.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from log_lake.lake import Lake
from log_lake.lake.open_transactions import transactions
from tests.support.user_dags import Run, run_dags

pytestmark = [pytest.mark.airflow, pytest.mark.slow]

DAGS = """
import datetime as dt, jinja2
from airflow.sdk import DAG, CronDataIntervalTimetable, task, task_group
from airflow_lake.groups import CheckpointGroup, ErasureGroup, IngestGroup, LakeConfig, LakeTransaction
from airflow_lake.operators.delete import LakeDeleteOperator
from airflow_lake.operators.load import LakeLoadOperator
from airflow_lake.operators.replace import LakeReplaceOperator
from airflow_lake.operators.statement import LakeStatementOperator

ARGS = {"retries": 0}
ONCE = {"schedule": None, "default_args": ARGS}
DAILY = {"schedule": CronDataIntervalTimetable("@daily", "UTC"), "start_date": dt.datetime(2024, 1, 1),
         "catchup": False, "default_args": ARGS}
TWO = {"schedule": None, "default_args": {**ARGS, "lake": "lake_two"}}
DAY = "t >= '{{ data_interval_start | ds }}' AND t < '{{ data_interval_end | ds }}'"
LOAD = {"files": "FOLDER/new.ndjson", "on_spark": False}

with DAG("mapped_statements", **ONCE) as mapped_statements:
    texts = [f"INSERT INTO said BY NAME SELECT '{word}' AS k" for word in ("a", "b", "a")]
    LakeStatementOperator.partial(task_id="say").expand(sql=texts)

    @task_group
    def each(word):
        LakeStatementOperator(task_id="say", sql="INSERT INTO said BY NAME SELECT '{{ ti.map_index }}' AS k")
    each.expand(word=["x", "y"])

with DAG("by_hand", template_searchpath="FOLDER", **DAILY) as by_hand:
    LakeStatementOperator(task_id="delete", sql=f"DELETE FROM days WHERE {DAY}")
    LakeStatementOperator(task_id="file", sql="update.sql")
    LakeStatementOperator.partial(task_id="mapped").expand(sql=["update.sql"])

with DAG("meant", **DAILY) as meant:
    delete = LakeStatementOperator(task_id="delete", sql=f"DELETE FROM meant WHERE {DAY}", by_hand=True)
    insert = "INSERT INTO meant BY NAME SELECT '{{ data_interval_start | ds }}' AS t"
    fixed = LakeStatementOperator(task_id="fixed", sql="DELETE FROM meant WHERE t = '2024-01-03'")
    delete >> LakeStatementOperator(task_id="insert", sql=insert) >> fixed

with DAG("empty", params={"day": ""}, **ONCE) as empty:
    where = "t > '{{ params.day }}'"
    LakeDeleteOperator(task_id="delete", pool_name="days", where=where)
    LakeReplaceOperator(task_id="replace", pool_name="days", files="FOLDER/new.ndjson", where=where)
    LakeDeleteOperator.partial(task_id="mapped", pool_name="days").expand(where=[where])
    folder = {"pool_name": "days", "low": "2024", "missing": "empty", "files": "FOLDER/{{ params.day }}/*.ndjson"}
    LakeReplaceOperator(task_id="folder", **folder)
    ErasureGroup(LakeConfig(pools=["days"], asked={"where": where, "grace": "0s"}))

with DAG("undefined", template_undefined=jinja2.Undefined, **ONCE) as undefined:
    LakeDeleteOperator(task_id="delete", pool_name="days", low="{{ dag_run.conf.day }}-01")

with DAG("lists", params={"files": '["FOLDER/new.ndjson"]', "pools": ["days"]}, **ONCE) as lists:
    @task
    def names():
        return ["FOLDER/new.ndjson"]
    replace = {"pool_name": "days", "low": "2024", "missing": "empty"}
    names() >> LakeReplaceOperator(task_id="pulled", files="{{ ti.xcom_pull(task_ids='names') }}", **replace)
    LakeReplaceOperator(task_id="form", files="{{ params.files }}", **replace)
    CheckpointGroup(LakeConfig(pools="{{ params.pools }}"))

with DAG("lake_of_args", **TWO) as lake_of_args:
    with LakeTransaction(pools=["both"]) as tx:
        LakeLoadOperator(task_id="load", pool_name="both", transaction=tx.id, **LOAD)
    tx >> IngestGroup(LakeConfig(pools=["landed"]))

with DAG("message", params={"n": 5}, render_template_as_native_obj=True, **ONCE) as message:
    with LakeTransaction(pools=["both"], message="{{ params.n }}") as tx:
        LakeLoadOperator(task_id="load", pool_name="both", transaction=tx.id, **LOAD)
"""
NAMES = ("mapped_statements", "by_hand", "meant", "empty", "undefined", "lists", "lake_of_args", "message")
DAYS = ["2024-01-03", "2024-01-04", "2024-01-05"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("conditions")
    lake, two = Lake.create(str(folder / "lake")), Lake.create(str(folder / "two"))
    for name in ("days", "meant"):
        lake.create_pool(name, key="t").branch().append(pa.table({"t": DAYS}))
    lake.create_pool("said", key="k", settings={"type.k": "string"})
    (folder / "in").mkdir()
    (folder / "in" / "a.ndjson").write_text('{"k": "landed"}\n')
    for each in (lake, two):
        each.create_pool("both", key="k")
        each.create_pool(
            "landed", key="k", settings={"ingest.source": f"{folder}/in", "ingest.batch_age": "0s"}
        )
    (folder / "new.ndjson").write_text('{"k": "new", "t": "2024-01-09"}\n')
    interval = "t >= '{{ data_interval_start | ds }}'"
    (folder / "update.sql").write_text(f"UPDATE days SET note = 'late' WHERE {interval}")
    return folder


@pytest.fixture(scope="module")
def ran(place: Path) -> tuple[dict[str, Run], str]:
    two = {"conn_type": "lake", "host": str(place / "two"), "extra": {"in_task_mib": 64}}
    runs, said = run_dags(
        place,
        DAGS,
        [(name, {}) for name in NAMES],
        date="2024-01-05T00:00:00+00:00",
        environ={"AIRFLOW_CONN_LAKE_TWO": json.dumps(two)},
    )
    return dict(zip(NAMES, runs, strict=True)), said


def held(place: Path, pool: str, lake: str = "lake") -> list[Any]:
    """The keys of a pool."""
    table = Lake.open(str(place / lake)).pool(pool).at().to_table()
    return table[0].to_pylist() if table.num_columns else []


def test_mapped_statements_are_each_done_and_the_same_one_once(
    place: Path, ran: tuple[dict[str, Run], str]
) -> None:
    runs, said = ran
    assert runs["mapped_statements"].state == "success", said[-4000:]
    assert held(place, "said") == ["0", "1", "a", "b"]


def test_a_statement_of_the_interval_is_refused_in_a_run_by_hand(
    place: Path, ran: tuple[dict[str, Run], str]
) -> None:
    runs, said = ran
    assert set(runs["by_hand"].tasks.values()) == {"failed"}
    for task in ("delete", "file", "mapped"):
        assert f"{task}: this run was started by hand, or by another DAG" in said
    assert runs["meant"].state == "success", "it means it, inserts, or names a day of its own"
    assert held(place, "meant") == ["2024-01-04", "2024-01-05"]


def test_an_empty_text_or_none_in_a_condition_removes_nothing(
    place: Path, ran: tuple[dict[str, Run], str]
) -> None:
    runs, said = ran
    tasks = runs["empty"].tasks
    refused = ("delete[-1]", "replace[-1]", "mapped[0]", "folder[-1]", "erasure.find[-1]")
    assert [tasks[name] for name in refused] == ["failed"] * 5
    assert "//*.ndjson': a template gave an empty text between slashes" in said
    assert said.count("where=\"t > ''\": a template gave an empty text between quotes") >= 4
    assert runs["undefined"].state == "failed"
    assert held(place, "days") == DAYS
    assert not list(place.rglob("*erasures/*"))


def test_a_list_that_became_a_text_names_no_file_and_no_pool(
    place: Path, ran: tuple[dict[str, Run], str]
) -> None:
    runs, said = ran
    assert [runs["lists"].tasks[name] for name in ("pulled[-1]", "form[-1]", "checkpoint.find[-1]")] == [
        "failed"
    ] * 3
    assert "pulled: files is a list that became a text" in said
    assert "LakeConfig: pools is a list that became a text" in said
    assert held(place, "days") == DAYS


def test_a_group_and_a_transaction_work_in_the_lake_of_the_default_args(
    place: Path, ran: tuple[dict[str, Run], str]
) -> None:
    runs, said = ran
    assert runs["lake_of_args"].state == "success", said[-4000:]
    assert [held(place, name, "two") for name in ("both", "landed")] == [["new"], ["landed"]]
    assert held(place, "landed") == []


def test_the_message_of_a_transaction_may_be_a_number(place: Path, ran: tuple[dict[str, Run], str]) -> None:
    runs, said = ran
    assert runs["message"].state == "success", said[-4000:]
    assert [one.message for one in transactions(Lake.open(str(place / "lake")))] == ["5"]
