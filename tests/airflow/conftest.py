"""One Airflow and one Spark Connect for all tests of this folder, beside a lake that they share.

A second lake is a connection, `lake_own`; the DAGs of `dags/own.py` work on it.

Each test has a pool and a landing place of its own.  The ingest DAG's schedule is `@once`: there is one scheduled
run, when the DAG is first let loose, and all others are asked for.

With LAKE_TEST_POSTGRES=1 Airflow keeps its database in a real PostgreSQL, as in production; otherwise in SQLite, as
`make up` does.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from lake_core.records import Source, Transaction
from lake_core.records.transactions import Consume
from local.ports import LOOPBACK, choose
from local.processes import left_of
from local.services import Services, running
from log_lake.lake import Lake
from tests.support.repository import ROOT
from tests.support.servers.postgres import postgresql
from tests.support.spark.processes import await_true

DAG = "lake_ingest"
COVERED_DAYS = [dt.date(2026, 1, day) for day in (1, 2, 3)]
"""The days of examples/visits.py."""
NIGHTS = [dt.date(2026, 1, day) for day in range(1, 6)]
"""The days of examples/shop_night.py; they are over, so no run is scheduled."""
RUN_SECONDS = 600.0
SCHEDULED = "scheduled"


def example(name: str, changes: Mapping[str, str]) -> str:
    """A file of examples/, with other folders, days and times than those that it has."""
    text = (ROOT / "examples" / name).read_text()
    for old, new in changes.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def example_dags(folder: Path) -> dict[str, str]:
    """The files of examples/, for `COVERED_DAYS` and `NIGHTS`, with files in a folder, and times of seconds."""
    last = f"dt.datetime({COVERED_DAYS[-1]:%Y, %-m, %-d}, tzinfo=dt.UTC)"
    covered = {
        "/data/visits": f"{folder}/visits",
        "timedelta(hours=6)": "timedelta(seconds=5)",
        "FIRST, catchup=True": f"FIRST, end_date={last}, catchup=True",
        "FIRST, deadline": f"{last}, end_date={last}, catchup=True, deadline",
        'pool_name="visits", until': 'pool_name="visits", poke_interval=20, until',
    }
    nights = {
        "/data/shop": f"{folder}/shop",
        "timedelta(minutes=1)": "timedelta(seconds=1)",
        "FIRST, catchup": f"FIRST, end_date=dt.datetime({NIGHTS[-1]:%Y, %-m, %-d}, tzinfo=dt.UTC), catchup",
    }
    return {"visits.py": example("visits.py", covered), "shop_night.py": example("shop_night.py", nights)}


@dataclass(frozen=True)
class Place:
    """A pool that the agent keeps, and where its files land."""

    lake: Lake
    pool: str
    folder: Path

    def land(self, name: str, records: list[dict[str, Any]] | bytes) -> str:
        """A file that lands, whole at once; its name."""
        data = (
            records
            if isinstance(records, bytes)
            else b"".join(json.dumps(r).encode() + b"\n" for r in records)
        )
        path = self.folder / name
        draft = self.folder / f".{name}"
        draft.write_bytes(data)
        draft.replace(path)
        return str(path)

    @property
    def keys(self) -> list[int]:
        """The keys of all records, in the order of the scan."""
        table = self.lake.pool(self.pool).at().to_table()
        return table["k"].to_pylist() if table.num_columns else []

    @property
    def log(self) -> list[Transaction]:
        """The transactions, oldest first."""
        return [transaction for _, transaction in self.lake.pool(self.pool).log()][::-1]

    @property
    def taken(self) -> list[list[Source]]:
        """The files that each transaction took."""
        return [
            [
                source
                for action in transaction.actions
                if isinstance(action, Consume)
                for source in action.sources
            ]
            for transaction in self.log
        ]

    @property
    def data(self) -> list[Path]:
        """The data objects on the store."""
        folder = (
            Path(self.lake.store.uri.removeprefix("file://")) / self.lake.pool(self.pool).config.id / "data"
        )
        return list(folder.glob("*.parquet"))


@dataclass(frozen=True)
class Agent:
    """The ingest DAG on a running Airflow."""

    services: Services
    lake: Lake
    folder: Path
    database: str
    yarn_conf: Path
    yarn_port: int

    def place(self, pool: str, settings: Mapping[str, str] | None = None) -> Place:
        """A new pool with a landing place."""
        landing = self.folder / pool
        landing.mkdir()
        self.lake.create_pool(pool, key="k", settings={"ingest.source": str(landing), **(settings or {})})
        return Place(self.lake, pool, landing)

    def trigger(self, place: Place, **conf: Any) -> str:
        """Asks for a run for one pool; its id."""
        return self.services.api.trigger(DAG, conf={"pools": [place.pool], **conf})

    def wait(self, run: str) -> str:
        """The state in which the run ends."""
        return self.services.api.wait(DAG, run, seconds=RUN_SECONDS)

    def scheduled_run(self) -> str:
        """The run that the schedule of the ingest DAG asks for; its id."""
        runs = await_true(
            lambda: [run for run in self.services.api.runs(DAG) if run["run_type"] == "scheduled"],
            seconds=600,
            what="the scheduled run exists",
        )
        return str(runs[0]["dag_run_id"])

    def run(self, place: Place, **conf: Any) -> str:
        """A run for one pool that must succeed; its id."""
        return self.run_dag(DAG, pools=[place.pool], **conf)

    def run_dag(self, dag: str, **conf: Any) -> str:
        """A run of any DAG, let loose if it was not, that must succeed; its id."""
        api = self.services.api
        api.wait_for_dag(dag)
        api.set_paused(dag, False)
        run = api.trigger(dag, conf=conf)
        assert api.wait(dag, run, seconds=RUN_SECONDS) == "success", api.run_url(dag, run)
        return run

    def report_of(self, dag: str, **conf: Any) -> dict[str, Any]:
        """What such a run reports."""
        return dict(self.services.api.xcom(dag, self.run_dag(dag, **conf), "report"))

    def tasks(self, run: str, task: str) -> list[dict[str, Any]]:
        """The instances of a task, mapped ones each."""
        return [found for found in self.services.api.tasks(DAG, run) if found["task_id"] == task]

    def result(self, run: str) -> dict[str, int]:
        """What the run reports."""
        return dict(self.services.api.xcom(DAG, run, "report"))

    def spark_daemons(self) -> list[psutil.Process]:
        """What the Spark server started to make Python workers."""
        started = running(self.services.run_dir, "spark")
        assert started is not None
        below = psutil.Process(started.keeper.pid).children(recursive=True)
        java = [process for process in below if process.name() == "java"]
        return [child for process in java for child in process.children()]

    def task_process(self, instance: dict[str, Any]) -> psutil.Process | None:
        """The process in which the task's code runs, by the title that Airflow gives it."""
        title = f"airflow worker -- {instance['id']}"
        for process in psutil.process_iter(["cmdline"]):
            if " ".join(process.info["cmdline"] or []).strip() == title:
                return process
        return None


@contextlib.contextmanager
def airflow_database() -> Iterator[dict[str, str]]:
    """The settings of the database that Airflow keeps itself in; none: its SQLite."""
    with contextlib.ExitStack() as until:
        if os.environ.get("LAKE_TEST_POSTGRES") != "1":
            yield {}
            return
        try:
            address = until.enter_context(postgresql())
        except pytest.skip.Exception as reason:  # no reason to skip all of Airflow
            print(f"Airflow keeps its database in SQLite: {reason}")
            yield {}
            return
        uri = address.replace("postgresql://", "postgresql+psycopg://")
        yield {"AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": uri, "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN_ASYNC": uri}


@pytest.fixture(scope="session")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    """Airflow with the project's DAGs, the scheduled run of the ingest DAG over, which had a file to take."""
    folder = tmp_path_factory.mktemp("airflow")
    lake = Lake.create(str(folder / "lake"))
    own = Lake.create(str(folder / "own"))
    yarn_port = choose(18088, what="YARN")
    yarn_conf = folder / "yarn-conf"
    yarn_conf.mkdir()
    manager = {"yarn_resourcemanager_webapp_address": f"http://{LOOPBACK}:{yarn_port}"}
    connections = {
        f"AIRFLOW_CONN_{name.upper()}": json.dumps(connection)
        for name, connection in {
            "lake_own": {"conn_type": "lake", "host": own.store.uri},
            "spark_here": {"conn_type": "spark", "host": "local[2]"},
            "spark_yarn": {"conn_type": "spark", "host": "yarn", "extra": manager},
        }.items()
    }
    # what runs of the tests may name: the lake of `test_apply_dag`, and files of tests
    connections["LAKE_ALLOWED_LAKES"] = str(folder / "applied")
    connections["LAKE_ALLOWED_FILES"] = f"{tmp_path_factory.getbasetemp()}/"
    # no test changes a DAG file; each look at one costs seconds of a core, and Airflow looks every 30 s
    connections["AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL"] = "300"
    connections["YARN_CONF_DIR"] = str(yarn_conf)  # of what a test starts, if it does
    dags = shutil.copytree(ROOT / "dags", folder / "dags", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("own.py", "submitted.py"):
        shutil.copy(Path(__file__).with_name("dags") / name, dags)
    for name, text in example_dags(folder).items():
        (dags / name).write_text(text)
    keepers: list[psutil.Process] = []
    schedules = {
        "LAKE_INGEST_SCHEDULE": "@once",
        "LAKE_CHECKPOINT_SCHEDULE": "",
        "LAKE_COMPACT_SCHEDULE": "",
        "LAKE_TOMBSTONES_SCHEDULE": "",
        "LAKE_RETENTION_SCHEDULE": "",
        "LAKE_ERASURE_SCHEDULE": "",
        "LAKE_INTERVALS_SCHEDULE": "0 0 */4 * *",
    }
    with (
        airflow_database() as database,
        Services(
            run_dir=folder / "run",
            lake=str(folder / "lake"),
            env=schedules | connections | database,
            dags=dags,
            silent=True,
        ) as services,
    ):
        keepers += psutil.Process().children()
        kind = "PostgreSQL" if database else "SQLite"
        agent = Agent(services, lake, folder, kind, yarn_conf, yarn_port)
        agent.place(SCHEDULED).land("a.ndjson", [{"k": 2}, {"k": 1}])
        services.api.wait_for_dag(DAG)
        services.api.set_paused(DAG, False)
        agent.wait(agent.scheduled_run())  # it would take the files of a test that comes first
        yield agent
        below = [process for keeper in keepers for process in keeper.children(recursive=True)]
    left = left_of(below, seconds=RUN_SECONDS)
    assert not left, f"left behind: {left}"
