"""examples/visits.py on a real Airflow: intervals in, the sensor, what follows, and a deadline.

With LAKE_VIEW_PICTURES=FOLDER the picture of docs/coverage.md is taken anew.
"""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pytest

from log_lake.coverage.coverage import coverage_of
from tests.airflow.conftest import COVERED_DAYS, Agent
from tests.airflow.pictures import draw_graph, is_drawing, open_airflow
from tests.support.spark.processes import await_true

pytestmark = [pytest.mark.airflow, pytest.mark.timeout(900)]

IN, REPORT = "visits_in", "visits_report"
SECONDS = 600.0


def land(agent: Agent, day: dt.date, number: int) -> None:
    records = [{"time": f"{day}T{hour:02}:00:00Z", "n": hour} for hour in range(number)]
    folder = agent.folder / "visits"
    (folder / f"{day}.ndjson").write_text("".join(json.dumps(one) + "\n" for one in records))


def states(agent: Agent, dag: str) -> list[str]:
    return sorted(run["state"] for run in agent.services.api.runs(dag))


def deadlines(agent: Agent) -> list[dict[str, Any]]:
    """The deadlines of the report, as Airflow's UI lists them."""
    path = f"/ui/dags/{REPORT}/dagRuns/~/deadlines"
    return list(agent.services.api._authenticated("GET", path, body=None)["deadlines"])


def test_a_report_waits_for_all_days_and_a_deadline_tells_that_one_is_lacking(agent: Agent) -> None:
    (agent.folder / "visits").mkdir()
    first, lacking, last = COVERED_DAYS
    settings = {"intervals.since": str(first), "type.time": "timestamp"}
    pool = agent.lake.create_pool("visits", key="time", settings=settings)
    land(agent, first, 2)
    land(agent, last, 3)
    api = agent.services.api
    for dag in (IN, REPORT):
        api.wait_for_dag(dag)
        api.set_paused(dag, False)
    await_true(
        lambda: states(agent, IN) == ["failed", "success", "success"], seconds=SECONDS, what="the days are in"
    )
    (gap,) = coverage_of(pool.at(), until=dt.datetime.combine(last + dt.timedelta(days=1), dt.time())).gaps
    assert gap.begin.date() == lacking
    await_true(
        lambda: any(one["missed"] for one in deadlines(agent)),
        seconds=SECONDS,
        what="the deadline has passed",
    )
    (run,) = api.runs(REPORT)
    assert run["state"] == "running"
    if is_drawing():
        with open_airflow(agent.services) as open_page:
            page = open_page(f"/dags/{REPORT}/runs/{run['dag_run_id']}")
            draw_graph(page, "airflow-coverage-graph", "whole", "report")

    land(agent, lacking, 4)
    (failed,) = (run for run in api.runs(IN) if run["state"] == "failed")
    body = {"dag_run_id": failed["dag_run_id"], "dry_run": False, "only_failed": True}
    api.request("POST", f"dags/{IN}/clearTaskInstances", body=body)
    assert api.wait(REPORT, run["dag_run_id"], seconds=SECONDS) == "success"
    assert api.xcom(REPORT, run["dag_run_id"], "report") == [{"visits": 9}]
    assert api.xcom(REPORT, run["dag_run_id"], "whole")["intervals"] == len(COVERED_DAYS)
