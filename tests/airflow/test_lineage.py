"""What tasks tell OpenLineage, by Airflow's own listener, and the links that they leave.

The provider `apache-airflow-providers-openlineage` is optional.  With LAKE_TEST_OPENLINEAGE=1, as in CI, it is
installed (`tests.support.apart`); otherwise the variable names a folder that has it, and without it only the links
are tested.

After most tasks of the DAG `good` another writer commits to their pool, before Airflow asks for links and lineage.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from log_lake.lake import Lake
from tests.support.apart import install_target, named_or_installed
from tests.support.repository import ROOT
from tests.support.user_dags import SECONDS
from tests.support.wheel import build

pytestmark = [pytest.mark.airflow, pytest.mark.timeout(600)]

DAGS = """
import json, os
import pyarrow as pa
from airflow.sdk import DAG, task
from airflow_lake.assets import lake_asset
from airflow_lake.groups import IntervalsGroup, LakeConfig, RetentionGroup
from airflow_lake.operators.apply import LakeApplyOperator
from airflow_lake.operators.checkpoint import LakeCheckpointOperator
from airflow_lake.operators.compact import LakeCompactOperator
from airflow_lake.operators.delete import LakeDeleteOperator
from airflow_lake.operators.load import LakeLoadOperator
from airflow_lake.operators.query import LakeQueryOperator
from airflow_lake.operators.replace import LakeReplaceOperator
from airflow_lake.operators.retain import LakeRetainOperator
from log_lake.lake import Lake

folder = os.environ["FOLDER"]
def another_writes(pool, **record):
    "What is called between the work of a task and its end: another writer commits."
    def write(context, result=None):
        Lake.open(folder + "/lake").pool(pool).branch().append(pa.table({"k": [100], **record}))
    return write

logs = {"lake": "lake_own", "pool_name": "logs", "post_execute": another_writes("logs", other=["x"])}

with DAG("good", schedule=None) as good:
    @task(outlets=[lake_asset("logs", lake="lake_own")])
    def outlet():
        return 1

    (
        LakeLoadOperator(task_id="load", files=[folder + "/a.ndjson"], on_spark=False, **logs)
        >> LakeReplaceOperator(task_id="replace", files=[folder + "/b.ndjson"], low="5", high="9", **logs)
        >> LakeDeleteOperator(task_id="delete", where="v = 'bad'", **logs)
        >> LakeDeleteOperator(task_id="nothing", where="v = 'none'", **logs)
        >> LakeCompactOperator(task_id="compact", strategy="full", on_spark=False, **logs)
        >> LakeQueryOperator(
            task_id="query", lake="lake_own", sql="select count(*) from logs", post_execute=logs["post_execute"]
        )
        >> LakeCheckpointOperator(task_id="checkpoint", **logs)
        >> LakeRetainOperator(task_id="idle", **logs)
        >> LakeRetainOperator(
            task_id="retain", lake="lake_own", pool_name="older", post_execute=another_writes("older")
        )
        >> LakeApplyOperator(task_id="apply", lake="lake_own", path=folder + "/pools.yaml")
        >> RetentionGroup(LakeConfig(lake="lake_own", pools=("old",)))
        >> outlet()
    )

with DAG("bad", schedule=None) as bad:
    LakeLoadOperator(task_id="load", files=[folder + "/none.ndjson"], on_spark=False, **logs)

with DAG("dry", schedule=None) as dry:
    asked = {"files": [folder + "/a.ndjson"]}
    IntervalsGroup(LakeConfig(lake="lake_own", pools=("visits",), asked=asked, dry_run=True))

runs = {}
for dag in (good, bad, dry) if __name__ == "__main__" else ():
    run = dag.test()
    runs[dag.dag_id] = {
        ti.task_id: [ti.state, ti.xcom_pull(task_ids=ti.task_id, key="_link_PoolLink", map_indexes=ti.map_index),
                     ti.xcom_pull(task_ids=ti.task_id, key="_link_TransactionLink", map_indexes=ti.map_index)]
        for ti in run.get_task_instances()
    }
if runs:
    from airflow.models.asset import AssetEvent
    from airflow.utils.session import create_session
    with create_session() as session:
        runs["events"] = {event.source_task_id: [event.source_dag_id, event.asset.uri, event.partition_key]
                          for event in session.query(AssetEvent)}
    print("ANSWER " + json.dumps(runs))
"""
SEEN = "from airflow.providers.openlineage.extractors import OperatorLineage"


PINNED = "requirements-openlineage.txt"


def installed() -> Path:
    """The folder with the provider, and what it needs beside the project's own Airflow."""
    folder = ROOT / ".venv" / "openlineage"
    install_target(PINNED, folder, needs=False)
    return folder


@pytest.fixture(scope="module")
def provider() -> str:
    """The folder that has the provider; "" if none was asked for."""
    asked = os.environ.get("LAKE_TEST_OPENLINEAGE", "")
    return str(named_or_installed(asked, installed)) if asked else ""


@pytest.fixture(scope="module")
def has_provider(provider: str) -> bool:
    """Whether Airflow has the provider."""
    environ = {**os.environ, "PYTHONPATH": provider}
    seen = subprocess.run([sys.executable, "-c", SEEN], capture_output=True, check=False, env=environ)
    assert not (provider and seen.returncode), f"{provider} has no provider: {seen.stderr.decode()}"
    return not seen.returncode


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    lake = Lake.create(str(tmp_path_factory.mktemp("lineage") / "lake"))
    lake.create_pool("logs", key="k")
    lake.create_pool("visits", key="time", settings={"intervals.source": "/in/%Y-%m-%d"})
    for name in ("old", "older"):
        pool = lake.create_pool(name, key="k", settings={"expire.records": "1"})
        for k in (1, 2):
            pool.branch().append(pa.table({"k": [k]}))
    return lake


@pytest.fixture(scope="module")
def folder(lake: Lake) -> Path:
    return Path(lake.store.uri.removeprefix("file://")).parent


@pytest.fixture(scope="module")
def runs(lake: Lake, folder: Path, provider: str) -> dict[str, dict[str, list[Any]]]:
    """By DAG and task: its state, the link to its pool, the link to its transaction."""
    (folder / "a.ndjson").write_text('{"k": 1, "v": "a"}\n{"k": 6, "v": "b"}\n{"k": 2, "v": "bad"}\n')
    (folder / "b.ndjson").write_text('{"k": 7, "v": "new"}\n')
    (folder / "pools.yaml").write_text("pools: {more: {key: k}}\n")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "LAKE"))}
    events = {"type": "file", "log_file_path": str(folder / "events.ndjson"), "append": True}
    environ = {
        **clean,
        "AIRFLOW_HOME": str(folder / "airflow"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__API__BASE_URL": "https://airflow.example/team",
        "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps(events),
        "AIRFLOW__OPENLINEAGE__NAMESPACE": "tests",
        "AIRFLOW_CONN_LAKE_OWN": json.dumps({"conn_type": "lake", "host": lake.store.uri}),
    }
    program = folder / "airflow" / "dags" / "lineage.py"
    program.parent.mkdir(parents=True)
    program.write_text(DAGS)
    with zipfile.ZipFile(
        build(ROOT, folder / "wheel").wheel
    ) as files:  # with the entry point of the provider
        files.extractall(folder / "packages")
    for command in (["-m", "airflow", "db", "migrate"], [str(program)]):
        done = subprocess.run(
            [sys.executable, *command],
            env={
                **environ,
                "FOLDER": str(folder),
                "PYTHONPATH": f"{folder / 'packages'}:{provider}".rstrip(":"),
            },
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    lines = [line for line in done.stdout.splitlines() if line.startswith("ANSWER ")]
    assert lines, done.stdout[-3000:] + done.stderr[-3000:]
    # what another thread logs may come between the answer and the end of its line
    answer: dict[str, dict[str, list[Any]]]
    answer, _ = json.JSONDecoder().raw_decode(lines[-1].removeprefix("ANSWER "))
    return answer


@pytest.fixture(scope="module")
def told(runs: Any, folder: Path, has_provider: bool) -> dict[tuple[str, str], dict[str, Any]]:
    """By the task's job and the event's type: the event."""
    if not has_provider:
        pytest.skip("no apache-airflow-providers-openlineage; LAKE_TEST_OPENLINEAGE=1 installs it")
    lines = (folder / "events.ndjson").read_text().splitlines()
    return {(event["job"]["name"], event["eventType"]): event for event in map(json.loads, lines)}


def test_a_task_leads_to_its_pool_and_its_transaction_at_the_version_that_it_committed(
    runs: dict[str, dict[str, list[Any]]],
) -> None:
    view = "https://airflow.example/team/lake/#"
    good = runs["good"]
    assert {state for state, _, _ in good.values()} == {"success"}
    assert good["load"][1:] == [f"{view}geometry/lake_own/logs/1/main", f"{view}log/lake_own/logs/1/main"]
    versions = {"replace": 3, "delete": 5, "compact": 8}  # between them another one wrote
    for task, version in versions.items():
        assert good[task][2] == f"{view}log/lake_own/logs/{version}/main"
    assert good["retain"][2] == f"{view}log/lake_own/older/3/main"
    assert good["retention.run"][2] == f"{view}log/lake_own/old/3/main"
    assert good["retention.find"][1:] == ["", ""]
    assert runs["bad"]["load"] == ["failed", f"{view}geometry/lake_own/logs", f"{view}log/lake_own/logs"]


def test_an_event_is_emitted_by_a_task_that_committed_and_by_none_of_a_dry_run(
    runs: dict[str, dict[str, list[Any]]],
) -> None:
    logs = "lake://lake_own/logs"
    assert {task: state for task, (state, *_) in runs["dry"].items()} == {
        "intervals.find": "success",
        "intervals.run": "skipped",
        "intervals.report": "success",
        "intervals.announce": "success",
    }
    assert runs["events"] == {task: ["good", logs, None] for task in ("load", "replace", "outlet")}


def test_a_task_that_only_reads_leads_to_what_it_read_and_one_that_commits_nothing_to_the_pool(
    runs: dict[str, dict[str, list[Any]]],
) -> None:
    log = "https://airflow.example/team/lake/#log/lake_own/logs"
    links = {task: link for task, (_, _, link) in runs["good"].items()}
    assert (links["query"], links["checkpoint"]) == (f"{log}/9/main", f"{log}/10/main")
    assert links["nothing"] == links["idle"] == log


def dataset(event: dict[str, Any], kind: str, name: str) -> dict[str, Any]:
    (one,) = [one for one in event[kind] if one["name"].endswith(name)]
    return dict(one)


def test_a_load_tells_its_files_the_schema_the_version_and_what_was_written(
    told: dict[tuple[str, str], dict[str, Any]], folder: Path
) -> None:
    event = told["good.load", "COMPLETE"]
    assert [(one["namespace"], one["name"]) for one in event["inputs"]] == [("file", f"{folder}/a.ndjson")]
    logs = dataset(event, "outputs", "/lake/logs")
    assert (logs["namespace"], logs["name"]) == ("file", f"{folder}/lake/logs")
    facets, statistics = logs["facets"], logs["outputFacets"]["outputStatistics"]
    assert [(one["name"], one["type"]) for one in facets["schema"]["fields"]] == [
        ("k", "int64"),
        ("v", "string"),
    ]
    assert facets["version"]["datasetVersion"] == "1"
    (known_as,) = facets["symlinks"]["identifiers"]
    assert (known_as["namespace"], known_as["name"]) == ("lake://lake_own", "logs")
    assert "lifecycleStateChange" not in facets
    assert (statistics["rowCount"], statistics["fileCount"]) == (3, 1)
    assert statistics["size"] > 0


def test_each_task_tells_the_version_that_it_committed_and_what_it_changed(
    told: dict[tuple[str, str], dict[str, Any]],
) -> None:
    for task, version in (("replace", "3"), ("delete", "5"), ("compact", "8")):
        event = told[f"good.{task}", "COMPLETE"]
        facets = dataset(event, "outputs", "/lake/logs")["facets"]
        assert facets["version"]["datasetVersion"] == version
        assert all("version" not in one.get("facets", {}) for one in event["inputs"]), (
            "what was read is not known"
        )
        change = facets.get("lifecycleStateChange", {}).get("lifecycleStateChange")
        assert change == ("OVERWRITE" if task == "replace" else None)
    retained = dataset(told["good.retain", "COMPLETE"], "outputs", "/lake/older")["facets"]
    assert retained["version"]["datasetVersion"] == "3"
    more = dataset(told["good.apply", "COMPLETE"], "outputs", "/lake/more")["facets"]
    assert more["lifecycleStateChange"]["lifecycleStateChange"] == "CREATE"
    assert "version" not in more, "it is the list of pools that has a new version"


def test_a_task_that_commits_nothing_tells_no_version_and_no_change(
    told: dict[tuple[str, str], dict[str, Any]],
) -> None:
    for task in ("nothing", "idle"):
        facets = dataset(told[f"good.{task}", "COMPLETE"], "outputs", "/lake/logs")["facets"]
        assert {"version", "lifecycleStateChange"}.isdisjoint(facets)


def test_a_task_that_only_reads_tells_the_version_that_it_read(
    told: dict[tuple[str, str], dict[str, Any]],
) -> None:
    for task, version in (("query", "9"), ("checkpoint", "10")):
        event = told[f"good.{task}", "COMPLETE"]
        assert event["outputs"] == []
        assert dataset(event, "inputs", "/lake/logs")["facets"]["version"]["datasetVersion"] == version
    query = told["good.query", "COMPLETE"]
    assert query["job"]["facets"]["sql"]["query"] == "select count(*) from logs"


def test_what_is_planned_is_told_at_the_start_and_after_a_failure(
    told: dict[tuple[str, str], dict[str, Any]],
) -> None:
    start = dataset(told["good.replace", "START"], "outputs", "/lake/logs")["facets"]
    assert start["version"]["datasetVersion"] == "2"
    failed = told["bad.load", "FAIL"]
    assert "outputStatistics" not in dataset(failed, "outputs", "/lake/logs")["outputFacets"]
    assert "none.ndjson" in failed["run"]["facets"]["errorMessage"]["message"]


def test_the_task_run_of_an_agent_tells_the_pools_of_its_pack(
    told: dict[tuple[str, str], dict[str, Any]],
) -> None:
    for kind in ("START", "COMPLETE"):
        event = told["good.retention.run", kind]
        assert dataset(event, "inputs", "/lake/old")["facets"]["schema"]["fields"][0]["name"] == "k"
        assert dataset(event, "outputs", "/lake/old")["facets"]["version"]["datasetVersion"] == (
            "2" if kind == "START" else "3"
        )
    assert told["good.retention.find", "COMPLETE"]["outputs"] == []


def test_an_asset_of_a_pool_is_the_same_dataset_as_the_pool(
    told: dict[tuple[str, str], dict[str, Any]],
) -> None:
    dataset(told["good.outlet", "COMPLETE"], "outputs", "/lake/logs")
