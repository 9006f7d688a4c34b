"""Failure drills on the running stack: a service is killed while Spark ingests, and comes back after a while.

Each drill ends with the same: the run succeeds without help, every record is there once, one transaction took the
files, no task is left unfinished, the next run finds nothing to do.  And a person finds out what happened: the log
of the task's last try says what was loaded, `lake jobs` has a line for each try, the line `Drill.said` is in the
place `Drill.place`.  The table of docs/deploy.md says the same; tests/docs holds it to this.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from lake_core import naming
from log_lake.agents.jobs import KEY, KIND, SETTINGS
from tests.containers.conftest import Pool, make_pool
from tests.support.containers.stack import Stack, eventually

pytestmark = [pytest.mark.containers, pytest.mark.timeout(2400)]

FILES, RECORDS = 60, 10_000
"""Of two megabytes each, and an object each: several seconds of work on two cores."""
DOWN_SECONDS = 15.0
POINT_SECONDS = 600.0
TRIES = 4
"""Ingests, until one is met between its first object and its commit."""

JOBS_SECONDS = 120.0


TASK = "the task's log"
AIRFLOW = "a service of Airflow"
AIRFLOW_SERVICES = ("scheduler", "api-server", "dag-processor", "triggerer")


@dataclass(frozen=True)
class Drill:
    """A service to kill (SIGKILL).

    `said`: the line that a person finds, in `place`: the logs of the task, or the log of a service.  `told`: what
    the logs of the task say too.  `jobs`: the states that `lake jobs` has, the oldest first.
    """

    service: str
    said: str
    place: str
    jobs: tuple[str, ...] = ("done",)
    told: str = ""
    down: float = DOWN_SECONDS


DRILLS = (
    Drill("scheduler", "Adopting or resetting orphaned tasks for active dag runs", "scheduler"),
    Drill(
        "worker",
        "Detected a task instance without a heartbeat",
        "scheduler",
        ("died", "done"),
        told="says how that ended",
    ),
    Drill("spark-worker", "Lost executor", "spark-connect"),
    Drill(
        "spark-connect",
        "Spark at sc://spark-connect:15002 (LAKE_SPARK_REMOTE) went away: ",
        TASK,
        ("failed", "done"),
    ),
    Drill("postgres", "OperationalError", AIRFLOW),  # which of them asks meanwhile is chance
    Drill("store", "version 1, 600,000 records", TASK),
)


def land_files(pool: Pool) -> list[int]:
    """Files that Spark needs some time for; the keys of all their records."""
    for i in range(FILES):
        lines = (b'{"k": %d, "text": "%0200d"}' % (n * FILES + i, n) for n in range(RECORDS))
        pool.land(f"{i:02}.ndjson", b"\n".join(lines) + b"\n")
    return list(range(FILES * RECORDS))


def logs_of_run(pool: Pool, run: str) -> str:
    """All logs of the mapped task, of every try, as JSON: of an exception it holds more than the event."""
    _, tries = pool.tasks("ingest", run)["run"]
    path = f"dags/lake_ingest/dagRuns/{run}/taskInstances/run/logs"
    logs = [pool.running.api.get(f"{path}/{n}", map_index=0, full_content=True) for n in range(1, tries + 1)]
    return json.dumps(logs)


def jobs_die_soon(pool: Pool) -> None:
    """A job whose process was killed counts as died after half a minute, not ten."""
    lake = pool.lake
    lake.own_pool(naming.JOBS, key=KEY, kind=KIND, settings=SETTINGS)
    lake.configure_pool(naming.JOBS, {"lease.ttl": "30s"})


def jobs_of(pool: Pool) -> list[dict[str, Any]]:
    """The lines of `lake jobs` for the pool, the oldest first."""
    said = pool.running.lake("jobs", pool.name, "--json")
    return [json.loads(line) for line in said.splitlines()][::-1]


def found_at(pool: Pool, run: str, place: str, *, since: str) -> str:
    """All that a person reads at a place; `since`: when the service was killed."""
    if place == TASK:
        return logs_of_run(pool, run)
    services = AIRFLOW_SERVICES if place == AIRFLOW else (place,)
    return "\n".join(pool.running.service_log(service, since=since) for service in services)


@pytest.mark.parametrize("service", ["worker", "spark-connect"])
def test_killed_while_spark_compacts_and_back(running: Stack, service: str) -> None:
    pool = make_pool(running, f"drill_compact_{service.replace('-', '_')}", ingest__batch_files="10")
    expected = land_files(pool)
    assert pool.run("ingest", wait=False)["records"] == len(expected)
    before = pool.data
    run = pool.trigger("compact", strategy="full")
    eventually(
        lambda: pool.data - before, seconds=POINT_SECONDS, what="Spark has written an object", pause=0.1
    )
    running.kill(service)
    try:
        time.sleep(DOWN_SECONDS)
    finally:
        running.start(service)
    assert pool.wait("compact", run) == "success", pool.tasks("compact", run)
    assert (pool.keys, pool.depth) == (expected, 1)
    running.wait_until_healthy(service)


@pytest.mark.parametrize("drill", DRILLS, ids=lambda drill: drill.service)
def test_killed_while_spark_ingests_and_back(running: Stack, drill: Drill) -> None:
    for number in range(TRIES):
        name = f"drill_{drill.service.replace('-', '_')}_{number}"
        pool = make_pool(running, name, load__memory="200kB")
        jobs_die_soon(pool)
        expected = land_files(pool)
        run = pool.trigger("ingest", wait=False)
        eventually(lambda: pool.data, seconds=POINT_SECONDS, what="Spark has written an object", pause=0.1)  # noqa: B023
        if pool.versions == 0:
            break
        assert pool.wait("ingest", run) == "success"  # on a busy machine the test looked too late
    assert pool.versions == 0, "nothing is committed yet"
    begun, since = time.monotonic(), datetime.now(UTC).isoformat()
    running.kill(drill.service)
    try:
        time.sleep(drill.down)
    finally:
        running.start(drill.service)
    state = pool.wait("ingest", run)
    tasks = pool.tasks("ingest", run)
    said = logs_of_run(pool, run)
    print(f"\n{drill.service}: {state} {time.monotonic() - begun:.0f} s after the kill; tasks {tasks}")
    assert state == "success", said[-3000:]
    assert {task_state for task_state, _ in tasks.values()} == {"success"}
    assert f"{pool.name}: version 1, {len(expected):,} records" in said, "the last try says what was loaded"
    assert drill.told in said
    found = found_at(pool, run, drill.place, since=since)
    print([line for line in found.splitlines() if drill.said in line][-1:], jobs_of(pool))
    assert drill.said in found, found[-3000:]
    assert pool.keys == expected
    assert pool.versions == 1
    assert pool.run("ingest", wait=False)["batches"] == 0
    running.wait_until_healthy(drill.service)
    eventually(
        lambda: tuple(job["state"] for job in jobs_of(pool)) == drill.jobs,
        seconds=JOBS_SECONDS,
        what=f"`lake jobs` says {drill.jobs}",
    )
