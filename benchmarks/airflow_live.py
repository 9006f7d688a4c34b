"""What `airflow` measures on a whole Airflow: scheduler, API server, Spark Connect; the web view in Chromium."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks import data
from benchmarks.airflow_runs import POOLS, put_dags
from benchmarks.measure import Measure
from local.services import Services

FILES, RECORDS = 100, 1_000
"""The number of files in a batch, and of records in each file."""
BATCHES = 4
VISITS = 5
POOL = "landed"
EMPTY = "bench_empty"
SECONDS = 600.0


@contextmanager
def whole_airflow(lake: str) -> Iterator[Services]:
    """Runs Airflow and a Spark Connect server of two cores. Airflow's schedules are off, except that of
    intervals."""
    off = {f"LAKE_{agent}_SCHEDULE": "" for agent in ("INGEST", "COMPACT", "CHECKPOINT", "TOMBSTONES")}
    off |= {f"LAKE_{agent}_SCHEDULE": "" for agent in ("RETENTION", "ERASURE", "SPLIT")}
    dags = put_dags(Path(data.fresh("live-dags")), found='[{"title": "one"}]')
    with Services(run_dir=Path(data.fresh("live")), lake=lake, env=off, dags=dags, silent=True) as services:
        yield services


def batches(services: Services, path: str, landing: str) -> Iterator[Measure]:
    """Measures the empty DAG, and then batches of a hundred files, from the request for the run to the commit.

    Airflow's own share is the time before the tasks `find` and `run`, and between them.
    """
    from log_lake.lake import Lake

    lake = Lake.open(path)
    folder = Path(landing, POOL)
    folder.mkdir(parents=True)
    lake.create_pool(POOL, key="k", settings={"ingest.source": str(folder), "ingest.batch_age": "0s"})
    empty = [(_empty(services), 0.0) for _ in range(BATCHES)]
    yield _measure("floor: an empty DAG, to its second task's end", empty, begins=True)
    yield _measure("landed to committed", [_batch(services, lake, folder, n) for n in range(BATCHES)])
    yield _by_hand(lake, folder)


def _measure(name: str, tries: list[tuple[float, float]], *, begins: bool = False) -> Measure:
    """Returns the median of the warm tries: of all except the first. A try has its seconds, and the seconds that
    its tasks took."""
    warm = sorted(tries[1:])
    seconds, in_tasks = warm[len(warm) // 2]
    said = ", ".join(f"{one:.1f}" for one, _ in tries)
    share = f"{seconds - in_tasks:.1f} s ({1 - in_tasks / seconds:.0%}) Airflow's own"
    return Measure(name, seconds, FILES, 0, f"{share}; all tries {said} s", begins=begins)


def _empty(services: Services) -> float:
    begun, tasks = finished(services, EMPTY, {})
    return _moment(tasks["run"]["end_date"]) - begun


def _batch(services: Services, lake: Any, folder: Path, number: int) -> tuple[float, float]:
    for file in range(FILES):
        lines = (json.dumps({"k": row * FILES + file, "batch": number}) for row in range(RECORDS))
        Path(folder, f"{number}-{file:03d}.ndjson").write_text("\n".join(lines) + "\n")
    begun, tasks = finished(services, "lake_ingest", {"pools": [POOL], "wait": False})
    (version, newest), *_ = lake.pool(POOL).log()
    if version != number + 1:
        raise RuntimeError(f"version {version} after batch {number}")
    committed = newest.time / 1e6
    find, run = tasks["find"], tasks["run"]
    in_tasks = (
        _moment(find["end_date"]) - _moment(find["start_date"]) + committed - _moment(run["start_date"])
    )
    return committed - begun, in_tasks


def finished(services: Services, dag: str, conf: dict[str, Any]) -> tuple[float, dict[str, Any]]:
    """Returns when the run was requested, and its tasks by id, once the run has succeeded."""
    api = services.api
    api.wait_for_dag(dag)
    api.set_paused(dag, False)
    begun = time.time()
    run = api.trigger(dag, conf=conf)
    if api.wait(dag, run, seconds=SECONDS) != "success":
        raise RuntimeError(api.run_url(dag, run))
    return begun, {task["task_id"]: task for task in api.tasks(dag, run)}


def _by_hand(lake: Any, folder: Path) -> Measure:
    """Loads the files of the last batch by a call of Python in this process."""
    lake.create_pool("by_hand", key="k")
    begun = time.perf_counter()
    lake.pool("by_hand").branch().load([str(file) for file in sorted(folder.glob(f"{BATCHES - 1}-*"))])
    return Measure("floor: the same files, branch.load()", time.perf_counter() - begun, FILES, 0)


def interval(services: Services) -> Iterator[Measure]:
    """Runs the intervals agent for a day, by a backfill, over pools without intervals."""
    dag = "lake_intervals"
    services.api.wait_for_dag(dag)
    services.api.set_paused(dag, False)
    day = ("--from-date", "2026-01-01", "--to-date", "2026-01-01")
    services.airflow(["backfill", "create", "--dag-id", dag, *day])
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        runs = [run for run in services.api.runs(dag) if run["run_type"] == "backfill"]
        if runs and all(run["state"] in ("success", "failed") for run in runs):
            break
        time.sleep(0.5)
    (run,) = runs
    tasks = services.api.tasks(dag, run["dag_run_id"])
    mapped = sum(task["map_index"] >= 0 for task in tasks)
    seconds = _moment(run["end_date"]) - _moment(run["start_date"])
    yield Measure(f"intervals, a day, {run['state']}", seconds, POOLS, 0, f"{mapped} mapped tasks")


def _moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def pages(lakes: dict[str, str]) -> Iterator[Measure]:
    """Measures the view in headless Chromium: a lake with one pool, one with a thousand, the geometry of many
    references.

    Each visit is a browser without a cache. Seconds are those from the request of the page to the first paint;
    the note says when the table, or the picture, was there.
    """
    from tests.support.servers.airflow_api import api_server
    from tests.support.servers.chromium import chromium

    folder = Path(data.fresh("view"))
    folder.mkdir(parents=True)
    environ = {
        f"AIRFLOW_CONN_{name.upper()}": json.dumps({"conn_type": "lake", "host": path})
        for name, path in lakes.items()
    }
    shown_lakes = {"LAKE_VIEW_LAKES": " ".join(lakes)}
    with api_server(folder, environ=environ | shown_lakes) as server, chromium() as browser:
        for number, name in enumerate(lakes):
            place = f"geometry/{name}/p" if "references" in name else f"pools/{name}"
            visits = [_visit(browser, server, place) for _ in range(VISITS)]
            paints = [paint for paint, _, _ in visits]
            answers, shown = ([visit[what] for visit in visits] for what in (1, 2))
            note = (
                f"first answer {answers[0]:.2f} s, then {statistics.median(answers[1:]):.2f}; "
                f"shown after {shown[0]:.2f} s, then {statistics.median(shown[1:]):.2f}; "
                f"slowest paint {max(paints):.2f}"
            )
            yield Measure(f"first paint, {name}", statistics.median(paints), 1, 0, note, begins=not number)


def _visit(browser: Any, server: Any, place: str) -> tuple[float, float, float]:
    """Returns three times in seconds: from the request of the page to the first paint, for the data of the page,
    and from the request until the page shows the data."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    try:
        context.add_cookies([{"name": "_token", "value": server.token("viewer"), "url": server.url}])
        page = context.new_page()
        page.set_default_timeout(120_000)
        page.goto(f"{server.url}/lake/#{place}")
        kind = place.partition("/")[0]
        page.locator("canvas[data-boxes]" if kind == "geometry" else "#pools tbody tr").first.wait_for()
        paint, answer, shown = page.evaluate(
            """kind => [
                  performance.getEntriesByName("first-paint")[0].startTime,
                  performance.getEntriesByType("resource").find(e => e.name.includes(`data/${kind}?`)).duration,
                  performance.getEntriesByName(`shown ${kind}`)[0].startTime,
                ].map(ms => ms / 1000)""",
            kind,
        )
        return paint, answer, shown
    finally:
        context.close()
