"""A cleared run, and the job of spark-submit that its earlier try left: its outcome is not that of other work.

Airflow keeps values of a task by its map index, also when the run is cleared.  Only what talks to YARN is replaced
here: the provider's submission, status and waiting; the rest is the project's.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from log_lake.lake import Lake
from tests.airflow.test_operators import ask

pytestmark = [pytest.mark.airflow, pytest.mark.slow]

PROGRAM = """
import datetime as dt
from contextlib import contextmanager
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowException
from airflow_lake.groups import tasks
from airflow_lake.groups.submitted import SubmittedRun
from log_lake.agents.driver import agent_of
from log_lake.agents.packs import read_packs, write_outcome
from lake_core.errors import LakeError
from log_lake.lake import Lake
from spark_apps.in_task import InTask
from spark_apps.packs import carry_out

AGENT, URI, IN, STORY = sys.argv[1:5]
lake = Lake.open(URI)

class Store(dict):
    set, delete = dict.__setitem__, dict.pop

class Instance:
    try_number, stats_tags, map_index, dag_id, run_id, task_id = 1, {}, 0, "d", "r", "run"
    pushed = {}
    def xcom_push(self, key, value):
        self.pushed[key] = value

yarn = {"state": "", "killed": True, "submitted": 0, "fails": False}

@contextmanager
def spark(title, /, *, size=None):
    yield InTask()

def job():
    def words(name):
        return [value for word, value in zip(yarn["args"], yarn["args"][1:]) if word == name]
    if yarn["fails"]:
        yarn.update(state="FAILED", fails=False)
        raise AirflowException("the job failed")
    decoded = agent_of(AGENT).decoded_work
    work = [decoded(one) for pack in read_packs(lake, words("--pack")) for one in pack]
    outcome = carry_out(AGENT, work, open_lake=lambda name: lake, open_spark=spark)
    write_outcome(lake, words("--outcome")[0], outcome.values)
    yarn["state"] = "FINISHED"

class Submit(SparkSubmitOperator):
    def execute(self, context):
        return self.execute_resumable(context)
    def submit_job(self, context):
        yarn.update(args=list(self.application_args), state="RUNNING", submitted=yarn["submitted"] + 1)
        return f"application_{yarn['submitted']}"
    def poll_until_complete(self, job_id, context):
        if yarn["killed"]:
            raise KeyboardInterrupt("the worker is killed")
        job()
    def get_job_status(self, job_id, context):
        return yarn["state"]
    def is_job_active(self, state):
        return state == "RUNNING"
    def is_job_succeeded(self, state):
        return state == "FINISHED"

for name in ("execute", "submit_job", "poll_until_complete", "get_job_status", "is_job_active", "is_job_succeeded"):
    setattr(SparkSubmitOperator, name, vars(Submit)[name])

def find(*pools):
    request = {"lake": URI, "pools": list(pools), "dry_run": False}
    config = {"request": request, "spark": "", "spark_conf": {}, "filled": []}
    day = {name: dt.datetime(2024, 1, day, tzinfo=dt.UTC) for day, name in enumerate(("begin", "end"), 1)}
    also = {**day, "run": "d:r:find"} if AGENT == "intervals" else {}
    return tasks.find(AGENT, config, None, **also)

CONFIG = {"request": {"lake": URI}, "filled": []}
kept = Store()
def run(pack):
    with DAG("d", schedule=None):
        task = SubmittedRun(task_id="run", agent=AGENT, work=pack, config=CONFIG, conn_id="sp", to_announce=True)
    return task.execute({"ti": Instance(), "task_state_store": kept})

answer = {}
packs = find("a")
try:
    run(packs[0])
except KeyboardInterrupt:
    pass
yarn["killed"] = False
if STORY in ("other", "same", "corrected", "alone"):
    job()
yarn["fails"] = STORY == "fails"
if STORY in ("corrected", "alone"):
    from pathlib import Path
    Path(IN, "a", "2024-01-01.ndjson").write_text(Path(IN, "corrected").read_text())
if STORY not in ("same", "alone"):
    packs = find(*(["a"] if STORY == "corrected" else ["a", "b"]))
results = []
for pack in packs:
    try:
        results.append(run(pack))
    except LakeError as error:
        answer["error"] = type(error).__name__
try:
    answer["totals"] = tasks.report(AGENT, packs, results, CONFIG)
except LakeError as error:
    answer["totals"] = str(error)
answer["submitted"] = yarn["submitted"]
answer["unannounced"] = sorted(one["pool"] for one in Instance.pushed[tasks.UNANNOUNCED])
"""


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Two pools with a file each, for the ingest agent and for the interval of a day."""
    lake = Lake.create(str(tmp_path / "lake"))
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "2024-01-01.ndjson").write_text('{"t": "2024-01-01T01:00:00Z", "v": "first"}\n')
        settings = {
            "ingest.source": str(tmp_path / name),
            "ingest.batch_age": "0s",
            "intervals.source": f"{tmp_path}/{name}/%Y-%m-%d.ndjson",
        }
        lake.create_pool(name, key="t", settings=settings)
    (tmp_path / "corrected").write_text('{"t": "2024-01-01T02:00:00Z", "v": "corrected"}\n')
    return lake


def tell(lake: Lake, folder: Path, agent: str, story: str) -> dict[str, Any]:
    return dict(ask(folder, PROGRAM, agent, lake.store.uri.removeprefix("file://"), str(folder), story))


def values(lake: Lake, pool: str) -> list[str]:
    table = Lake.open(lake.store.uri).pool(pool).at().to_table()
    return table["v"].to_pylist() if table.num_columns else []


@pytest.mark.parametrize("agent", ["ingest", "intervals"])
def test_a_try_takes_the_outcome_of_its_own_job(lake: Lake, tmp_path: Path, agent: str) -> None:
    said = tell(lake, tmp_path, agent, "same")
    assert (said["submitted"], said["totals"]["records"], said["unannounced"]) == (1, 1, ["a"])
    assert values(lake, "a") == ["first"]


@pytest.mark.parametrize("story", ["other", "runs", "fails"])
def test_a_cleared_run_does_not_take_the_outcome_of_a_job_of_other_packs(
    lake: Lake, tmp_path: Path, story: str
) -> None:
    """Map index 0 was pool a, whose job has ended, or runs, or is about to fail; now `find` finds other work."""
    said = tell(lake, tmp_path, "ingest", story)
    assert "error" not in said
    assert values(lake, "b") == ["first"]
    assert values(lake, "a") == ["first"]
    assert said["unannounced"] == ["a", "b"], "what the job of the earlier try loaded is announced too"
    assert said["totals"]["records"] == (2 if story == "fails" else 1), "a repeated load adds no records"


def test_a_cleared_run_loads_the_corrected_file_of_an_interval(lake: Lake, tmp_path: Path) -> None:
    said = tell(lake, tmp_path, "intervals", "corrected")
    assert (said["submitted"], said["totals"]["records"]) == (2, 1)
    assert values(lake, "a") == ["corrected"]


def test_a_task_that_is_cleared_alone_after_its_file_changed_says_so(lake: Lake, tmp_path: Path) -> None:
    said = tell(lake, tmp_path, "intervals", "alone")
    assert (said["submitted"], said["error"]) == (2, "Conflict")
    assert "1 failure: a: run[0] failed" in said["totals"]
    assert values(lake, "a") == ["first"]
