"""Work of agents as jobs of spark-submit, by a real Airflow: in client mode, and on YARN in cluster mode.

LAKE_TEST_YARN=1, as in CI: Spark fetches Hadoop's own small YARN from Maven, 106 MB, once; it needs a JDK.
"""

from __future__ import annotations

import json
import os
import urllib.request
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from local.processes import left_of
from log_lake.agents.jobs import list_jobs
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from tests.airflow.conftest import RUN_SECONDS, Agent
from tests.support.spark.processes import await_true
from tests.support.yarn import yarn

pytestmark = [pytest.mark.airflow, pytest.mark.spark, pytest.mark.slow]


def own(agent: Agent) -> Lake:
    """The lake of the connection `lake_own`."""
    return Lake.open(str(agent.folder / "own"))


def loaded(agent: Agent, name: str, **settings: str) -> Pool:
    """A pool with four loads that overlap."""
    pool = own(agent).create_pool(name, key="k", settings={"compact.strategy": "full", **settings})
    for number in range(4):
        pool.branch().append(pa.table({"k": list(range(number, 1_000, 2))}))
    return pool


def test_each_pack_of_the_agents_is_a_job_of_spark_submit(agent: Agent, tmp_path: Path) -> None:
    landing = tmp_path / "landing"
    landing.mkdir()
    (landing / "a.ndjson").write_text('{"k": 5000}\n')
    source = {"ingest.source": str(landing), "ingest.batch_age": "0s", "checkpoint.entries": "1"}
    pool = loaded(agent, "submitted", **source)
    before = pool.at().to_table().num_rows
    run = agent.run_dag("submitted_here")
    assert pool.at().to_table().num_rows == before + 1
    assert len(pool.at().references) == 1
    (merge,) = [one for _, one in pool.log() if one.metadata.get("task") == "compact.run"]
    assert (merge.metadata["dag"], merge.metadata["run"]) == ("submitted_here", run)
    jobs = {job.agent: job for job in list_jobs(own(agent), pool_name="submitted")}
    assert {(name, job.state, job.run.get("dag")) for name, job in jobs.items()} == {
        (name, "done", "submitted_here") for name in ("ingest", "compact", "checkpoint")
    }
    log = agent.services.api.log("submitted_here", run, "compact.run", map_index=0)
    assert "spark-submit" in log
    assert "Merged" in log or "merged" in log, "the driver's log is the task's"


def applications(port: int) -> list[dict[str, Any]]:
    """The applications of YARN, as its REST API lists them."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/ws/v1/cluster/apps", timeout=600) as answer:
        return list((json.load(answer)["apps"] or {}).get("app", ()))


@pytest.mark.skipif(not os.environ.get("LAKE_TEST_YARN"), reason="LAKE_TEST_YARN is not set")
def test_a_try_after_a_killed_worker_finds_the_job_that_still_runs_on_yarn(
    agent: Agent, tmp_path: Path
) -> None:
    dag, task, api = "submitted_to_yarn", "compact.run", agent.services.api
    pool = loaded(agent, "on_yarn")
    before = pool.at().to_table()
    with yarn(tmp_path / "yarn", conf=agent.yarn_conf, port=agent.yarn_port):
        api.wait_for_dag(dag)
        api.set_paused(dag, False)
        run = api.trigger(dag, conf={})

        def instance() -> dict[str, Any]:
            return next((found for found in api.tasks(dag, run) if found["task_id"] == task), {})

        await_true(lambda: applications(agent.yarn_port), seconds=RUN_SECONDS, what="YARN has the job")
        process = await_true(lambda: agent.task_process(instance()), seconds=600, what="the task runs")
        await_true(lambda: not process.children(), seconds=600, what="spark-submit is over")
        await_true(
            lambda: "application submitted" in api.log(dag, run, task, map_index=0),
            seconds=600,
            what="its id",
        )
        process.kill()
        left_of([process], seconds=600)
        assert api.wait(dag, run, seconds=RUN_SECONDS) == "success", api.run_url(dag, run)
        assert [one["finalStatus"] for one in applications(agent.yarn_port)] == ["SUCCEEDED"]
    assert (instance()["state"], instance()["try_number"]) == ("success", 2)
    assert "Reconnecting to existing job" in api.log(dag, run, task, attempt=2, map_index=0)
    assert len(pool.at().references) == 1
    assert pool.at().to_table() == before
    assert [job.state for job in list_jobs(own(agent), pool_name="on_yarn")] == ["done"]
    assert api.xcom(dag, run, "compact.report")["jobs"] == 1
