"""`lake-agent`: the agents without Airflow, in this process."""

from __future__ import annotations

import datetime as dt
import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from lake_core.errors import Incomplete, InvalidInput, NotFound, Unavailable
from log_lake.agents.jobs import list_jobs
from log_lake.agents.roster import AGENTS
from log_lake.derived.create import derive
from log_lake.lake import Lake
from spark_apps.command import main


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """A lake with two pools that load what lands in a folder each; LAKE names it."""
    lake = Lake.create(str(tmp_path / "lake"))
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        settings = {
            "ingest.source": str(tmp_path / name),
            "ingest.batch_files": "1",
            "intervals.source": f"{tmp_path}/{name}/%Y-%m-%d.ndjson",
            "intervals.missing": "empty",
            "tombstones.apply": "0s",
            "checkpoint.entries": "1",
            "expire.by": "ts",
            "expire.age": "7d",
            "type.ts": "timestamp",
            "range.records": "5",
        }
        lake.create_pool(name, key="ts", settings=settings)
    monkeypatch.setenv("LAKE", lake.store.uri)
    return lake


@pytest.fixture(autouse=True)
def levels() -> Iterator[None]:
    """The command sets the levels of loggers: other tests of this process have theirs."""
    loggers = [logging.getLogger(name) for name in ("log_lake.agents", "spark_apps")]
    before = [logger.level for logger in loggers]
    yield
    for logger, level in zip(loggers, before, strict=True):
        logger.setLevel(level)


def land(folder: Path, name: str, *times: str) -> None:
    (folder / f"{name}.ndjson").write_text("".join(json.dumps({"ts": time}) + "\n" for time in times))


def records(lake: Lake, name: str) -> int:
    return Lake.open(lake.store.uri).pool(name).at().to_table().num_rows


def test_the_agents_keep_pools_in_order_without_airflow_and_without_spark(
    lake: Lake, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def ran(*words: str) -> dict[str, int]:
        capsys.readouterr()
        assert main(list(words)) == 0
        return json.loads(capsys.readouterr().out)  # type: ignore[no-any-return]

    for number in range(5):
        land(tmp_path / "a", str(number), "2999-01-01T00:00:00Z", "2020-01-01T00:00:00Z")
    land(tmp_path / "b", "0", "2999-01-01T00:00:00Z")
    assert ran("ingest", "--dry-run")["batches"] == 0
    assert ran("ingest", "b")["records"] == 1
    assert ran("ingest")["records"] == 10
    assert ran("ingest")["batches"] == 0
    derive(lake, "d", source="a", query="SELECT ts, count(*) AS n FROM a GROUP BY ts")
    assert ran("compact", "a", "--strategy", "full", "--limit", "1")["pools"] == 1
    assert ran("split", "a")["added"] == 1
    assert ran("retention", "a")["deletes"] == 1
    assert (records(lake, "a"), ran("tombstones", "a")["rewritten"]) == (5, 1)
    lake.configure_pool("a", {"index.by_ts": "bloom(ts)"})
    assert (ran("index", "a")["objects"], ran("index")["pools"]) == (1, 0)
    assert ran("checkpoint")["journals"] >= 2
    erased = ran(
        "erasure", "b", "--where", "ts > timestamp '2900-01-01'", "--grace", "0s", "--no-keep-history"
    )
    assert (erased["done"], records(lake, "b")) == (1, 0)
    day = ("--begin", "2999-01-01", "--end", "2999-01-02T00:00:00Z")
    assert (ran("intervals", "a", *day)["records"], records(lake, "a")) == (0, 0)
    assert ran("intervals", "b", "--files", str(tmp_path / "b" / "0.ndjson"))["records"] == 1
    assert (ran("derive")["pools"], records(lake, "d")) == (1, 0)
    assert {job.agent for job in list_jobs(lake)} == set(AGENTS)
    assert {job.state for job in list_jobs(lake)} == {"done"}


def test_a_run_at_any_time_works_in_paused_pools_and_at_once_applies_young_deletes(
    lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    def rewritten(*words: str) -> int:
        capsys.readouterr()
        assert main(["tombstones", *words]) == 0
        return int(json.loads(capsys.readouterr().out)["rewritten"])

    pool = lake.pool("a")
    times = [dt.datetime(year, 1, 1, tzinfo=dt.UTC) for year in (2998, 2999)]
    pool.branch().append(pa.table({"ts": times}))
    pool.branch().delete(where="ts < timestamp '2999-01-01'")
    lake.configure_pool("a", {"tombstones.apply": "1h", "agents": "paused"})
    assert rewritten("--at-once") == 0
    assert rewritten("--any-time") == 0
    assert rewritten() == 0
    assert (rewritten("--at-once", "--any-time", "a"), records(lake, "a")) == (1, 1)


def unavailable(*words: object, **named: object) -> None:
    raise Unavailable("the store is away")


def test_what_failed_or_cannot_be_is_said_with_the_status_of_the_error(
    lake: Lake, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*words: str) -> tuple[int, str]:
        capsys.readouterr()
        status = main(list(words))
        return status, capsys.readouterr().err.splitlines()[-1]

    assert refused("compact", "c") == (
        NotFound.exit_status,
        "lake-agent: pool 'c' does not exist; there are: a, b",
    )
    assert refused("intervals", "a", "--begin", "2026-01-01")[0] == InvalidInput.exit_status
    assert refused("intervals", "a", "--begin", "soon", "--end", "x")[1].startswith(
        "lake-agent: --begin 'soon'"
    )
    assert refused("retention", "--branch", "")[1].startswith("lake-agent: --branch '': it is empty")
    assert "'limit' must be a whole number of at least 1" in refused("compact", "--limit", "0")[1]
    (tmp_path / "a" / "bad.ndjson").write_text("bad\n")
    status, said = refused("ingest", "a")
    assert (status, said.partition(": ")[2][:20]) == (Incomplete.exit_status, "1 failure: a: parked")
    for agent, method in (("checkpoint", "run_together"), ("tombstones", "run")):
        lake.pool("b").branch().append(pa.table({"ts": [dt.datetime(2999, 1, 1, tzinfo=dt.UTC)]}))
        lake.pool("b").branch().delete(where="ts is not null")
        with monkeypatch.context() as patched:
            patched.setattr(type(AGENTS[agent].load()), method, unavailable)
            assert refused(agent, "b") == (Unavailable.exit_status, "lake-agent: the store is away")
    monkeypatch.delenv("LAKE")
    assert refused("compact") == (InvalidInput.exit_status, "lake-agent: no lake: give --lake, or set LAKE")
    for words in (["nothing"], ["compact", "--wait"], []):
        with pytest.raises(SystemExit):
            main(words)
