"""`make airflow ARGS=...`: the `airflow` command of the Airflow that is up, whatever it was started with."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.airflow.conftest import DAG, Agent
from tests.support.repository import ROOT

pytestmark = [pytest.mark.airflow, pytest.mark.spark, pytest.mark.slow]


def airflow(agent: Agent, *words: str) -> str:
    """What the command says on standard output."""
    done = subprocess.run(
        [sys.executable, "-m", "local", "--run-dir", str(agent.services.run_dir), "airflow", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_make_airflow_asks_the_airflow_that_make_up_started(agent: Agent) -> None:
    said = airflow(agent, "dags", "list", "-o", "json")
    paused = {row["dag_id"]: row["is_paused"] for row in json.loads(said)}
    assert paused[DAG] == "False", "the fixture has let it loose"


def test_make_airflow_runs_with_the_settings_of_the_started_airflow(agent: Agent) -> None:
    assert airflow(agent, "config", "get-value", "workers", "execution_api_timeout") == "60\n"
