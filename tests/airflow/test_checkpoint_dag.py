"""The checkpoint agent on a real Airflow and a real Spark: grown journals get a checkpoint, old entries go."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from log_lake.agents.jobs import list_jobs
from tests.airflow.conftest import Agent

pytestmark = pytest.mark.airflow

DAG = "lake_checkpoint"


def run(agent: Agent, **conf: Any) -> dict[str, str]:
    """A run that must succeed; the state of each of its tasks."""
    run_id = agent.run_dag(DAG, **conf)
    return {task["task_id"]: task["state"] for task in agent.services.api.tasks(DAG, run_id)} | {
        "run_id": run_id
    }


def test_pools_that_have_grown_are_kept_and_others_cost_no_spark(agent: Agent) -> None:
    settings = {"checkpoint.entries": "3", "checkpoint.age": "1d", "history.keep": "0s"}
    for name in ("grown", "grown_too", "small"):
        agent.lake.create_pool(name, key="k", settings=settings)
        for k in range(2 if name == "small" else 4):
            agent.lake.pool(name).branch().append(pa.table({"k": [k]}))
    named = {"pools": ["grown", "grown_too", "small"]}

    planned = run(agent, **named, dry_run=True)
    assert (planned["find"], planned["run"]) == ("success", "skipped")
    assert agent.lake.pool("grown").history.journal.marks().checkpoints == ()

    kept = run(agent, **named)
    assert kept["run"] == "success"
    assert agent.services.api.xcom(DAG, kept["run_id"], "report") == {"journals": 2, "entries": 8}
    link = agent.services.api.xcom(DAG, kept["run_id"], "run", key="_link_TransactionLink")
    assert "#jobs/" in link, "it saved several pools"
    for name in ("grown", "grown_too"):
        (job,) = list_jobs(agent.lake, pool_name=name, agent="checkpoint")
        assert (job.state, job.figures["checkpoint"], job.figures["entries"]) == ("done", 4, 4)
        assert (job.run["dag"], job.run["task"]) == (DAG, "run")
    for name, last in (("grown", 4), ("grown_too", 4), ("small", 0)):
        marks = agent.lake.pool(name).history.journal.marks()
        assert (marks.checkpoints[0].version if marks.checkpoints else 0, marks.fence) == (last, last)
        view = type(agent.lake).open(agent.lake.store.uri).pool(name).at()
        assert view.to_table()["k"].to_pylist() == list(range(last or 2))

    again = run(agent, **named)
    assert (again["find"], again["run"], again["report"]) == ("success", "skipped", "success")
