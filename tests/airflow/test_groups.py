"""The task groups of the agents, beside the agents.

Airflow is imported in a process of its own, because it changes the logging of the one that imports it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from lake_core.agents.request import COMMON
from lake_core.errors import InvalidInput

pytestmark = pytest.mark.airflow

GROUPS = """
import json
from airflow_lake.groups import agents
from airflow_lake.groups.agent import AgentGroup
from airflow_lake.groups.form import OF_AGENT
groups = [g for g in vars(agents).values() if isinstance(g, type) and issubclass(g, AgentGroup)]
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
print("GROUPS " + json.dumps({
    g.agent: {"group": g.also, "form": list(OF_AGENT.get(g.agent, {}))} for g in groups if getattr(g, "agent", "")
}))
"""
AGENTS = ("checkpoint", "compact", "erasure", "ingest", "intervals", "retention", "tombstones")


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
        timeout=300,
        check=True,
    )
    lines = [line.partition(" ") for line in done.stdout.splitlines()]
    return {word: json.loads(rest) for word, _, rest in lines if word.isupper() and rest}


@pytest.fixture
def parameters(printed: dict[str, Any]) -> dict[str, dict[str, list[str]]]:
    """By agent: the parameters that its group, and its trigger form, have beside those of all."""
    return dict(printed["GROUPS"])


def test_there_is_a_group_for_each_agent(parameters: dict[str, dict[str, list[str]]]) -> None:
    assert sorted(parameters) == sorted(AGENTS)


@pytest.mark.parametrize("agent", AGENTS)
def test_a_group_knows_the_parameters_of_its_agent(
    agent: str, parameters: dict[str, dict[str, list[str]]]
) -> None:
    find = import_module(f"lake_core.agents.{agent}.run").find
    more = {"begin": None, "end": None, "run": "r"} if agent == "intervals" else {}
    with pytest.raises(InvalidInput) as refused:
        find({"nonsense": 1}, **more)
    names = ", ".join((*COMMON, *parameters[agent]["group"]))
    assert str(refused.value) == f"unknown parameter 'nonsense'. The parameters are {names}; nothing was done"


@pytest.mark.parametrize("agent", AGENTS)
def test_a_trigger_form_has_all_parameters_of_its_agent(
    agent: str, parameters: dict[str, dict[str, list[str]]]
) -> None:
    assert sorted(parameters[agent]["form"]) == sorted(parameters[agent]["group"])


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
