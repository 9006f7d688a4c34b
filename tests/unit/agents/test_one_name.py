"""An agent has one name everywhere: its folder, DAG, Spark application, settings and schedule."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from lake_core.catalog.settings import KNOWN

ROOT = Path(__file__).parents[3]
AGENTS = sorted(path.parent.name for path in (ROOT / "lake_core/agents").glob("*/__init__.py"))
OF_NO_AGENT = {
    "age_off",
    "bad_records",
    "csv",
    "description",
    "exclude",
    "history",
    "include",
    "load",
    "nokey",
}
OF_NO_AGENT |= {"partitions", "token"}


def functions(path: str) -> set[str]:
    """Names of the functions in a file, those in functions included."""
    tree = ast.parse((ROOT / path).read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_the_agents_are_five() -> None:
    assert AGENTS == ["checkpoint", "compact", "ingest", "intervals", "tombstones"]


def test_each_dag_file_and_each_prefix_of_settings_is_that_of_an_agent() -> None:
    assert sorted(path.stem for path in (ROOT / "dags").glob("[!_]*.py")) == AGENTS
    assert {name.partition(".")[0] for name in KNOWN} - OF_NO_AGENT == set(AGENTS)


@pytest.mark.parametrize("agent", AGENTS)
def test_the_dag_of_an_agent_bears_its_name_and_has_the_tasks_find_run_report(agent: str) -> None:
    assert functions(f"dags/{agent}.py") >= {f"lake_{agent}", "find", "run", "report"}
    assert f"LAKE_{agent.upper()}_SCHEDULE" in (ROOT / f"dags/{agent}.py").read_text()


@pytest.mark.parametrize("agent", AGENTS)
def test_the_spark_application_of_an_agent_bears_its_name_and_has_its_task(agent: str) -> None:
    assert "run" in functions(f"spark_apps/{agent}.py")
