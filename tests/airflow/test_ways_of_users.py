"""DAGs as users may write them beside those of the guide: intervals, native objects, mapped work, several lakes.

They run by `dag.test()` in an Airflow of their own.  Each is a sibling of a case that went wrong once.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from log_lake.lake import Lake
from tests.support.user_dags import Run, run_dags

pytestmark = [pytest.mark.airflow, pytest.mark.slow]

DAGS = """
import datetime as dt, json
from airflow.sdk import DAG, CronDataIntervalTimetable, get_current_context, task, task_group
from airflow_lake.groups import CheckpointGroup, CompactGroup, ErasureGroup, IngestGroup, LakeConfig
from airflow_lake.operators.delete import LakeDeleteOperator
from airflow_lake.operators.load import LakeLoadOperator
from airflow_lake.operators.query import LakeQueryOperator
from airflow_lake.operators.replace import LakeReplaceOperator
from airflow_lake.sensors.transactions import LakeTransactionSensor

ONCE = {"schedule": None, "default_args": {"retries": 0}}
DAILY = {"schedule": CronDataIntervalTimetable("@daily", "UTC"), "start_date": dt.datetime(2024, 1, 1),
         "catchup": False, "default_args": {"retries": 0}}
NATIVE = {**ONCE, "render_template_as_native_obj": True}
NONE = {"files": "FOLDER/none/*", "missing": "empty"}
WHERE = "t >= '{{ data_interval_start | ds }}' and t < '{{ data_interval_end | ds }}'"
LOAD = {"on_spark": False}

with DAG("erase_where", **DAILY) as erase_where:
    ErasureGroup(LakeConfig(pools=["days"], asked={"where": WHERE}))

with DAG("erase_range", **DAILY) as erase_range:
    asked = {"from": "{{ data_interval_start | ds }}", "to": "{{ data_interval_end | ds }}"}
    ErasureGroup(LakeConfig(pools=["days"], asked=asked))

with DAG("erase_meant", **DAILY) as erase_meant:
    ErasureGroup(LakeConfig(pools=["erased"], asked={"where": WHERE, "grace": "0s"}), by_hand=True)

with DAG("set_block", **DAILY) as set_block:
    where = "{% set day = data_interval_start | ds %}t >= '{{ day }}'"
    LakeDeleteOperator(task_id="delete", pool_name="days", where=where)

with DAG("task_before", **DAILY) as task_before:
    @task
    def bounds():
        run = get_current_context()["dag_run"]
        return [{"begin": run.data_interval_start.isoformat(), "end": run.data_interval_end.isoformat()}]
    LakeReplaceOperator.partial(task_id="replace", pool_name="days", **NONE).expand_kwargs(bounds())

with DAG("mapped_group", **DAILY) as mapped_group:
    @task_group
    def each(pool):
        begin, end = ("{{ dag_run.data_interval_%s.isoformat() }}" % one for one in ("start", "end"))
        LakeReplaceOperator(task_id="replace", pool_name=pool, begin=begin, end=end, **NONE)
    each.expand(pool=["days"])

with DAG("append", **DAILY) as append:
    files = "FOLDER/{{ data_interval_start | ds }}.ndjson"
    LakeLoadOperator(task_id="load", pool_name="appended", files=files, **LOAD)

with DAG("native_kwargs", params={"k": "1.50"}, **NATIVE) as native_kwargs:
    bounds = [{"low": "{{ params.k }}", "high": "{{ params.k }}!"}]
    LakeDeleteOperator.partial(task_id="delete", pool_name="texts").expand_kwargs(bounds)

with DAG("native_query", params={"k": "1_000"}, **NATIVE) as native_query:
    found = LakeQueryOperator(task_id="query", sql="select k from others where k = '{{ params.k }}'")
    @task
    def see(rows):
        with open("FOLDER/found.json", "w") as file:
            json.dump(rows, file)
    see(found.output)

with DAG("native_groups", **NATIVE) as native_groups:
    @task_group
    def checkpoint(pool):
        CheckpointGroup(LakeConfig(pools=[pool]))
    checkpoint.expand(pool=["1_000", "2.50"])

with DAG("native_sensor", params={"p": "1_000", "b": "1.50"}, **NATIVE) as native_sensor:
    wait = {"after": 0, "deferrable": False, "branch": "{{ params.b }}"}
    LakeTransactionSensor.partial(task_id="wait", **wait).expand(pools=[["{{ params.p }}"]])

with DAG("native_erasure", params={"k": "1.50"}, **NATIVE) as native_erasure:
    ErasureGroup(LakeConfig(pools=["others"], asked={"where": "k = '{{ params.k }}'", "grace": "0s"}))

with DAG("native_key", params={"k": "1.50"}, **NATIVE) as native_key:
    ErasureGroup(LakeConfig(pools="{{ '2.50' }}", asked={"key": "{{ params.k }}", "grace": "0s"}))

with DAG("native_options", params={"d": ";"}, **NATIVE) as native_options:
    options = {"csv.delimiter": "{{ params.d }}", "csv.header": "{{ 'first' }}"}
    read = {"files": "FOLDER/parts.csv", "options": options, **LOAD}
    LakeLoadOperator(task_id="load", pool_name="parts", message="{{ 1.50 }}", **read)

with DAG("native_ingest", **NATIVE) as native_ingest:
    IngestGroup(LakeConfig(pools=["{{ '1_000' }}"]))

with DAG("mapped_options", **ONCE) as mapped_options:
    both = {"task_id": "load", "pool_name": "lists", "files": "FOLDER/lists.json", "format": "json", **LOAD}
    LakeLoadOperator.partial(**both).expand(options=[{"records": "a"}, {"records": "b"}])

with DAG("mapped_lakes", **ONCE) as mapped_lakes:
    load = LakeLoadOperator.partial(task_id="load", pool_name="both", files="FOLDER/both.ndjson", **LOAD)
    load.expand(lake=["lake_default", "lake_two", "lake_again"])

with DAG("two_lakes", **ONCE) as two_lakes:
    one = LakeLoadOperator(task_id="one", pool_name="apart", files="FOLDER/both.ndjson", **LOAD)
    two = LakeLoadOperator(task_id="two", pool_name="apart", lake="lake_two", files="FOLDER/both.ndjson", **LOAD)
    more = LakeLoadOperator(task_id="more", pool_name="apart", lake="lake_two", files="FOLDER/more.ndjson", **LOAD)
    one >> two >> more >> CompactGroup(LakeConfig(lake="lake_two", pools=["apart"]))

with DAG("mapped_deletes", **ONCE) as mapped_deletes:
    bounds = [{"low": "1", "high": "2"}, {"low": "2", "high": "3"}, {"where": "k = '5'"}]
    LakeDeleteOperator.partial(task_id="delete", pool_name="digits").expand_kwargs(bounds)

with DAG("lake_of_args", schedule=None, default_args={"retries": 0, "lake": "lake_two"}) as lake_of_args:
    LakeLoadOperator(task_id="load", pool_name="of_args", files="FOLDER/both.ndjson", **LOAD)
"""

BY_HAND = ("erase_where", "erase_range", "set_block", "task_before", "mapped_group")
NAMES = (
    *BY_HAND,
    *("erase_meant", "append", "native_kwargs", "native_query", "native_groups", "native_sensor"),
    *("native_erasure", "native_key", "native_options", "native_ingest", "mapped_options"),
    *("mapped_lakes", "two_lakes", "mapped_deletes", "lake_of_args"),
)
DAYS = [f"2024-01-0{day}T12:00:00" for day in (3, 4, 5)]
TEXTS = ["0x10", "1.5", "1.50", "1000", "1_000"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ways")
    lake, two = Lake.create(str(folder / "lake")), Lake.create(str(folder / "two"))
    for name in ("days", "erased", "appended"):
        lake.create_pool(name, key="t").branch().append(pa.table({"t": DAYS}))
    (folder / "in").mkdir()
    (folder / "in" / "1.50").write_text('{"k": "landed"}\n')
    ingest = {"ingest.source": f"{folder}/in", "ingest.batch_age": "0s", "ingest.format": "ndjson"}
    for name in ("texts", "others", "1_000", "2.50"):
        settings = ingest if name == "1_000" else {}
        lake.create_pool(name, key="k", settings=settings).branch().append(pa.table({"k": TEXTS}))
    lake.pool("1_000").create_branch("1.50")
    lake.pool("1_000").branch("1.50").append(pa.table({"k": ["there"]}))
    for name in ("parts", "lists", "both", "apart", "digits", "of_args"):
        lake.create_pool(name, key="k")
    for name in ("both", "apart", "of_args"):
        two.create_pool(name, key="k")
    lake.pool("digits").branch().append(pa.table({"k": ["1", "2", "3", "5"]}))
    files = {
        "2024-01-04.ndjson": '{"t": "2024-01-04T13:00:00"}\n',
        "parts.csv": "k;v\na;b\n",
        "lists.json": '{"a": [{"k": "a"}], "b": [{"k": "b"}]}',
        "both.ndjson": '{"k": "both"}\n',
        "more.ndjson": '{"k": "more"}\n',
    }
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


@pytest.fixture(scope="module")
def ran(place: Path) -> tuple[dict[str, Run], str]:
    connections = {
        f"AIRFLOW_CONN_{name}": json.dumps(
            {"conn_type": "lake", "host": str(place / folder), "extra": {"in_task_mib": 64}}
        )
        for name, folder in (("LAKE_TWO", "two"), ("LAKE_AGAIN", "lake"))
    }
    date = "2024-01-05T00:00:00+00:00"
    runs, said = run_dags(place, DAGS, [(name, {}) for name in NAMES], date=date, environ=connections)
    return dict(zip(NAMES, runs, strict=True)), said


def held(place: Path, pool: str, lake: str = "lake") -> list[Any]:
    """The keys of a pool."""
    table = Lake.open(str(place / lake)).pool(pool).at().to_table()
    return table[0].to_pylist() if table.num_columns else []


@pytest.mark.parametrize("dag", BY_HAND)
def test_a_run_by_hand_removes_nothing_of_the_interval_that_airflow_gave_it(
    place: Path, ran: tuple[dict[str, Run], str], dag: str
) -> None:
    runs, said = ran
    assert runs[dag].state == "failed"
    assert held(place, "days") == DAYS
    assert said.count("this run was started by hand, or by another DAG") >= len(BY_HAND)
    assert not [name for name in place.rglob("*erasures/*") if "days" in str(name)]


def test_a_run_by_hand_erases_the_interval_if_the_dag_says_that_it_means_it(
    place: Path, ran: tuple[dict[str, Run], str]
) -> None:
    runs, said = ran
    assert runs["erase_meant"].state == "success", said[-4000:]
    assert held(place, "erased") == [DAYS[0], DAYS[2]]


def test_an_append_of_the_interval_takes_nothing_away(place: Path, ran: tuple[dict[str, Run], str]) -> None:
    runs, _ = ran
    assert runs["append"].state == "success"
    assert held(place, "appended") == [*DAYS[:2], "2024-01-04T13:00:00", DAYS[2]]


def test_texts_stay_texts_in_mapped_arguments_sensors_groups_and_erasures(
    place: Path, ran: tuple[dict[str, Run], str]
) -> None:
    runs, said = ran
    native = [name for name in NAMES if name.startswith("native")]
    assert {name: runs[name].state for name in native} == dict.fromkeys(native, "success"), said[-4000:]
    rest = [text for text in TEXTS if text != "1.50"]
    assert held(place, "texts") == rest
    assert held(place, "others") == rest
    assert held(place, "2.50") == rest
    assert held(place, "1_000") == sorted([*TEXTS, "landed"])
    assert held(place, "parts") == ["a"]
    assert json.loads((place / "found.json").read_text()) == [{"k": "1_000"}]
    (message,) = [one.message for _, one in Lake.open(str(place / "lake")).pool("parts").log()]
    assert message == "1.5", "a number that the template itself writes"


def test_mapped_tasks_that_read_one_file_in_two_ways_are_two_loads(
    place: Path, ran: tuple[dict[str, Run], str]
) -> None:
    runs, _ = ran
    assert runs["mapped_options"].state == "success"
    assert held(place, "lists") == ["a", "b"]


def test_each_lake_has_the_load_of_its_own_once(place: Path, ran: tuple[dict[str, Run], str]) -> None:
    """Two connections may name one lake: then the work is the same."""
    runs, _ = ran
    assert [runs[name].state for name in ("mapped_lakes", "two_lakes", "lake_of_args")] == ["success"] * 3
    assert [held(place, "both", lake) for lake in ("lake", "two")] == [["both"], ["both"]]
    assert [held(place, "apart", lake) for lake in ("lake", "two")] == [["both"], ["both", "more"]]
    assert [held(place, "of_args", lake) for lake in ("lake", "two")] == [[], ["both"]]


def test_mapped_deletes_of_other_bounds_are_all_done(place: Path, ran: tuple[dict[str, Run], str]) -> None:
    runs, _ = ran
    assert runs["mapped_deletes"].state == "success"
    assert held(place, "digits") == ["3"]
