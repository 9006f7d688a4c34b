"""The DAG files: they load, quickly and without errors, and are what the agents' page says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from log_lake.compaction.strategies import names as strategies
from tests.support.repository import DAGS, ROOT

pytestmark = pytest.mark.airflow

LOAD = """
import json, sys
from airflow.dag_processing.dagbag import DagBag
bag = DagBag(dag_folder=sys.argv[1])
ENGINE = {"pyspark", "duckdb", "datafusion", "pyarrow", "s3fs", "gcsfs", "spark_apps"}
print("LOADED " + json.dumps({
    "errors": bag.import_errors,
    "modules": sorted({name.partition(".")[0] for name in sys.modules} & ENGINE),
    "files": sorted(stat.file.rpartition("/")[2] for stat in bag.dagbag_stats),
    "dags": {
        dag.dag_id: {
            "schedule": dag.schedule if isinstance(dag.schedule, str | None) else dag.schedule.expression,
            "params": {name: param.value for name, param in dag.params.items()},
            "form": {name: param.serialize() for name, param in dag.params.items()},
            "catchup": dag.catchup,
            "runs": dag.max_active_runs,
            "tasks": {task.task_id: sorted(task.upstream_task_ids) for task in dag.tasks},
            "unlimited": [task.task_id for task in dag.tasks if task.execution_timeout is None],
            "order": {
                task.task_id: [task.priority_weight, str(task.weight_rule), task.pool, task.pool_slots]
                for task in dag.tasks
            },
            "hours": [task.execution_timeout.total_seconds() / 3600 for task in dag.tasks],
        }
        for dag in bag.dags.values()
    },
}))
"""


def load(folder: Path, **environ: str) -> dict[str, Any]:
    """What Airflow finds in the project's DAG folder, in a process and a home of its own."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "LAKE"))}
    done = subprocess.run(
        [sys.executable, "-c", LOAD, str(ROOT / "dags")],
        env={**clean, "AIRFLOW_HOME": str(folder), "AIRFLOW__CORE__LOAD_EXAMPLES": "False", **environ},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("LOADED ")]
    assert lines, done.stderr
    return dict(json.loads(lines[-1].removeprefix("LOADED ")))


def test_the_dags_load_without_errors_and_without_spark(tmp_path: Path) -> None:
    loaded = load(tmp_path, LAKE="/some/lake")
    assert loaded["errors"] == {}
    assert loaded["modules"] == [], "read every half minute, a DAG file imports nothing that is slow"
    common = {"lake": "", "pools": [], "dry_run": False}  # which lake LAKE names is asked by the tasks
    assert loaded["dags"]["lake_checkpoint"]["params"] == common | {"limit": None}
    ingest = loaded["dags"]["lake_ingest"]
    assert ingest["tasks"] == {
        "find": [],
        "run": ["find"],
        "report": ["find", "run"],
        "announce": ["run"],
    }
    assert ingest["params"] == common | {"wait": True, "bulk": False, "limit": None}
    assert (ingest["schedule"], ingest["catchup"], ingest["runs"]) == ("*/5 * * * *", False, 1)
    applying = loaded["dags"].pop("lake_apply")
    assert (applying["tasks"], applying["schedule"], applying["catchup"]) == ({"apply": []}, None, False)
    flags = {"dry_run": True, "prune": False, "yes": False, "confirm": None}
    assert applying["params"] == {"lake": "", "path": "", **flags}
    for found in loaded["dags"].values():
        assert found["tasks"]["run"] == ["find"]
        assert found["tasks"]["report"] == ["find", "run"]
        assert found["catchup"] is False
    assert loaded["dags"]["lake_intervals"]["schedule"] == "0 0 * * *"
    assert loaded["dags"]["lake_retention"]["schedule"] == "15 3 * * *"
    erasure = loaded["dags"]["lake_erasure"]
    assert erasure["schedule"] == "30 4 * * *"
    assert erasure["params"] == {
        **common,
        "dry_run": True,
        "confirm": None,
        **dict.fromkeys(("where", "key", "from", "to", "grace")),
        "keep_history": False,
    }


def test_only_files_with_a_dag_are_parsed(tmp_path: Path) -> None:
    assert load(tmp_path)["files"] == [f"{name}.py" for name in DAGS]


def test_every_task_has_a_time_limit(tmp_path: Path) -> None:
    dags = load(tmp_path, LAKE_TASK_HOURS="1.5")["dags"]
    assert {name: dag["unlimited"] for name, dag in dags.items()} == {name: [] for name in dags}
    hours = {name: max(dag["hours"]) for name, dag in dags.items()}
    assert hours.pop("lake_apply") == 0.5, "it works on no records"
    assert hours == dict.fromkeys(hours, 1.5)


@pytest.mark.parametrize(("variable", "schedule"), [("", None), ("@daily", "@daily")])
def test_the_schedule_is_the_operators_choice(tmp_path: Path, variable: str, schedule: str | None) -> None:
    found = load(tmp_path, LAKE_INGEST_SCHEDULE=variable)["dags"]["lake_ingest"]["schedule"]
    assert found == schedule


def test_tasks_that_bring_data_go_before_upkeep(tmp_path: Path) -> None:
    dags = load(tmp_path)["dags"]
    orders = {name: {tuple(one) for one in dag["order"].values()} for name, dag in dags.items()}
    assert {len(order) for order in orders.values()} == {1}, "all tasks of an agent weigh the same"
    weights = {name: next(iter(order))[0] for name, order in orders.items()}
    names = ("compact", "split", "checkpoint", "tombstones", "index", "retention")
    upkeep = [f"lake_{name}" for name in names]
    assert {weights[name] for name in upkeep} == {1}, "the least that Airflow has without being asked"
    loading = {weights[name] for name in ("lake_ingest", "lake_intervals", "lake_derive")}
    assert len(loading) == 1
    assert loading.pop() > weights["lake_erasure"] > 1
    agents = [order for name, order in orders.items() if name != "lake_apply"]
    assert {one[1:] for order in agents for one in order} == {("absolute", "default_pool", 1)}


def test_a_part_of_a_slot_is_an_error(tmp_path: Path) -> None:
    errors = load(tmp_path, LAKE_UPKEEP_POOL_SLOTS="2.7")["errors"]
    assert errors
    assert all("LAKE_UPKEEP_POOL_SLOTS='2.7': must be a whole number" in error for error in errors.values())


def test_upkeep_runs_in_the_pool_of_airflow_that_is_named(tmp_path: Path) -> None:
    dags = load(tmp_path, LAKE_UPKEEP_AIRFLOW_POOL="upkeep", LAKE_UPKEEP_POOL_SLOTS="3")["dags"]
    assert {task: order[2:] for task, order in dags["lake_compact"]["order"].items()} == {
        "find": ["upkeep", 1],
        "run": ["upkeep", 3],
        "report": ["upkeep", 1],
    }
    assert dags["lake_checkpoint"]["order"]["run"][2:] == ["upkeep", 3]
    pools = {name: {order[2] for order in dag["order"].values()} for name, dag in dags.items()}
    in_default = {name for name, used in pools.items() if used == {"default_pool"}}
    assert in_default == {"lake_apply", "lake_derive", "lake_ingest", "lake_intervals"}


@pytest.fixture(scope="module")
def forms(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """By DAG: the fields of its trigger form, as Airflow's UI gets them."""
    dags = load(tmp_path_factory.mktemp("forms"))["dags"]
    return {name: dag["form"] for name, dag in dags.items()}


def refused(form: dict[str, Any], **values: Any) -> list[str]:
    """The fields whose value the form does not take."""
    return [
        name
        for name, value in values.items()
        if not Draft202012Validator(form[name]["schema"]).is_valid(value)
    ]


def test_each_field_has_a_title_and_says_what_it_does(forms: dict[str, dict[str, Any]]) -> None:
    fields = [(dag, name, field) for dag, form in forms.items() for name, field in form.items()]
    assert [(dag, name) for dag, name, field in fields if not field["schema"].get("title")] == []
    assert [(dag, name) for dag, name, field in fields if not field["description"]] == []


def test_a_form_takes_its_own_defaults(forms: dict[str, dict[str, Any]]) -> None:
    for dag, form in forms.items():
        assert refused(form, **{name: field["value"] for name, field in form.items()}) == [], dag


def test_a_strategy_is_chosen_among_those_that_there_are(forms: dict[str, dict[str, Any]]) -> None:
    form = forms["lake_compact"]
    assert form["strategy"]["schema"]["enum"] == [None, *strategies()]
    assert form["strategy"]["schema"]["values_display"] == {"null": "as each pool says"}
    assert refused(form, strategy="newest") == ["strategy"]


def test_a_limit_is_a_whole_number_from_one_on(forms: dict[str, dict[str, Any]]) -> None:
    limited = {dag for dag, form in forms.items() if "limit" in form}
    assert limited == {
        f"lake_{name}"
        for name in ("ingest", "derive", "compact", "split", "checkpoint", "tombstones", "index", "retention")
    }
    for dag in limited:
        assert refused(forms[dag], limit=1) == [], dag
        for value in (0, -1, 1.5, "5"):
            assert refused(forms[dag], limit=value) == ["limit"], (dag, value)


def test_switches_are_booleans_and_names_are_lists(forms: dict[str, dict[str, Any]]) -> None:
    for dag, form in forms.items():
        switches = [name for name, field in form.items() if isinstance(field["value"], bool)]
        assert "dry_run" in switches
        assert refused(form, **dict.fromkeys(switches, "yes")) == switches, dag
        if "pools" in form:
            assert refused(form, pools="flights") == ["pools"]
            assert refused(form, pools=[7]) == ["pools"]


def test_a_branch_is_suggested_and_another_one_may_be_typed(forms: dict[str, dict[str, Any]]) -> None:
    with_branch = {dag for dag, form in forms.items() if "branch" in form}
    assert with_branch == {f"lake_{name}" for name in ("compact", "tombstones", "retention", "intervals")}
    for dag in with_branch:
        assert forms[dag]["branch"]["schema"]["examples"] == ["main"]
        assert refused(forms[dag], branch="dev") == []


def test_resources_of_an_agent_are_a_json_object_of_texts(tmp_path: Path) -> None:
    conf = {"spark.executor.memory": "8g"}
    assert load(tmp_path, LAKE_COMPACT_SPARK_CONF=json.dumps(conf))["errors"] == {}
    for wrong in ("{8g", '["8g"]', '{"spark.executor.cores": 8}'):
        errors = load(tmp_path, LAKE_COMPACT_SPARK_CONF=wrong)["errors"]
        assert [Path(file).name for file in errors] == ["compact.py"]
        assert all("LAKE_COMPACT_SPARK_CONF=" in error for error in errors.values())


def test_a_person_is_asked_before_the_agents_that_are_named(tmp_path: Path) -> None:
    dags = load(tmp_path, LAKE_APPROVAL="retention")["dags"]
    assert dags["lake_retention"]["tasks"] == {
        "find": [],
        "approve": ["find"],
        "run": ["approve", "find"],
        "report": ["find", "run"],
    }
    assert [name for name, dag in dags.items() if "approve" in dag["tasks"]] == ["lake_retention"]


def test_spaces_and_capitals_turn_no_approval_off_and_a_slip_is_an_error(tmp_path: Path) -> None:
    dags = load(tmp_path, LAKE_APPROVAL=" Retention, erasure")["dags"]
    asking = [name for name, dag in dags.items() if "approve" in dag["tasks"]]
    assert sorted(asking) == ["lake_erasure", "lake_retention"]
    errors = load(tmp_path, LAKE_APPROVAL="retentoin")["errors"]
    assert errors
    assert all("LAKE_APPROVAL='retentoin': no agent 'retentoin' asks" in error for error in errors.values())


def test_forms_of_agents_that_delete_begin_with_a_dry_run(forms: dict[str, dict[str, Any]]) -> None:
    """Their defaults are marked: they count in the form alone."""
    careful = {name for name, form in forms.items() if form["dry_run"]["value"] is True}
    assert careful == {"lake_apply", "lake_retention", "lake_erasure"}
    for name, form in forms.items():
        marked = {one for one, param in form.items() if param["schema"].get("of_form")}
        expected = {"dry_run", "confirm"} if name in careful else set()
        assert marked == expected, name
