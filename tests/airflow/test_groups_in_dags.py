"""Groups and operators in DAGs of users: skipped, mapped, with native objects, with forms; by `dag.test()`.

The DAGs run in an Airflow of their own, in a process of its own, on a temporary database.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from log_lake.lake import Lake
from tests.support.user_dags import SECONDS

pytestmark = [pytest.mark.airflow, pytest.mark.slow]

DAGS = """
import json
from airflow.sdk import DAG, Param, task, task_group
from airflow_lake.groups import (
    CheckpointGroup, CompactGroup, IngestGroup, IntervalsGroup, LakeConfig, LakeUpkeep
)
from airflow_lake.groups.form import OF_APPLY
from airflow_lake.operators.apply import LakeApplyOperator
from airflow_lake.operators.delete import LakeDeleteOperator

ARGS = {"retries": 0}

with DAG("skipped", default_args=ARGS) as skipped:

    @task.branch
    def choose():
        return "other"

    @task
    def other():
        pass

    chosen = choose()
    chosen >> other()
    chosen >> CompactGroup(LakeConfig(pools=["texts"]))
    chosen >> IngestGroup(LakeConfig(pools=["texts"]))
    chosen >> LakeUpkeep(LakeConfig(pools=["texts"]))

with DAG("failed", default_args=ARGS) as failed:

    @task
    def breaks():
        raise ValueError("of the user")

    broken = breaks()
    broken >> CompactGroup(LakeConfig(pools=["texts"]))
    broken >> LakeUpkeep(LakeConfig(pools=["texts"]))

with DAG("appended", default_args=ARGS) as appended:
    one, two = (
        IntervalsGroup(LakeConfig(pools=["appended"], asked={"files": [f"FOLDER/{name}.ndjson"]}), group_id=name)
        for name in ("one", "two")
    )
    one >> two

with DAG("mapped", default_args=ARGS) as mapped:

    @task_group
    def one(pool):
        CheckpointGroup(LakeConfig(pools=pool))

    one.expand(pool=["texts", "2024"])

with DAG("native", default_args=ARGS, render_template_as_native_obj=True) as native:
    LakeDeleteOperator(task_id="delete", pool_name="texts", low="1.50", high="{{ 1.6 }}")
    LakeDeleteOperator.partial(task_id="mapped", low="1.0", high="1.1").expand(pool_name=["2024"])
    CompactGroup(LakeConfig(pools=["2024"]))

with DAG("turns", default_args=ARGS) as turns:
    LakeUpkeep(LakeConfig(pools=["turns", "damaged"]), agents=["compact", "tombstones"])

with DAG("form", default_args=ARGS, params=OF_APPLY) as form:
    LakeApplyOperator(task_id="apply", path="POLICIES", dry_run=True, takes_params=True)
"""

RUN = """
import json, sys
from dags import *
for dag in (skipped, failed, appended, mapped, native, turns, form):
    run = dag.test()
    tasks = {f"{ti.task_id}[{ti.map_index}]": str(ti.state) for ti in run.get_task_instances()}
    print("RUN " + json.dumps([dag.dag_id, str(run.state), tasks]))
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dags")
    lake = Lake.create(str(folder / "lake"))
    for name in ("texts", "2024"):
        keys = ["1.0", "1.00", "1.5", "1.50", "1.55", "2.0"]
        lake.create_pool(name, key="k").branch().append(pa.table({"k": keys}))
    for name in ("turns", "damaged"):
        branch = lake.create_pool(name, key="k", settings={"tombstones.apply": "0s"}).branch()
        for _ in range(9):
            branch.append(pa.table({"k": range(10)}))
        branch.delete(where="k = 3")
    next(Path(folder, "lake").rglob(f"{lake.pool(name).at().references[0].object}*")).unlink()
    source = {"intervals.source": f"{folder}/%Y-%m-%d"}
    lake.create_pool("appended", key="k", settings=source)
    for number, name in enumerate(("one", "two")):
        Path(folder, f"{name}.ndjson").write_text(f'{{"k": {number}}}\n')
    Path(folder, "pools.yaml").write_text("pools:\n  new:\n    key: k\n")
    Path(folder, "dags.py").write_text(
        DAGS.replace("POLICIES", str(folder / "pools.yaml")).replace("FOLDER", str(folder))
    )
    return folder


@pytest.fixture(scope="module")
def runs(place: Path) -> dict[str, tuple[str, dict[str, str]]]:
    """By DAG: the state of its run, and those of its tasks."""
    environ = {
        **os.environ,
        "AIRFLOW_HOME": str(place / "airflow"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGS_FOLDER": str(place),
        "AIRFLOW_CONN_LAKE_DEFAULT": json.dumps(
            {"conn_type": "lake", "host": str(place / "lake"), "extra": {"in_task_mib": 64}}
        ),
    }
    environ.pop("LAKE", None)
    for words in (["-m", "airflow", "db", "migrate"], ["-c", RUN]):
        done = subprocess.run(
            [sys.executable, *words],
            cwd=place,
            env=environ,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-5000:]
    Path(place, "said").write_text(done.stdout + done.stderr)
    # what another thread logs may come between a line and its end
    read = json.JSONDecoder().raw_decode
    lines = [read(line[4:])[0] for line in done.stdout.splitlines() if line.startswith("RUN ")]
    return {name: (state, tasks) for name, state, tasks in lines}


@pytest.fixture
def said(place: Path, runs: object) -> str:
    """What Airflow and its tasks printed."""
    return Path(place, "said").read_text()


def keys(place: Path, pool: str) -> list[Any]:
    return Lake.open(str(place / "lake")).pool(pool).at().to_table()["k"].to_pylist()


def test_a_group_that_a_branch_skips_is_skipped_with_its_report(
    runs: dict[str, tuple[str, dict[str, str]]],
) -> None:
    state, tasks = runs["skipped"]
    assert state == "success"
    states = {name: state for name, state in tasks.items() if name.startswith(("compact", "ingest", "lake_"))}
    assert {state for name, state in states.items() if "announce" not in name} == {"skipped"}


def test_a_group_after_a_task_that_failed_says_so(
    runs: dict[str, tuple[str, dict[str, str]]], said: str
) -> None:
    state, tasks = runs["failed"]
    assert (state, tasks["compact.find[-1]"], tasks["compact.report[-1]"]) == (
        "failed",
        "upstream_failed",
        "failed",
    )
    assert "nothing was done, because a task before this group failed" in said
    assert tasks["lake_upkeep.tombstones.run[-1]"] == "upstream_failed"


def test_upkeep_applies_deletes_after_it_compacted_whatever_became_of_that(
    place: Path, runs: dict[str, tuple[str, dict[str, str]]], said: str
) -> None:
    state, tasks = runs["turns"]
    assert state == "failed", "the damaged pool"
    # the third is the pool of jobs, which the config does not name; a digest of the time orders the three
    compacted = [tasks[f"lake_upkeep.compact.run[{index}]"] for index in (0, 1, 2)]
    applied = [tasks[f"lake_upkeep.tombstones.run[{index}]"] for index in (0, 1)]
    assert (sorted(compacted), sorted(applied)) == (["failed", "success", "success"], ["failed", "success"])
    assert keys(place, "turns") == [key for key in range(10) if key != 3 for _ in range(9)]
    assert "turns: searched 0 objects, rewrote 0; 1 delete finished; none left" in said


def test_two_groups_of_a_run_each_append_their_own_files(
    place: Path, runs: dict[str, tuple[str, dict[str, str]]]
) -> None:
    assert runs["appended"][0] == "success"
    assert keys(place, "appended") == [0, 1]


def test_a_checkpoint_group_in_a_mapped_group_reports_what_its_own_find_put_off(
    runs: dict[str, tuple[str, dict[str, str]]],
) -> None:
    state, tasks = runs["mapped"]
    assert state == "success"
    assert [tasks[f"one.checkpoint.report[{index}]"] for index in (0, 1)] == ["success"] * 2


def test_a_text_that_is_no_template_stays_a_text_if_the_dag_renders_native_objects(
    place: Path, runs: dict[str, tuple[str, dict[str, str]]]
) -> None:
    state, tasks = runs["native"]
    assert (state, tasks["compact.report[-1]"]) == ("success", "success")
    assert keys(place, "texts") == ["1.0", "1.00", "1.5", "2.0"]
    assert keys(place, "2024") == ["1.5", "1.50", "1.55", "2.0"]


def test_a_form_that_nobody_touched_does_not_turn_off_the_dry_run_of_a_dag(
    place: Path, runs: dict[str, tuple[str, dict[str, str]]]
) -> None:
    assert runs["form"][0] == "success"
    assert [pool.name for pool in Lake.open(str(place / "lake")).pools() if pool.name == "new"] == []
