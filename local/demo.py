"""`make demo`: loads real records through Airflow and Spark, and shows them sorted, committed and readable.

It starts Airflow and Spark Connect, makes a lake and a pool, writes files, and lets the ingest agent load them
in several runs.  Then it runs a query, shows the pool's layout and the time of each step, and stops what it
started.  The data are the flights of `local.flights`, or your own files (`--data`, `--key`).  Lake and Airflow's
database are below .run/demo and are made anew each time; otherwise Airflow would continue the runs of a demo
that failed.  Progress goes to standard error, the result to standard output.
"""

from __future__ import annotations

import argparse
import fcntl
import glob
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import pyarrow as pa

from lake_core.errors import LakeError
from lake_core.phrases import human_size
from lake_core.store import address_of
from local import airflow_service, flights
from local.api import AirflowApi
from local.errors import LocalError
from local.progress import Display, display
from local.services import RUN_DIR, Services, stop_all
from log_lake.console.output import print_table, write_records
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.loading.detect import read_blocks
from log_lake.loading.key_paths import may_have_key
from log_lake.loading.sources import find_files
from log_lake.reading.plan import overlapping
from log_lake.system_tables import query

DAG = "lake_ingest"
DAG_SECONDS = 300.0
RUN_SECONDS = 900.0
KEPT = "kept"
SCRATCH = "memory://demo"
"""A lake that is made only to try a key, and then deleted."""
PARTS = 4
FLIGHTS_QUESTION = """
SELECT carrier, count(*) AS flights, count(*) FILTER (dep_time IS NULL) AS cancelled,
       round(avg(dep_delay), 1) AS mean_delay_min, max(dep_delay) AS longest_delay_min
FROM "flights" GROUP BY carrier ORDER BY flights DESC, carrier LIMIT 8
"""


@dataclass
class Steps:
    """The steps that were done, and how many seconds each took."""

    shown: Display
    taken: list[tuple[str, float]] = field(default_factory=list)

    @contextmanager
    def step(self, name: str, doing: str) -> Iterator[Callable[[str], None]]:
        """Times the block; the block gets a function that reports its progress."""
        begun = time.monotonic()
        self.shown.begin(name, doing)
        last = doing

        def tell(text: str) -> None:
            nonlocal last
            last = text
            self.shown.tell(name, text)

        yield tell
        self.shown.end(name, last)
        self.taken.append((name, time.monotonic() - begun))


@dataclass(frozen=True)
class Dataset:
    """The data: the pool for it, its settings, the parts in which its files arrive, and the query to run."""

    pool: str
    key: str
    settings: dict[str, str]
    parts: list[Callable[[], str]]
    question: str
    records: int | None


def main() -> int:
    parser = argparse.ArgumentParser(prog="make demo", description="The main job on real data.")
    parser.add_argument(
        "--data", metavar="FILE", help="files, a glob or a folder; default: the flights of 2013"
    )
    parser.add_argument("--key", metavar="FIELD,...", help="the fields that the records are sorted by")
    parser.add_argument("--run-dir", type=Path, default=RUN_DIR / "demo")
    args = parser.parse_args()
    if bool(args.data) != bool(args.key):
        print("demo: DATA and KEY go together: make demo DATA='path/*.ndjson.gz' KEY=ts", file=sys.stderr)
        return 2
    try:
        return demonstrate(args.run_dir.resolve(), data=args.data, key=args.key)
    except (LocalError, LakeError) as problem:
        print(f"demo: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("demo: interrupted; what it started is stopped", file=sys.stderr)
        return 130


def demonstrate(run_dir: Path, *, data: str | None, key: str | None) -> int:
    """Runs the whole demo; returns 0, or 1 if records are missing."""
    with alone(run_dir):
        return demonstrate_alone(run_dir, data=data, key=key)


@contextmanager
def alone(run_dir: Path) -> Iterator[None]:
    """While the block runs, no other demo uses the run directory.

    Raises LocalError if another demo uses it, or if the folder holds other files.
    """
    lock = run_dir / "demo.lock"
    if run_dir.exists() and any(run_dir.iterdir()) and not (lock.exists() or (run_dir / KEPT).exists()):
        raise LocalError(
            f"folder {run_dir} holds files of others, and the demo would remove them: name another folder"
        )
    run_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LocalError(f"another demo is running in {run_dir}: wait for its end, or stop it") from None
        yield


def forget(run_dir: Path) -> None:
    """Stops and removes what an earlier demo left: services, Airflow's database, the lake."""
    stop_all(run_dir, silent=True)
    for left in (run_dir / airflow_service.NAME, run_dir / KEPT):
        if left.exists():
            shutil.rmtree(left)


def demonstrate_alone(run_dir: Path, *, data: str | None, key: str | None) -> int:
    own = own_files(data, key) if data and key else None
    if own is not None:  # before anything of an earlier demo is removed
        check_key(pool_of(own, Lake.create(SCRATCH)), own.settings["ingest.source"])
    forget(run_dir)
    kept = run_dir / KEPT
    kept.mkdir(parents=True)
    lake = Lake.create(str(kept / "lake"))
    dataset = own or year_of_flights(kept / "incoming")
    pool = pool_of(dataset, lake)
    steps = Steps(display())
    services = Services(run_dir=run_dir, lake=str(kept / "lake"), env={"LAKE_INGEST_SCHEDULE": ""})
    begun = time.monotonic()
    try:
        services.start()
        services.api.wait_for_dag(DAG, seconds=DAG_SECONDS)
        services.api.set_paused(DAG, False)
        steps.taken.append(("start Airflow and Spark", time.monotonic() - begun))
        with steps.shown:
            for number, arrive in enumerate(dataset.parts, 1):
                with steps.step(f"run {number}", "writing files") as tell:
                    arrived = arrive()
                    ingest(services, pool.name, tell, arrived)
            with steps.step("query", "running the query") as tell:
                reader = query(lake, dataset.question)
                answer = [pa.Table.from_batches([batch]) for batch in reader]
                tell("answered")
        schema = reader.schema
    finally:
        begun = time.monotonic()
        services.stop()
        steps.taken.append(("stop them", time.monotonic() - begun))
    show(lake.pool(pool.name), dataset, answer, schema, steps)
    records = lake.pool(pool.name).at().records
    if dataset.records is not None and records != dataset.records:
        print(f"demo: {records:,} records are in the pool, not {dataset.records:,}", file=sys.stderr)
        return 1
    return 0


def year_of_flights(incoming: Path) -> Dataset:
    """The flights of a year: one file for each day, which arrive in four parts."""
    incoming.mkdir(parents=True)
    days = flights.by_day(flights.read_flights())

    def arrive(dates: list[str]) -> str:
        for date in dates:
            path = incoming / f"flights-{date}.csv"
            path.with_suffix(".tmp").write_bytes(days[date])
            path.with_suffix(".tmp").rename(path)  # a file that is there is whole
        return f"{len(dates)} days written"

    parts = flights.arrivals(list(days), parts=PARTS)
    return Dataset(
        pool="flights",
        key=flights.KEY,
        settings={"ingest.source": str(incoming), "csv.null": flights.NULL, "ingest.batch_files": "50"},
        parts=[partial(arrive, dates) for dates in parts],
        question=FLIGHTS_QUESTION,
        records=flights.RECORDS,
    )


def pool_of(dataset: Dataset, lake: Lake) -> Pool:
    """A new pool for the data."""
    return lake.create_pool(dataset.pool, key=dataset.key, settings=dataset.settings)


def own_files(data: str, key: str) -> Dataset:
    """The user's files, which stay where they are; one run of the agent loads them."""
    source = data if "://" in data else os.path.abspath(data)
    if "://" not in data and not os.path.isdir(source) and not glob.glob(source, recursive=True):
        raise LocalError(f"DATA={data}: no such file or folder; name files, a glob or a folder")
    leading = key.split(",", maxsplit=1)[0].partition(":")[0].replace('"', '""')
    question = f'SELECT count(*) AS records, min("{leading}") AS first, max("{leading}") AS last FROM "demo"'
    return Dataset("demo", key, {"ingest.source": source}, [lambda: data], question, None)


def check_key(pool: Pool, source: str) -> None:
    """Checks the first records of the first file. Raises LocalError if they lack a key field, before anything is
    changed."""
    files = find_files([source], may_be_empty=True, access=address_of(pool.store))
    first = next((file.uri for file in files if file.size), None)
    if first is None:
        raise LocalError(f"DATA: {source} holds no file with records; name other files")
    reading = replace(pool.branch().readings([first])[first], keyless="accept")
    block = next(read_blocks(reading), None)
    names = block.table.schema.names if block is not None else []
    for key in pool.config.key.names:
        if not may_have_key(key, names):
            raise LocalError(
                f"KEY={pool.config.key}: the first records of {first} have no field {key!r}; their fields are "
                f"{', '.join(names[:40]) or 'none'}; name one of these"
            )


def ingest(services: Services, pool_name: str, tell: Callable[[str], None], arrived: str) -> None:
    """Runs the ingest agent once and waits for it.  Raises LocalError if it fails."""
    api = services.api

    def tell_how_far(run_id: str) -> None:
        batches = [task for task in api.tasks(DAG, run_id) if task["task_id"] == "run"]
        done = sum(task["state"] == "success" for task in batches)
        waiting = f"{done} of {len(batches)} batches committed" if done else "waiting for the ingest agent"
        tell(f"{arrived}; {waiting}")

    with api.within(RUN_SECONDS):
        run_id = api.trigger(DAG, conf={"pools": [pool_name], "wait": False})
        state = api.wait(DAG, run_id, seconds=RUN_SECONDS, meanwhile=partial(tell_how_far, run_id))
        if state == "failed":
            raise LocalError(why_failed(api, run_id))
        totals = api.xcom(DAG, run_id, "report")
    tell(
        f"{arrived}; {totals['batches']} batches, {totals['records']:,} records in {totals['objects']} objects"
    )


def why_failed(api: AirflowApi, run_id: str) -> str:
    """A text with the task that failed, the end of its log, and where to see more."""
    failed = next((task for task in api.tasks(DAG, run_id) if task["state"] == "failed"), None)
    if failed is None:
        return f"the run {run_id} failed before its first task"
    log = api.log(DAG, run_id, failed["task_id"], attempt=failed["try_number"], map_index=failed["map_index"])
    return f"the run {run_id} failed in {failed['task_id']}; the end of its log:\n{log[-2000:]}"


def show(pool: Pool, dataset: Dataset, answer: list[pa.Table], schema: pa.Schema, steps: Steps) -> None:
    """Prints the answer, the layout and the times."""
    view = pool.at()
    print(f"\nThe question\n{dataset.question.strip()}\n\nThe answer")
    sys.stdout.flush()
    write_records(answer, schema, format="table", path=None)
    references = tuple(view.references)
    print("\nThe pool")
    layout = {
        "pool": pool.name,
        "sorted by": str(view.key),
        "transactions": f"{view.version:,}",
        "records": f"{view.records:,}",
        "objects": f"{len(references):,}",
        "overlapping": f"{overlapping(references):,} (at most {view.depth} at one key)",
        "size": human_size(sum(r.size for r in references)),
    }
    for name, value in layout.items():
        print(f"{name:12}  {value}")
    print("\nThe steps")
    total = [("all", sum(seconds for _, seconds in steps.taken))]
    print_table(
        [{"step": name, "seconds": f"{seconds:8.1f}"} for name, seconds in [*steps.taken, *total]], empty=""
    )
    print(f"\nThe lake is kept in {os.path.relpath(pool.store.uri)} until the next demo; look at it with")
    print(f"    export LAKE={pool.store.uri}")
    for command, what in (
        (f"show {pool.name}", "its layout, fields and settings"),
        (f"scan {pool.name} --limit 5", "its first records"),
        (f"log {pool.name}", "its transactions"),
        ("ui --open", "the same in your browser, until Ctrl-C"),
    ):
        print(f"    .venv/bin/lake {command:25} # {what}")
    print(f"    {'make up':40} # Airflow with the agents and the web view; make down ends it")


if __name__ == "__main__":
    sys.exit(main())
