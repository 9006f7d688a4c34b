"""The recipe of CONTRIBUTING.md for a new agent, followed to the letter in a copy of the packages."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pyarrow as pa
import pytest

from lake_core import naming
from log_lake.agents.packs import read_outcome, write_packs
from log_lake.agents.roster import AGENTS, group_name
from log_lake.lake import Lake
from tests.support.repository import ROOT

RECIPE = (ROOT / "CONTRIBUTING.md").read_text().partition("## Add an agent\n")[2].partition("\n## ")[0]
LAKE = "import sys; from log_lake.cli.main import main; sys.exit(main())"
GROUP = """
import json
from airflow.sdk import DAG
from airflow_lake.groups import LakeConfig, LakeUpkeep, ToyGroup
with DAG("d") as dag:
    ToyGroup(LakeConfig(lake="x"))
    LakeUpkeep()
print("TASKS " + json.dumps([task.task_id for task in dag.tasks if "toy" in task.task_id]))
"""
DAG_FILE = """
from airflow.dag_processing.dagbag import DagBag
bag = DagBag(dag_folder="{file}")
assert bag.import_errors == {{}}, bag.import_errors
print("DAGS " + ",".join(f"{{dag.dag_id}} {{dag.schedule}}" for dag in bag.dags.values()))
"""


def blocks() -> list[str]:
    """The code of the recipe."""
    return [dedent(code) for code in re.findall(r"   ```python\n(.*?)   ```", RECIPE, re.DOTALL)]


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """The packages as they are, with the agent of the recipe: a folder and a row."""
    house = tmp_path / "house"
    agents = house / "log_lake" / "agents"
    agents.mkdir(parents=True)
    for source, target, own in (
        (ROOT, house, {"log_lake"}),
        (ROOT / "log_lake", house / "log_lake", {"agents"}),
        (ROOT / "log_lake" / "agents", agents, {"roster.py"}),
    ):
        for path in source.iterdir():
            if path.name not in own and not path.name.startswith(".") and path.name != "__pycache__":
                (target / path.name).symlink_to(path)
    agent, row, _ = blocks()
    (agents / "toy").mkdir()
    (agents / "toy" / "__init__.py").touch()
    (agents / "toy" / "run.py").write_text(agent)
    table = (ROOT / "log_lake/agents/roster.py").read_text()
    assert table.count("_TABLE = (\n") == 1
    (agents / "roster.py").write_text(table.replace("_TABLE = (\n", f"_TABLE = (\n    {row.strip()},\n"))
    return house


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake.create(str(tmp_path / "lake"))
    for name, records in (("a", 2), ("b", 0), ("c", 3)):
        lake.create_pool(name, key="k").branch().append(pa.table({"k": list(range(records))}))
    return lake


def ran(house: Path, *words: str) -> str:
    environ = {
        **os.environ,
        "PYTHONPATH": str(house),
        "AIRFLOW_HOME": str(house.parent / "airflow"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    done = subprocess.run(
        [sys.executable, *words],
        cwd=house,
        env=environ,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_agent_is_a_command_with_help_whose_work_is_recorded(house: Path, lake: Lake) -> None:
    assert "toy" in ran(house, "-m", "spark_apps.command", "--help")
    assert "--limit" in ran(house, "-m", "spark_apps.command", "toy", "--help")
    totals = json.loads(ran(house, "-m", "spark_apps.command", "toy", "--lake", lake.store.uri))
    assert totals == {"pools": 2, "records": 5}
    listed = ran(house, "-c", LAKE, "jobs", "--agent", "toy", "--json", "--lake", lake.store.uri)
    jobs = [json.loads(line) for line in listed.splitlines()]
    assert {(job["pool"], job["state"]) for job in jobs} == {("a", "done"), ("c", "done")}


@pytest.mark.airflow
def test_the_agent_is_a_group_of_airflow_and_a_part_of_upkeep(house: Path) -> None:
    line = next(line for line in ran(house, "-c", GROUP).splitlines() if line.startswith("TASKS "))
    assert json.loads(line.removeprefix("TASKS ")) == [
        *("toy.find", "toy.run", "toy.report"),
        *("lake_upkeep.toy.find", "lake_upkeep.toy.run", "lake_upkeep.toy.report"),
    ]


@pytest.mark.airflow
def test_the_dag_file_of_the_recipe_loads(house: Path, tmp_path: Path) -> None:
    file = tmp_path / "toy.py"
    file.write_text(blocks()[2])
    assert "DAGS lake_toy @daily" in ran(house, "-c", DAG_FILE.format(file=file))


@pytest.mark.spark
def test_the_agent_is_an_application_of_spark(house: Path, lake: Lake) -> None:
    (pack,) = write_packs(
        lake, [[{"lake": lake.store.uri, "pool": "a", "branch": "main", "title": "a", "at": 1}]]
    )
    outcome = naming.pack(lake.context.ids.new(), 0)
    words = ("--lake", lake.store.uri, "--agent", "toy", "--pack", pack, "--outcome", outcome)
    ran(house, "-m", "spark_apps.agent", *words)
    (told,) = read_outcome(lake, outcome)
    result = told["result"]
    assert result.pop("cost")["reads"] > 0
    assert told == {"piece": 0, "result": {"pool": "a", "version": None, "records": 2}}


def test_the_page_on_airflow_has_a_row_for_each_agent() -> None:
    page = (ROOT / "docs/airflow.md").read_text()
    rows = re.findall(r"^\| `lake_(\w+)` \| \[\w+\]\([^)]*\) \| `(\w+)` \|", page, re.MULTILINE)
    assert sorted(rows) == sorted((name, group_name(name)) for name in AGENTS)
