"""What `airflow` measures in one process: runs of the agents' DAGs (`dag.test()`), parsing, the trigger.

The functions import Airflow only after they have given it a home of its own. Each returns one line; its `note`
has all further measures as JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from benchmarks.measure import timed
from local.services import ROOT

POOLS = 1_000
DEEP = 10
"""How many loads a pool gets that has work. More of their objects overlap than `compact.depth` allows."""
AGENTS = ("ingest", "compact", "checkpoint", "tombstones", "retention", "erasure")
"""The agents that run without an interval of time; `airflow_live` runs the intervals agent."""
TRIES = 10
PARSES = 3
EMPTY = '''"""The floor: the three tasks of an agent, which do nothing."""

from airflow.sdk import DAG, task

with DAG("bench_empty", schedule=None, start_date=None) as dag:

    @task
    def find() -> list[dict[str, str]]:
        return {found}

    @task
    def run(work: dict[str, str]) -> list[dict[str, str]]:
        return [work]

    @task(trigger_rule="all_done")
    def report(results: list[list[dict[str, str]]]) -> int:
        return len(list(results or ()))

    report(run.expand(work=find()))
'''


def put_dags(folder: Path, *, found: str = "[]") -> Path:
    """Makes a DAGs folder with the bundled DAGs and `bench_empty`, whose first task returns `found`."""
    folder.mkdir(parents=True)
    for file in (ROOT / "dags").glob("*.py"):
        (folder / file.name).write_bytes(file.read_bytes())
    (folder / "bench_empty.py").write_text(EMPTY.replace("{found}", found))
    return folder


def build_idle(path: str, landing: str) -> dict[str, Any]:
    """Makes a thousand pools with one load each. Each has a folder of source files, which is empty."""
    import pyarrow as pa

    from log_lake.agents.checkpoint.run import POOLS as LIST
    from log_lake.agents.checkpoint.run import write_checkpoint
    from log_lake.lake import Lake

    lake = Lake.create(path)
    for number in range(POOLS):
        name = f"pool-{number:04d}"
        folder = Path(landing, name)
        folder.mkdir(parents=True)
        pool = lake.create_pool(
            name, key="k", settings={"ingest.source": str(folder), "expire.records": "100"}
        )
        pool.branch().append(pa.table({"k": [number]}))
    write_checkpoint(lake, LIST, now=time.time())  # the list of a thousand pools is due; that would be work
    return {"seconds": 0.0, "records": POOLS}


def build_work(path: str, landing: str) -> dict[str, Any]:
    """Makes a thousand pools, in each of which every agent has work."""
    import pyarrow as pa

    from log_lake.lake import Lake

    lake = Lake.create(path)
    settings = {"checkpoint.entries": "3", "tombstones.apply": "0s", "expire.records": "1"}
    for number in range(POOLS):
        name = f"pool-{number:04d}"
        folder = Path(landing, name)
        folder.mkdir(parents=True)
        Path(folder, "a.ndjson").write_text('{"k": 1}\n')
        pool = lake.create_pool(name, key="k", settings={**settings, "ingest.source": str(folder)})
        for load in range(DEEP):
            pool.branch().append(pa.table({"k": [load, load + 100]}))
        pool.branch().delete(where="k = 1")
    return {"seconds": 0.0, "records": POOLS}


@contextmanager
def _dags(home: str, lake: str) -> Iterator[Callable[[str], Any]]:
    """Returns a function that returns the DAG with an id, in an Airflow with a new database in `home`."""
    os.environ |= {
        "AIRFLOW_HOME": home,
        "AIRFLOW__CORE__DAGS_FOLDER": str(put_dags(Path(home, "dags"))),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(Path(home, "plugins")),
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "ERROR",
        "LAKE": lake,
    }
    from airflow.dag_processing.dagbag import DagBag
    from airflow.utils.db import initdb

    initdb()
    bag = DagBag(dag_folder=str(Path(home, "dags")))
    if bag.import_errors:
        raise RuntimeError(str(bag.import_errors))
    yield lambda name: bag.dags[name]


def _run(dag: Any, conf: dict[str, Any] | None = None, **how: Any) -> tuple[dict[str, Any], Any]:
    """Returns the seconds of a run, which must succeed, and the run."""
    with timed() as answer:
        run = dag.test(run_conf=conf, **how)
    if run.state != "success":
        raise RuntimeError(f"{dag.dag_id}: {run.state}")
    return answer, run


def _mapped(run: Any) -> int:
    return sum(ti.task_id == "run" and ti.map_index >= 0 for ti in run.get_task_instances())


def _java() -> str:
    names = [process.name() for process in psutil.Process().children(recursive=True)]
    return "a JVM" if "java" in names else "no JVM"


def idle(lake: str, home: str) -> dict[str, Any]:
    """Runs each agent twice over idle pools. `note` has, for each run, seconds, processor time, mapped tasks and
    memory."""
    rows: list[tuple[str, float, float, int, int]] = []
    me = psutil.Process()

    with _dags(home, lake) as dag:
        _run(dag("bench_empty"))  # what is imported and made once
        empty = [_run(dag("bench_empty"))[0] for _ in range(5)]
        floor = {what: statistics.median(one[what] for one in empty) for what in ("seconds", "processor")}
        rows.append(("floor", floor["seconds"], floor["processor"], 0, me.memory_info().rss))
        for visit in ("first", "second"):
            for agent in AGENTS:
                answer, run = _run(dag(f"lake_{agent}"))
                rows.append(
                    (
                        f"{agent}, {visit} run",
                        answer["seconds"],
                        answer["processor"],
                        _mapped(run),
                        me.memory_info().rss,
                    )
                )
    note = json.dumps({"rows": rows, "java": _java()})
    return {"seconds": floor["seconds"], "records": POOLS, "note": note}


def work(lake: str, home: str) -> dict[str, Any]:
    """Runs each agent over pools that all have work. The work is only found and mapped: `run` and `report` do
    nothing.

    `note` has, for each agent, the seconds and the number of mapped tasks.
    """
    rows: list[tuple[str, float, int]] = []
    with _dags(home, lake) as dag:
        _run(dag("bench_empty"))
        for agent in AGENTS[:-1]:
            conf = {"wait": False} if agent == "ingest" else None
            answer, run = _run(dag(f"lake_{agent}"), conf, mark_success_pattern="run|report")
            rows.append((agent, answer["seconds"], _mapped(run)))
    return {"seconds": 1.0, "records": POOLS, "note": json.dumps(rows)}


def parse(files: str, lake: str, home: str) -> dict[str, Any]:
    """Reads each of the DAG files (a JSON list) `PARSES` times, in a fork of a process that has imported Airflow,
    as a DAG processor does.

    `note` has, for each file, the least seconds and processor time, and the modules that it imported.
    """
    os.environ |= {"AIRFLOW_HOME": home, "AIRFLOW__CORE__LOAD_EXAMPLES": "False", "LAKE": lake}
    import airflow.dag_processing.dagbag
    import airflow.sdk
    import airflow.serialization.serialized_objects  # noqa: F401

    rows = [
        min((_forked(file, lake) for _ in range(PARSES)), key=lambda row: row[0])
        for file in json.loads(files)
    ]
    return {"seconds": 1.0, "records": len(rows), "note": json.dumps(rows)}


def _forked(file: str, lake: str) -> tuple[float, float, str]:
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.write(writer, json.dumps(_parsed(file, lake)).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answers:
        answer = answers.read()
    os.waitpid(child, 0)
    seconds, processor, said = json.loads(answer)
    return seconds, processor, said


def _parsed(file: str, lake: str) -> tuple[float, float, str]:
    from airflow.dag_processing.dagbag import DagBag

    touched: list[str] = []

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event in ("open", "os.listdir", "os.scandir") and str(arguments[0]).startswith(lake):
            touched.append(str(arguments[0]))

    sys.addaudithook(hook)
    before = set(sys.modules)
    with timed() as answer:
        bag = DagBag(dag_folder=file)
    if bag.import_errors or not bag.dags:
        raise RuntimeError(f"{file}: {bag.import_errors}")
    new = sorted(set(sys.modules) - before)
    core = sum(name.startswith(("lake_core", "log_lake")) for name in new)
    heavy = {name.partition(".")[0] for name in new} & {"pyspark", "pyarrow", "duckdb", "s3fs", "gcsfs"}
    said = f"{core} modules of ours, {', '.join(sorted(heavy)) or 'no Arrow, no Spark'}"
    return answer["seconds"], answer["processor"], f"imports {said}; {len(touched)} files of the lake read"


WRITER = """
import sys, time
import pyarrow as pa
from log_lake.lake import Lake
lake = Lake.open(sys.argv[1])
is_there = any(pool.name == "warm" for pool in lake.pools())
pool = lake.pool("warm") if is_there else lake.create_pool("warm", key="k")
pool.branch().append(pa.table({"k": [1]}))
print("ready", flush=True)
for line in sys.stdin:
    lake.pool(line.strip()).branch().append(pa.table({"k": [1]}))
    print(time.time(), flush=True)
"""


def watch(lake: str, home: str, triggers: str) -> dict[str, Any]:
    """Returns the median seconds from a commit to its event, with this many triggers in Airflow's shared streams.

    `note` is JSON: all these seconds, the number of loops, the seconds until all triggers had begun, and the
    process's bytes after importing Airflow and at most. Another process makes the commits.
    """
    os.environ |= {"AIRFLOW_HOME": home, "AIRFLOW__CORE__LOAD_EXAMPLES": "False"}
    answer = asyncio.run(_watched(lake, int(triggers)))
    return {"seconds": statistics.median(answer["delays"]), "records": POOLS, "note": json.dumps(answer)}


async def _watched(lake: str, count: int) -> dict[str, Any]:
    from airflow.triggers.base import BaseEventTrigger  # noqa: F401 - what a triggerer has imported
    from airflow.triggers.shared_stream import SharedStreamManager

    me = psutil.Process()
    before = me.memory_info().rss
    from airflow_lake.triggers import transactions

    streams, names = SharedStreamManager(), [f"pool-{number:04d}" for number in range(POOLS)]
    events: asyncio.Queue[tuple[str, float]] = asyncio.Queue()

    async def listen(id: int, trigger: Any) -> None:
        key = trigger.shared_stream_key()
        async for event in trigger.filter_shared_stream(
            streams.subscribe(trigger_id=id, trigger=trigger, key=key)
        ):
            await events.put((event.payload["pool"], time.time()))

    begun = time.perf_counter()
    listening = [
        asyncio.create_task(listen(id, transactions.TransactionTrigger(pools=names[id::count], lake=lake)))
        for id in range(count)
    ]

    def waiting() -> int:
        return sum(len(loop.interest.positions) for loop in transactions._LOOPS.values())

    peak = before
    while waiting() < POOLS:
        if failed := [task for task in listening if task.done()]:
            failed[0].result()
        await asyncio.sleep(0.1)
        peak = max(peak, me.memory_info().rss)
    began = time.perf_counter() - begun
    writer = await asyncio.create_subprocess_exec(
        sys.executable, "-c", WRITER, lake, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert writer.stdin is not None
    assert writer.stdout is not None
    await writer.stdout.readline()
    delays: list[float] = []
    for number in range(TRIES):
        await asyncio.sleep(0.7 * (number % 3))  # at other moments between two looks
        pool = names[number * 97]
        writer.stdin.write(f"{pool}\n".encode())
        committed = float(await writer.stdout.readline())
        said, at = await asyncio.wait_for(events.get(), 60)
        if said != pool:
            raise RuntimeError(f"an event of {said}, not of {pool}")
        delays.append(max(at - committed, 0.001))
        peak = max(peak, me.memory_info().rss)
    writer.stdin.close()
    await writer.wait()
    loops = len(transactions._LOOPS)
    for task in listening:
        task.cancel()
    await asyncio.gather(*listening, return_exceptions=True)
    return {"delays": delays, "loops": loops, "began": began, "before": before, "peak": peak}
