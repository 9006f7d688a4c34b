"""Backfills on a real Airflow: a month of intervals, each replaced as a whole, ends in one state anyhow."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import psutil
import pytest

from lake_core.lake import Lake
from tests.airflow.conftest import Agent
from tests.spark.proc import await_true

pytestmark = pytest.mark.airflow

DAG = "lake_intervals"
FIRST = dt.date(2013, 2, 1)
DAYS = [FIRST + dt.timedelta(days=n) for n in range(28)]
EMPTY_DAY = DAYS[10]
SECONDS = 420.0


def day_of(day: dt.date, version: int) -> list[dict[str, Any]]:
    """Three flights of a day; none on the empty one."""
    if day == EMPTY_DAY:
        return []
    times = (f"{day.isoformat()}T{hour:02}:30:00Z" for hour in (0, 12, 23))
    return [{"time": time, "flight": n, "version": version} for n, time in enumerate(times)]


def land(folder: Path, version: int) -> None:
    for day in DAYS:
        (folder / f"{day.isoformat()}.ndjson").write_text(
            "".join(json.dumps(record) + "\n" for record in day_of(day, version))
        )


def held(lake: Lake) -> list[tuple[str, int, int]]:
    records = lake.pool("flights").at().to_table().to_pylist()
    return [(r["time"].strftime("%Y-%m-%dT%H:%M:%SZ"), r["flight"], r["version"]) for r in records]


def expected(version: int) -> list[tuple[str, int, int]]:
    return [(r["time"], r["flight"], r["version"]) for day in DAYS for r in day_of(day, version)]


def backfill(agent: Agent, *words: str) -> None:
    agent.services.airflow(
        [
            "backfill", "create", "--dag-id", DAG, "--from-date", str(DAYS[0]), "--to-date", str(DAYS[-1]),
            "--max-active-runs", "6", "--dag-run-conf", json.dumps({"pools": ["flights"]}), *words,
        ]
    )  # fmt: skip


def await_backfill(agent: Agent, *, runs: int) -> None:
    def states() -> list[str]:
        return [run["state"] for run in agent.services.api.runs(DAG) if run["run_type"] == "backfill"]

    await_true(
        lambda: len(states()) == runs and all(state in ("success", "failed") for state in states()),
        seconds=SECONDS,
        what=f"{runs} runs of the backfill have ended",
    )
    assert set(states()) == {"success"}


def kill_a_replace(agent: Agent) -> str:
    """Kills the process of one task that replaces an interval, while it runs; the id of its run."""

    def running() -> tuple[str, psutil.Process] | None:
        for run in agent.services.api.runs(DAG):
            if run["state"] != "running":
                continue
            for task in agent.services.api.tasks(DAG, run["dag_run_id"]):
                if task["task_id"] == "replace" and task["state"] == "running":
                    process = agent.task_process(task)
                    if process is not None:
                        return run["dag_run_id"], process
        return None

    run, process = await_true(running, seconds=SECONDS, what="an interval is being replaced")
    process.kill()
    return run


def test_a_backfill_run_twice_in_parallel_with_a_task_killed_ends_as_one_clean_run(agent: Agent) -> None:
    landing = agent.folder / "flights"
    landing.mkdir()
    settings = {"interval.source": f"{landing}/%Y-%m-%d.ndjson", "type.time": "timestamp"}
    pool = agent.lake.create_pool("flights", key="time", settings=settings)
    land(landing, version=1)
    api = agent.services.api
    api.wait_for_dag(DAG)
    api.set_paused(DAG, False)
    backfill(agent)
    killed = kill_a_replace(agent)
    await_backfill(agent, runs=len(DAYS))
    assert held(agent.lake) == expected(1)
    tries = {t["try_number"] for t in api.tasks(DAG, killed) if t["task_id"] == "replace"}
    assert tries == {2}, "the killed task was tried again"
    landed = len(list(pool.log()))
    assert landed >= len(DAYS) - 1

    land(landing, version=2)
    backfill(agent, "--run-backwards", "--reprocess-behavior", "completed")
    await_true(lambda: held(agent.lake) == expected(2), seconds=SECONDS, what="every interval is replaced")
    await_backfill(agent, runs=len(DAYS))
    assert held(agent.lake) == expected(2)
    assert held(Lake.open(agent.lake.store.uri)) == expected(2)

    late = agent.folder / "late.ndjson"
    late.write_text(json.dumps({"time": f"{EMPTY_DAY}T10:00:00Z", "flight": 9, "version": 9}) + "\n")
    run = api.trigger(DAG, conf={"pools": ["flights"], "files": [str(late)]})
    assert api.wait(DAG, run, seconds=SECONDS) == "success", api.run_url(DAG, run)
    assert len(held(agent.lake)) == len(expected(2)) + 1
