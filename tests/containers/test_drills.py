"""Failure drills on the running stack: a service is killed while Spark ingests, and comes back after a while.

Each drill ends with the same: the run succeeds without help, every record is there once, one transaction took the
files, no task is left unfinished, the next run finds nothing to do.  If the task itself felt the failure, its log
says so in one clear line.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass

import pytest

from tests.containers.conftest import Pool, make_pool
from tests.support.containers.stack import Stack, eventually

pytestmark = [pytest.mark.containers, pytest.mark.timeout(2400)]

FILES, RECORDS = 60, 10_000
"""Of two megabytes each, and an object each: several seconds of work on two cores."""
DOWN_SECONDS = 15.0
POINT_SECONDS = 600.0


@dataclass(frozen=True)
class Drill:
    """A service to kill (SIGKILL); `said`: what one of the task's logs says of it, if the task feels it."""

    service: str
    said: str = ""
    down: float = DOWN_SECONDS


DRILLS = (
    Drill("scheduler"),
    Drill("worker"),
    Drill("spark-worker"),
    Drill("spark-connect", "Spark at sc://spark-connect:15002 (LAKE_SPARK_REMOTE) went away: "),
    Drill("postgres"),
    Drill("store"),
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


@pytest.mark.parametrize("drill", DRILLS, ids=lambda drill: drill.service)
def test_killed_while_spark_ingests_and_back(running: Stack, drill: Drill) -> None:
    pool = make_pool(running, f"drill_{drill.service.replace('-', '_')}", load__memory="200kB")
    expected = land_files(pool)
    run = pool.trigger("ingest", wait=False)
    eventually(lambda: pool.data, seconds=POINT_SECONDS, what="Spark has written an object", pause=0.1)
    assert pool.versions == 0, "nothing is committed yet"
    begun = time.monotonic()
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
    assert drill.said in said, said[-3000:]
    assert pool.keys == expected
    assert pool.versions == 1
    assert pool.run("ingest", wait=False)["batches"] == 0
    running.wait_until_healthy(drill.service)
