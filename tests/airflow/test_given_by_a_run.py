"""What a run gives to operators and groups: its interval, texts and addresses; by `dag.test()`."""

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
import datetime as dt
from airflow.sdk import DAG, CronDataIntervalTimetable
from airflow_lake.groups import CheckpointGroup, ErasureGroup, IntervalsGroup, LakeConfig
from airflow_lake.groups.form import OF_APPLY
from airflow_lake.operators.apply import LakeApplyOperator
from airflow_lake.operators.delete import LakeDeleteOperator
from airflow_lake.operators.load import LakeLoadOperator
from airflow_lake.operators.replace import LakeReplaceOperator
from airflow_lake.sensors.transactions import LakeTransactionSensor

DAILY = {"schedule": CronDataIntervalTimetable("@daily", "UTC"), "start_date": dt.datetime(2024, 1, 1)}
ARGS = {"catchup": False, "default_args": {"retries": 0}}
DAY = {"begin": "{{ data_interval_start }}", "end": "{{ data_interval_end }}"}
NATIVE = {"render_template_as_native_obj": True, "schedule": None, "default_args": {"retries": 0}}

def replace(task_id, **how):
    files = "FOLDER/{{ ds }}/*.ndjson"
    return LakeReplaceOperator(task_id=task_id, pool_name="days", files=files, missing="empty", **how)

with DAG("by_hand", **DAILY, **ARGS) as by_hand:
    replace("interval", **DAY)
    replace("text", low="{{ data_interval_start | ds }}", high="{{ data_interval_end | ds }}")
    LakeDeleteOperator(task_id="delete", pool_name="days", low="{{ data_interval_start | ds }}")
    replace("computed", begin="{{ macros.datetime(2024, 1, 4).isoformat() }}Z",
            end="{{ macros.datetime(2024, 1, 5).isoformat() }}Z")
    none = {"files": "FOLDER/none/*", "missing": "empty"}
    LakeReplaceOperator.partial(task_id="mapped", pool_name="days", **none).expand_kwargs([DAY])

with DAG("meant", **DAILY, **ARGS) as meant:
    day = LakeReplaceOperator(task_id="constant", pool_name="days", files="FOLDER/none/*", missing="empty",
                              begin="2023-01-01", end="2023-01-02")
    day >> LakeReplaceOperator(task_id="day", pool_name="days", files="FOLDER/none/*", missing="empty",
                               by_hand=True, **DAY)

with DAG("group", **DAILY, **ARGS) as group:
    IntervalsGroup(LakeConfig(pools=["grouped"]))

with DAG("group_meant", **DAILY, **ARGS) as group_meant:
    IntervalsGroup(LakeConfig(pools=["grouped"]), by_hand=True)

TOKYO = {**DAILY, "schedule": CronDataIntervalTimetable("@daily", "Asia/Tokyo")}

with DAG("tokyo", **TOKYO, **ARGS) as tokyo:
    IntervalsGroup(LakeConfig(pools=["tokyo"]), by_hand=True)
    LakeReplaceOperator(task_id="date", pool_name="dates", files="FOLDER/date", by_hand=True, **DAY)

with DAG("native", params={"k": "1.50", "p": "1_000", "all": ["1_000", "texts"]}, **NATIVE) as native:
    one = LakeDeleteOperator(task_id="bound", pool_name="texts", low="{{ params.k }}", high="{{ params.k }}!")
    two = LakeDeleteOperator(task_id="quoted", pool_name="texts", low='"{{ "q" }}"', high='"{{ "q" }}"!')
    three = LakeReplaceOperator(task_id="where", pool_name="texts", where="k = '{{ params.p }}'")
    four = LakeDeleteOperator(task_id="pool", pool_name="{{ params.p }}", low="{{ '1_000' }}", high="1_001")
    partial = LakeDeleteOperator.partial(task_id="mapped", pool_name="texts", high="0x10!")
    five = partial.expand(low=["{{ '0x10' }}"])
    macro = "{% macro of(key) %}{{ key }}{% endmacro %}{{ of('1e3') }}"
    six = LakeDeleteOperator(task_id="macro", pool_name="texts", low=macro, high="1e3!", token="{{ '1_0' }}")
    seven = LakeLoadOperator(task_id="list", pool_name="texts", files=["FOLDER/{{ '1_000' }}"], on_spark=False,
                             partitions="{{ ['07', '1_1'] }}")
    eight = LakeTransactionSensor(task_id="wait", pools=["{{ params.p }}"], after="{{ 0 }}", deferrable=False)
    last = CheckpointGroup(LakeConfig(pools="{{ params.all }}"))
    one >> two >> three >> four >> five >> six >> seven >> eight >> last

FORM = {"schedule": None, "default_args": {"retries": 0}}
LOAD = {"pool_name": "loaded", "on_spark": False}

with DAG("erase", params={"lake": "", "pools": [], "where": None, "dry_run": False}, **FORM) as erase:
    ErasureGroup(takes_params=True)

with DAG("append", params={"pools": [], "files": []}, **FORM) as append:
    IntervalsGroup(takes_params=True)

with DAG("templates", params={"file": "FOLDER/default.ndjson", "lake": "lake_default"}, **FORM) as templates:
    first = LakeLoadOperator(task_id="load", files="{{ params.file }}", **LOAD)
    LakeLoadOperator(task_id="by_param", files=templates.param("file"), **LOAD)
    files = ["{{ params.file }}", "{{ dag_run.conf.file }}"]
    LakeLoadOperator.partial(task_id="mapped", **LOAD).expand(files=files)
    LakeDeleteOperator(task_id="delete", pool_name="loaded", lake="{{ params.lake }}", low="x")
    wait = {"after": 0, "deferrable": False, "trigger_rule": "all_done"}
    first >> LakeTransactionSensor(task_id="wait", pools=["loaded"], lake="{{ params.lake }}", **wait)
    CheckpointGroup(LakeConfig(lake="{{ params.lake }}", pools=["loaded"]))
    LakeApplyOperator(task_id="apply", path="{{ params.file }}", dry_run=True)

with DAG("nothing", **FORM) as nothing:
    day = "{{ dag_run.conf.get('day') }}"
    LakeDeleteOperator(task_id="older", pool_name="kept", where=f"t < '{day}'")
    gone = {"files": f"FOLDER/{day}/*", "missing": "empty"}
    LakeReplaceOperator(task_id="folder", pool_name="kept", low="2024", **gone)
    LakeReplaceOperator.partial(task_id="mapped", pool_name="kept", low="2024", missing="empty").expand(
        files=[gone["files"]])
    ErasureGroup(LakeConfig(pools=["kept"], asked={"where": f"t < '{day}'", "grace": "0s"}))

with DAG("apply", params=OF_APPLY, **FORM) as apply:
    LakeApplyOperator(task_id="apply", takes_params=True)
"""

DATE = "2024-01-05T00:00:00+00:00"
RUNS: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in ("by_hand", "group", "meant", "group_meant", "native", "tokyo", "templates")),
    ("erase", {"lake": "FOLDER/other", "pools": ["people"], "where": "k = 'a'"}),
    ("append", {"pools": ["grouped"], "files": ["OUTSIDE/secret.ndjson"]}),
    ("templates", {"file": "OUTSIDE/secret.ndjson", "lake": "FOLDER/other"}),
    ("apply", {"path": "OUTSIDE/secret.ndjson"}),
    ("apply", {"path": "../secret.ndjson"}),
    ("append", {"pools": ["grouped"], "files": ["FOLDER/grouped/late.ndjson"]}),
    ("apply", {"path": "pools.yaml", "dry_run": False}),
    ("nothing", {}),
]
NAMES = [
    name if name not in dict(RUNS[:index]) else f"{name} {index}" for index, (name, _) in enumerate(RUNS)
]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("given") / "dags"
    folder.mkdir()
    lake = Lake.create(str(folder / "lake"))
    days = pa.table({"t": pa.array([f"2024-01-0{n}T12:00:00" for n in (3, 4, 5)])})
    lake.create_pool("days", key="t").branch().append(days)
    lake.create_pool("kept", key="t").branch().append(days)
    source = {"intervals.source": f"{folder}/grouped/%Y-%m-%d", "intervals.missing": "empty"}
    lake.create_pool("grouped", key="t", settings=source).branch().append(days)
    texts = ["0x10", "1.5", "1.50", "1000", "1000.0", "16", "1_000", "1e3", '"q"', "q"]
    lake.create_pool("texts", key="k").branch().append(pa.table({"k": texts}))
    lake.create_pool("1_000", key="k").branch().append(pa.table({"k": ["1000", "1_000"]}))
    for day in ("03", "04", "05"):
        (folder / f"tokyo-2024-01-{day}.ndjson").write_text(f'{{"t": "2024-01-{day}T01:00:00+09:00"}}\n')
    types = {"type.t": "timestamp"}
    lake.create_pool(
        "tokyo", key="t", settings={"intervals.source": f"{folder}/tokyo-%Y-%m-%d.ndjson", **types}
    )
    lake.create_pool("dates", key="t", settings={"type.t": "date"})
    (folder / "date").write_text('{"t": "2024-01-04"}\n')
    Lake.create(str(folder / "other")).create_pool("people", key="k").branch().append(pa.table({"k": ["a"]}))
    lake.create_pool("loaded", key="k")
    (folder / "default.ndjson").write_text('{"k": "default"}\n')
    (folder.parent / "secret.ndjson").write_text('{"k": "secret", "t": "2024-01-03"}\n')
    (folder / "grouped").mkdir()
    (folder / "grouped" / "late.ndjson").write_text('{"t": "late"}\n')
    (folder / "pools.yaml").write_text("pools: {made: {key: k}}\n")
    (folder / "1_000").write_text('{"k": "loaded"}\n')
    return folder


@pytest.fixture(scope="module")
def ran(place: Path) -> tuple[dict[str, Run], str]:
    asked = json.loads(json.dumps(RUNS).replace("FOLDER", str(place)).replace("OUTSIDE", str(place.parent)))
    runs, said = run_dags(place, DAGS, asked, date=DATE)
    return dict(zip(NAMES, runs, strict=True)), said


def held(place: Path, pool: str) -> list[Any]:
    table = Lake.open(str(place / "lake")).pool(pool).at().to_table()
    return table[0].to_pylist() if table.num_columns else []


def test_a_run_by_hand_neither_replaces_nor_deletes_the_interval_that_airflow_gave_it(
    place: Path, ran: tuple[dict[str, Run], str]
) -> None:
    """Its interval is the day before its date."""
    runs, said = ran
    assert set(runs["by_hand"].tasks.values()) == {"failed"}
    assert len(runs["by_hand"].tasks) == 5
    why = "this run was started by hand, or by another DAG: its interval, 2024-01-04T00:00:00+00:00 to"
    assert all(f"{task}: {why}" in said for task in ("interval", "text", "delete", "computed", "mapped"))
    transactions = [one.metadata.get("task") for _, one in Lake.open(str(place / "lake")).pool("days").log()]
    assert transactions == ["day", "constant", None]
    assert runs["group"].state == "failed"
    assert "a run without an interval appends files" in said


def test_a_run_by_hand_replaces_the_interval_if_the_dag_says_that_it_means_it(
    place: Path, ran: tuple[dict[str, Run], str]
) -> None:
    runs, _ = ran
    assert runs["meant"].state == "success", "an interval that the DAG names is not that of the run"
    assert held(place, "days") == ["2024-01-03T12:00:00", "2024-01-05T12:00:00"]
    assert runs["group_meant"].state == "success"
    assert held(place, "grouped") == ["2024-01-03T12:00:00", "2024-01-05T12:00:00", "late"]


def test_texts_of_templates_stay_as_they_are_if_the_dag_renders_native_objects(
    place: Path, ran: tuple[dict[str, Run], str]
) -> None:
    runs, said = ran
    assert runs["native"].state == "success", said[-4000:]
    assert held(place, "texts") == ["1.5", "1000", "1000.0", "16", "loaded", "q"]
    assert held(place, "1_000") == ["1000"]


def test_a_run_erases_loads_and_applies_nothing_from_an_address_that_it_may_not_name(
    place: Path, ran: tuple[dict[str, Run], str]
) -> None:
    runs, said = ran
    assert [runs[name].state for name in NAMES[7:12]] == ["failed"] * 5
    other = Lake.open(str(place / "other"))
    assert other.pool("people").at().to_table().num_rows == 1
    assert not [info.name for info in other.store.list("") if "erasure" in info.name or "pack" in info.name]
    assert f"find: lake='{place}/other': a run may not name it" in said
    assert f"find: files='{place.parent}/secret.ndjson': a run may not name it" in said
    tasks = runs[NAMES[9]].tasks
    refused = ["load[-1]", "by_param[-1]", "mapped[0]", "mapped[1]", "delete[-1]", "wait[-1]", "apply[-1]"]
    assert [tasks[name] for name in (*refused, "checkpoint.find[-1]")] == ["failed"] * 8
    assert all(f"{name.partition('[')[0]}: " in said for name in refused)
    assert f"apply: path='{place.parent}/secret.ndjson': a run may not name it" in said
    assert "it has '..', by which it may leave its folder" in said


def test_what_the_dag_says_and_what_lies_below_the_pools_source_stays_allowed(
    place: Path, ran: tuple[dict[str, Run], str]
) -> None:
    runs, _ = ran
    tasks = runs["templates"].tasks
    assert [tasks[name] for name in ("load[-1]", "by_param[-1]", "mapped[0]", "delete[-1]", "wait[-1]")] == [
        "success"
    ] * 5
    assert held(place, "loaded") == ["default"] * 3
    assert runs[NAMES[-3]].state == "success"
    assert runs[NAMES[-2]].state == "success"
    assert Lake.open(str(place / "lake")).pool("made").config.name == "made"


def test_a_value_that_the_run_does_not_have_is_not_the_word_none_in_a_condition_or_a_folder(
    place: Path, ran: tuple[dict[str, Run], str]
) -> None:
    runs, said = ran
    tasks = runs["nothing"].tasks
    assert [tasks[f"{name}[-1]"] for name in ("older", "folder", "erasure.find")] == ["failed"] * 3
    assert tasks["mapped[0]"] == "failed"
    assert held(place, "kept") == ["2024-01-03T12:00:00", "2024-01-04T12:00:00", "2024-01-05T12:00:00"]
    assert "a template gave nothing (None) inside the text" in said
    assert not [name for name in place.rglob("*erasures/*") if "kept" in str(name)]


def test_a_day_in_tokyo_is_loaded_from_the_folder_of_that_day(
    place: Path, ran: tuple[dict[str, Run], str]
) -> None:
    """The run of 2024-01-05 00:00 UTC is of the last whole day in Tokyo before it, 2024-01-04."""
    runs, said = ran
    assert runs["tokyo"].state == "success"
    assert "replace 2024-01-04T00:00:00+09:00 to 2024-01-05T00:00:00+09:00 by 1 file" in said
    assert [time.isoformat() for time in held(place, "tokyo")] == ["2024-01-03T16:00:00+00:00"]
    assert [day.isoformat() for day in held(place, "dates")] == ["2024-01-04"], (
        "a key of dates, by an operator"
    )
