"""The task `approve` of a group, called as Airflow calls it when the answer has come.

Airflow is imported in a process of its own, because it changes the logging of the one that imports it.  That a
person is asked, and answers by Airflow's API, is tests/airflow/test_provider_on_airflow.py.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.airflow

ANSWERED = """
import datetime as dt, json
from airflow.sdk import DAG
from airflow_lake.groups import LakeConfig, RetentionGroup

with DAG("d", schedule=None) as dag:
    RetentionGroup(LakeConfig(approval=True))
approve = dag.task_dict["retention.approve"]

class Instance:
    map_index = -1
    task_id = "retention.approve"
    def __init__(self):
        self.pushed = {}
    def xcom_push(self, key, value):
        self.pushed[key] = value

def answered(option, user):
    instance, said = Instance(), ""
    event = {
        "chosen_options": [option], "params_input": {}, "responded_by_user": user,
        "responded_at": dt.datetime(2026, 1, 1, tzinfo=dt.UTC), "timedout": user is None,
    }
    try:
        approve.execute_complete({"ti": instance, "task": approve}, event)
    except Exception as end:
        said = [type(end).__name__, sorted(getattr(end, "tasks", []))]
    return {"answer": instance.pushed.get("answer"), "end": said}

ann = {"id": "1", "name": "ann"}
nothing = Instance()
approve.packs = []
print("ANSWERED " + json.dumps({
    "approved": answered("Approve", ann),
    "refused": answered("Reject", ann),
    "late": answered("Reject", None),
    "not asked": approve.execute({"ti": nothing, "task_instance": nothing}),
    "waits": [approve.defaults, approve.response_timeout.days, approve.execution_timeout.total_seconds()],
}))
"""


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the task does, by the answer."""
    done = subprocess.run(
        [sys.executable, "-c", ANSWERED],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "AIRFLOW_HOME": str(tmp_path_factory.mktemp("airflow"))},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("ANSWERED ")]
    assert lines, done.stderr
    return dict(json.loads(lines[-1].removeprefix("ANSWERED ")))


def test_what_is_approved_is_done(answered: dict[str, Any]) -> None:
    assert answered["approved"] == {"answer": {"chosen_options": ["Approve"], "by": "ann"}, "end": ""}


def test_what_is_refused_is_skipped_and_the_report_learns_by_whom(answered: dict[str, Any]) -> None:
    assert answered["refused"] == {
        "answer": {"chosen_options": ["Reject"], "by": "ann"},
        "end": ["DownstreamTasksSkipped", ["retention.run"]],
    }


def test_no_answer_in_time_is_a_refusal_by_nobody(answered: dict[str, Any]) -> None:
    assert answered["waits"] == [["Reject"], 7, 1800.0]
    assert answered["late"]["answer"] == {"chosen_options": ["Reject"], "by": ""}
    assert answered["late"]["end"] == ["DownstreamTasksSkipped", ["retention.run"]]


def test_without_work_there_is_no_question(answered: dict[str, Any]) -> None:
    assert answered["not asked"] is None
