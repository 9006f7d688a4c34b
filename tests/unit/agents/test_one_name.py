"""An agent has one name everywhere: its folder, DAG, settings and schedule.

Its folder has the same names as those of the others.
"""

from __future__ import annotations

import ast

import pytest

from lake_core.errors import Corrupt
from log_lake.agents.agent import Agent
from log_lake.agents.roster import AGENTS as AGENT_TABLE
from log_lake.settings.settings import KNOWN
from tests.support.repository import AGENTS as THE_EIGHT
from tests.support.repository import ROOT

AGENTS = sorted(path.parent.name for path in (ROOT / "log_lake/agents").glob("*/__init__.py"))
OF_NO_AGENT = {
    "age_off",
    "agents",
    "bad_records",
    "cluster",
    "content",
    "csv",
    "description",
    "exclude",
    "expansion",
    "format",
    "history",
    "include",
    "keep",
    "layout",
    "load",
    "nokey",
    "roll_up",
    "verify",
}
OF_NO_AGENT |= {"partitions", "records", "schema", "token", "upkeep"}
DAGS_OF_NO_AGENT = {"apply"}
"""It applies a policy file; no agent works on pools by itself there."""
STEPS = {
    "kafka": "ingest",
    "expire": "retention",
    "vacuum": "retention",
    "lease": "retention",
    "publish": "compact",
    "range": "split",
}
"""Settings that bear the name of a step of an agent, which is a command too."""
WITHOUT_SETTINGS = {"erasure"}
"""It goes by `vacuum.grace`; what it erases is named by a run, never by a setting."""


def functions(path: str) -> set[str]:
    """Names of the functions in a file, those in functions included."""
    tree = ast.parse((ROOT / path).read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_there_is_a_folder_for_each_of_the_eight_agents() -> None:
    assert [*THE_EIGHT] == AGENTS


def test_each_dag_file_and_each_prefix_of_settings_is_that_of_an_agent() -> None:
    assert sorted(path.stem for path in (ROOT / "dags").glob("[!_]*.py")) == sorted(
        [*AGENTS, *DAGS_OF_NO_AGENT]
    )
    prefixes = {name.partition(".")[0] for name in KNOWN} - OF_NO_AGENT
    assert {STEPS.get(prefix, prefix) for prefix in prefixes} == set(AGENTS) - WITHOUT_SETTINGS


@pytest.mark.parametrize("agent", AGENTS)
def test_an_agent_is_a_folder_with_a_plan_a_run_and_a_report_and_reads_its_policy(agent: str) -> None:
    """A policy of a few lines stands in the plan that it is for."""
    folder = ROOT / "log_lake/agents" / agent
    names = {path.stem for path in folder.glob("*.py")}
    assert names >= {"plan", "run", "report"}
    policy = "policy" if "policy" in names else "plan"
    assert "policy_of" in functions(f"log_lake/agents/{agent}/{policy}.py")
    assert functions(f"log_lake/agents/{agent}/run.py") & {"look"}
    assert isinstance(AGENT_TABLE[agent].load(), Agent)


@pytest.mark.parametrize("agent", AGENTS)
def test_a_plan_reads_no_store_no_clock_and_writes_no_log(agent: str) -> None:
    tree = ast.parse((ROOT / f"log_lake/agents/{agent}/plan.py").read_text())
    modules = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    modules |= {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    impure = ("lake_core.store", "log_lake.lake", "lake_core.context", "logging", "time", "random")
    assert not [module for module in modules if module.startswith(impure)]


@pytest.mark.parametrize("agent", AGENTS)
def test_the_dag_of_an_agent_bears_its_name_and_is_a_group_of_that_name(agent: str) -> None:
    text = (ROOT / f"dags/{agent}.py").read_text()
    assert f'with agent_dag("{agent}", ' in text
    config = f'agent_config("{agent}")'
    assert f"    {agent.title()}Group({config}, takes_params=True, prefix_group_id=False)\n" in text
    assert f"LAKE_{agent.upper()}_SCHEDULE" in text


def test_a_group_has_the_tasks_find_run_report() -> None:
    assert functions("airflow_lake/groups/agent.py") >= {"find", "run", "report"}
    assert functions("airflow_lake/groups/tasks.py") >= {"find", "run", "report"}


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("values", [{"pool": 5, "lake": "l"}, {"lake": "l"}, [], None, "work"])
def test_values_that_are_no_work_of_the_agent_are_corrupt(agent: str, values: object) -> None:
    """As a writer of packs may forge them, or an earlier program wrote them."""
    of = AGENT_TABLE[agent].load()
    with pytest.raises(Corrupt, match=r"not a piece of work of this agent: .* clear the task `find`"):
        of.decoded_work(values)
    with pytest.raises(Corrupt, match="not a result of this agent: "):
        of.decoded_result(values)
