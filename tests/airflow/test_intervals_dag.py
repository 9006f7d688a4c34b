"""Backfills on a real Airflow: a month of intervals, each replaced as a whole, ends in one state anyhow."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import psutil
import pytest

from log_lake.lake import Lake
from tests.airflow.conftest import Agent
from tests.support.spark.processes import await_true

pytestmark = [pytest.mark.airflow, pytest.mark.timeout(900)]

DAG = "lake_intervals"
BEGINS = [dt.date(2013, 1, day) for day in (1, 5, 9, 13, 17, 21, 25, 29)]
"""By the schedule of `conftest`: every fourth day of a month."""
ENDS = [*BEGINS[1:], dt.date(2013, 2, 1)]
EMPTY = BEGINS[3]
SECONDS = 600.0


def flights_of(begin: dt.date, version: int) -> list[dict[str, Any]]:
    """Three flights on each day of an interval; none in the empty one."""
    days = (ENDS[BEGINS.index(begin)] - begin).days if begin != EMPTY else 0
    times = [
        f"{(begin + dt.timedelta(days=n)).isoformat()}T{time}Z"
        for n in range(days)
        for time in ("00:00:00", "12:30:00", "23:59:59")
    ]
    return [{"time": time, "flight": n, "version": version} for n, time in enumerate(times)]


def land(folder: Path, version: int) -> None:
    for begin in BEGINS:
        lines = [json.dumps(record) + "\n" for record in flights_of(begin, version)]
        (folder / f"{begin.isoformat()}.ndjson").write_text("".join(lines))


def held(lake: Lake) -> list[tuple[str, int, int]]:
    records = lake.pool("flights").at().to_table().to_pylist()
    return [(r["time"].strftime("%Y-%m-%dT%H:%M:%SZ"), r["flight"], r["version"]) for r in records]


def expected(version: int) -> list[tuple[str, int, int]]:
    return [(r["time"], r["flight"], r["version"]) for day in BEGINS for r in flights_of(day, version)]


def backfill(agent: Agent, *words: str) -> None:
    """As a user asks for it."""
    command = [
        "backfill", "create", "--dag-id", DAG, "--from-date", str(BEGINS[0]), "--to-date", str(BEGINS[-1]),
        "--max-active-runs", "4", "--dag-run-conf", json.dumps({"pools": ["flights"]}), *words,
    ]  # fmt: skip
    agent.services.airflow(command)


def made_backfills(agent: Agent) -> list[dict[str, Any]]:
    return list(agent.services.api.get("backfills", dag_id=DAG)["backfills"])


def await_backfills(agent: Agent) -> None:
    """All that were asked for have ended; each interval has one run, and it succeeded."""
    await_true(
        lambda: all(made["completed_at"] for made in made_backfills(agent)),
        seconds=SECONDS,
        what="the backfills have ended",
    )
    runs = [run for run in agent.services.api.runs(DAG) if run["run_type"] == "backfill"]
    assert [run["state"] for run in runs] == ["success"] * len(BEGINS)


def kill_a_replace(agent: Agent) -> str:
    """Kills the process of one task that replaces an interval, while it runs; the id of its run."""

    def running() -> tuple[str, psutil.Process] | None:
        for run in agent.services.api.runs(DAG):
            # that of the schedule replaces nothing
            if run["state"] != "running" or run["run_type"] != "backfill":
                continue
            for task in agent.services.api.tasks(DAG, run["dag_run_id"]):
                if task["task_id"] == "run" and task["state"] == "running":
                    process = agent.task_process(task)
                    if process is not None:
                        return run["dag_run_id"], process
        return None

    run, process = await_true(running, seconds=SECONDS, what="an interval is being replaced")
    process.kill()
    return run


def test_a_backfill_run_twice_in_parallel_with_a_task_killed_ends_as_one_clean_run(agent: Agent) -> None:
    if agent.database == "SQLite":
        pytest.skip(
            "not tried with Airflow's database in SQLite (decision 46); LAKE_TEST_POSTGRES=1 has PostgreSQL"
        )
    landing = agent.folder / "flights"
    landing.mkdir()
    settings = {
        "intervals.source": f"{landing}/%Y-%m-%d.ndjson",
        "intervals.missing": "empty",
        "type.time": "timestamp",
    }
    pool = agent.lake.create_pool("flights", key="time", settings=settings)
    land(landing, version=1)
    api = agent.services.api
    api.wait_for_dag(DAG)
    api.set_paused(DAG, False)
    backfill(agent)
    killed = kill_a_replace(agent)
    await_backfills(agent)
    assert held(agent.lake) == expected(1)
    tries = {t["try_number"] for t in api.tasks(DAG, killed) if t["task_id"] == "run"}
    assert tries == {2}, "the killed task was tried again"
    landed = len(list(pool.log()))
    assert landed >= len(BEGINS) - 1

    land(landing, version=2)
    backfill(agent, "--run-backwards", "--reprocess-behavior", "completed")
    await_backfills(agent)
    assert held(agent.lake) == expected(2)
    assert held(Lake.open(agent.lake.store.uri)) == expected(2)

    late = agent.folder / "late.ndjson"
    late.write_text(json.dumps({"time": f"{EMPTY}T10:00:00Z", "flight": 9, "version": 9}) + "\n")
    run = api.trigger(DAG, conf={"pools": ["flights"], "files": [str(late)]})
    assert api.wait(DAG, run, seconds=SECONDS) == "success", api.run_url(DAG, run)
    assert len(held(agent.lake)) == len(expected(2)) + 1
