"""The task groups of the agents, beside the agents.

Airflow is imported in a process of its own, because it changes the logging of the one that imports it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lake_core.errors import InvalidInput
from log_lake.agents.request import COMMON
from tests.support.agents import finder

pytestmark = pytest.mark.airflow

GROUPS = """
import json
from airflow_lake import groups
from airflow_lake.groups.agents import GROUPS
from airflow_lake.groups.form import of_agent
from airflow.sdk import DAG
from airflow_lake.groups import CompactGroup, LakeConfig, LakeUpkeep, RetentionGroup
with DAG("d") as dag:
    LakeUpkeep(LakeConfig(approval=True))
    try:
        CompactGroup(LakeConfig(approval=True))
    except ValueError as error:
        print("REFUSED " + json.dumps(str(error)))
with DAG("lax", default_args={"trigger_rule": "all_done"}, render_template_as_native_obj=True) as lax:
    RetentionGroup(LakeConfig(), group_id="first", prefix_group_id=False)
    RetentionGroup(LakeConfig(approval=True), group_id="second", prefix_group_id=False)
print("RULES " + json.dumps({
    task.task_id: str(task.trigger_rule).rpartition(".")[2].lower() for task in lax.tasks
}))
handed = {}
for task in lax.tasks:
    if task.task_id.startswith("report"):
        cells = [cell.cell_contents for cell in task.python_callable.__closure__]
        handed[task.task_id] = sorted(cell for cell in cells if isinstance(cell, str) and cell != "retention")
print("HANDED " + json.dumps(handed))
print("UPKEEP " + json.dumps([task.task_id for task in dag.tasks if "approve" in task.task_id]))
print("GROUPS " + json.dumps({name: list(of_agent(name)) for name in GROUPS}))
print("OFFERED " + json.dumps(sorted(g.agent for n in groups.__all__ if hasattr(g := getattr(groups, n), "agent"))))
from datetime import timedelta
from airflow.sdk import ExceptionRetryPolicy, TaskGroup
from airflow_lake.operators.compact import LakeCompactOperator
from airflow_lake.operators.retain import LakeRetainOperator
from airflow_lake.sensors.transactions import LakeTransactionSensor
OWN = ExceptionRetryPolicy(rules=[])
hour = timedelta(hours=1)
theirs = {"retries": 0, "priority_weight": 7, "retry_policy": OWN, "execution_timeout": hour}
def made():
    CompactGroup()
    LakeUpkeep(agents=["retention"])
    with TaskGroup("outer", default_args={"retries": 2, "pool": "theirs"}):
        CompactGroup(LakeConfig(airflow_pool="ours"), group_id="inner", default_args={"retry_delay": hour})
    LakeTransactionSensor(task_id="wait", pools=["p"])
    LakeCompactOperator(task_id="one", pool_name="p")
    LakeRetainOperator.partial(task_id="many").expand(pool_name=["p", "q"])
def said(task):
    task = task.unmap({"pool_name": "p"}) if task.task_id == "many" else task
    policy = {0: "theirs", 1: "ours"}[len(task.retry_policy.rules)]  # Airflow copies them
    limit = task.execution_timeout and task.execution_timeout.total_seconds() / 3600
    return [task.retries, task.priority_weight, policy, limit, task.pool]
for word, args in (("THEIRS", theirs), ("OURS", {})):
    with DAG(word.lower(), default_args=args) as dag:
        made()
    print(word + " " + json.dumps({task.task_id: said(task) for task in dag.tasks}))
"""
AGENTS = (
    "checkpoint",
    "compact",
    "derive",
    "erasure",
    "index",
    "ingest",
    "intervals",
    "retention",
    "split",
    "tombstones",
)


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the script prints, by the first word of the line."""
    environ = {**os.environ, "AIRFLOW_HOME": str(tmp_path_factory.mktemp("airflow"))}
    done = subprocess.run(
        [sys.executable, "-c", GROUPS],
        cwd=Path(__file__).parents[2],
        env=environ,
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    lines = [line.partition(" ") for line in done.stdout.splitlines()]
    return {word: json.loads(rest) for word, _, rest in lines if word.isupper() and rest}


def test_there_is_a_group_for_each_agent(printed: dict[str, Any]) -> None:
    assert sorted(printed["GROUPS"]) == sorted(AGENTS) == printed["OFFERED"]


@pytest.mark.parametrize("agent", AGENTS)
def test_a_trigger_form_has_the_parameters_of_its_agent(agent: str, printed: dict[str, Any]) -> None:
    find = finder(agent)
    more = {"begin": None, "end": None, "run": "r"} if agent == "intervals" else {}
    with pytest.raises(InvalidInput) as refused:
        find({"nonsense": 1}, **more)
    names = ", ".join((*COMMON, *printed["GROUPS"][agent]))
    assert str(refused.value) == f"unknown parameter 'nonsense'. The parameters are {names}; nothing was done"


def test_tasks_have_our_defaults_if_the_dag_says_nothing(printed: dict[str, Any]) -> None:
    said = printed["OURS"]
    assert said["compact.find"] == [5, 1, "ours", 0.5, "default_pool"]
    assert said["compact.run"] == said["lake_upkeep.retention.run"] == [5, 1, "ours", 6.0, "default_pool"]
    assert [said[task][2] for task in ("wait", "one", "many")] == ["ours"] * 3


def test_the_default_args_of_a_users_dag_and_groups_win_over_ours(printed: dict[str, Any]) -> None:
    said = printed["THEIRS"]
    theirs = [0, 7, "theirs", 1.0, "default_pool"]
    tasks = (
        "compact.find",
        "compact.run",
        "compact.report",
        "lake_upkeep.retention.run",
        "wait",
        "one",
        "many",
    )
    assert {task: said[task] for task in tasks} == dict.fromkeys(tasks, theirs)
    assert said["outer.inner.run"] == [2, 7, "theirs", 1.0, "ours"], "the config is the user's too"


def test_only_groups_that_delete_ask_a_person(printed: dict[str, Any]) -> None:
    assert printed["UPKEEP"] == ["lake_upkeep.retention.approve"]
    assert printed["REFUSED"] == "the agent compact deletes nothing that is needed: it has no approval"


def test_no_trigger_rule_of_a_dag_lets_run_do_what_was_not_approved(printed: dict[str, Any]) -> None:
    rules = printed["RULES"]
    assert (rules["run"], rules["approve"], rules["run__1"]) == ("all_done", "all_success", "all_success")


def test_a_second_group_without_a_prefix_reads_what_its_own_tasks_handed_over(
    printed: dict[str, Any],
) -> None:
    assert printed["HANDED"] == {"report": ["", "find"], "report__1": ["approve", "find__1"]}
