"""`$jobs` is a pool that others may write: records that are no jobs are Corrupt, in one line, and stop no agent.

What the web view answers of them, tests/airflow/view/test_routes.py asks.
"""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lake_core import naming
from lake_core.errors import Corrupt
from log_lake.agents.jobs import KEY, KIND, SETTINGS, list_jobs, recorded
from log_lake.lake import Lake
from log_lake.stores.memory import MemoryStore, named
from spark_apps.command import run_agent
from tests.support.command import DONE, Command

NOW = dt.datetime(2026, 11, 26, tzinfo=dt.UTC)
TIME = pa.timestamp("us", "UTC")


def job(**columns: Any) -> pa.Table:
    """One record as an agent writes it, with some columns as a forger wants them; None: without the column."""
    sound: dict[str, Any] = {
        "began": pa.array([NOW], TIME),
        "id": ["x"],
        "agent": ["compact"],
        "pool": ["a"],
        "branch": ["main"],
        "state": ["done"],
        "seconds": [1.0],
        "figures": pa.array([[("inputs", 2)]], pa.map_(pa.string(), pa.int64())),
        "process": [7],
    }
    return pa.table({name: column for name, column in (sound | columns).items() if column is not None})


FORGED = {
    "a time of another class": job(began=[5]),
    "a time that is a text": job(began=["yesterday"]),
    "a time without a zone": job(began=pa.array([NOW.replace(tzinfo=None)], pa.timestamp("us"))),
    "nanoseconds": job(ended=pa.array([1], pa.timestamp("ns", "UTC"))),
    "an id that is a number": job(id=[5]),
    "no agent": job(agent=None),
    "an agent that is a list": job(agent=[["compact"]]),
    "no pool": job(pool=None),
    "a pool that is a number": job(pool=[5]),
    "a pool that is a record": job(pool=[{"name": "a"}]),
    "a branch that is absent": job(branch=pa.array([None], pa.string())),
    "a state that is bytes": job(state=[b"done"]),
    "seconds that are a text": job(seconds=["long"]),
    "figures that are a list": job(figures=[[1, 2]]),
    "figures that are texts": job(figures=pa.array([[("a", "b")]], pa.map_(pa.string(), pa.string()))),
    "figures of numbers": job(figures=pa.array([[(1, 2)]], pa.map_(pa.int64(), pa.int64()))),
    "an error that is a record": job(error=[{"a": 1}]),
    "a run that is a text": job(run=["dag"]),
    "a process that is a text": job(process=["x"]),
    "nothing but a key": pa.table({"began": pa.array([NOW], TIME), "id": ["x"]}),
}

SHOWN = {
    "seconds that are no number": job(seconds=[float("nan")]),
    "seconds without an end": job(seconds=[float("inf")]),
    "columns of no job": job(more=[[{"a": 1}]]),
    "a text that moves the cursor": job(error=["\x1b[2J\nlake: all is well"]),
    "the first year": job(ended=pa.array([dt.datetime(1, 1, 1, tzinfo=dt.UTC)], TIME)),
    "the last year": job(ended=pa.array([dt.datetime(9999, 12, 31, tzinfo=dt.UTC)], TIME)),
}


@pytest.fixture(scope="module")
def sound() -> MemoryStore:
    """A lake with the pool `a`, in which a compaction is due."""
    store = MemoryStore("memory://sound")
    pool = Lake.create_on(store).create_pool("a", key="k", settings={"compact.depth": "2"})
    for _ in range(9):
        pool.branch().append(pa.table({"k": [1]}))
    return store


def forged(sound: MemoryStore, record: pa.Table, folder: Path) -> tuple[Lake, Command]:
    """A copy of the lake whose `$jobs` has this record, and who commands it."""
    store = named(f"memory://{folder.name}")
    for info in sound.list(""):
        store.put(info.name, sound.get(info.name) or b"")
    lake = Lake.open_on(store)
    lake.own_pool(naming.JOBS, key=KEY, kind=KIND, settings=SETTINGS).branch().append(record)
    return Lake.open_on(store), Command(store.uri, folder)


@pytest.mark.parametrize("what", FORGED)
def test_a_record_that_is_no_job_is_corrupt_in_one_line_and_stops_no_agent(
    sound: MemoryStore, tmp_path: Path, what: str
) -> None:
    lake, command = forged(sound, FORGED[what], tmp_path)
    with pytest.raises(Corrupt, match=r"\$jobs"):
        list_jobs(lake)
    for words in (("jobs",), ("jobs", "--state", "failed")):
        assert command.fails(Corrupt.exit_status, *words).startswith("lake: pool '$jobs': ")
    assert "pool '$jobs': " in command.fails(Corrupt.exit_status, "jobs", "--json")
    for words in (("jobs", "a"), ("jobs", "--agent", "compact")):  # may not meet the record
        assert command.run(*words).status in (DONE, Corrupt.exit_status)
    assert run_agent("compact", {}, lake=lake)["jobs"] == 1
    assert lake.pool("a").at().depth == 1


@pytest.mark.parametrize("what", SHOWN)
def test_a_strange_job_is_shown_and_moves_no_cursor(sound: MemoryStore, tmp_path: Path, what: str) -> None:
    lake, command = forged(sound, SHOWN[what], tmp_path)
    with recorded(lake, agent="ingest", pool_name="a"):
        pass
    assert [one.agent for one in list_jobs(lake)] == ["ingest", "compact"]
    shown = command("jobs").out
    assert shown.count("\n") == 3
    assert "\x1b" not in shown
    assert len(command("jobs", "--json").records) == 2
