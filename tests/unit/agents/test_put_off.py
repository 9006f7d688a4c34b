"""Which pools agents leave alone: those that are paused, and those outside of their hours; and who says so."""

from __future__ import annotations

import datetime as dt
import logging
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lake_core.errors import Incomplete, InvalidInput, LakeError
from lake_core.ids import IdSource
from lake_core.records import ConfigurePool, PoolsEntry
from log_lake.agents.finding import BOUND_BY_HOURS, why_put_off
from log_lake.lake import Lake
from log_lake.settings import Settings
from log_lake.stores.memory import MemoryStore
from spark_apps.command import main
from tests.support.agents import finder, reporter
from tests.support.clocks import Clock

AGENTS = (
    "ingest",
    "intervals",
    "derive",
    "compact",
    "split",
    "checkpoint",
    "tombstones",
    "index",
    "retention",
    "erasure",
)
WITHOUT_HOURS = sorted(set(AGENTS) - set(BOUND_BY_HOURS))


def at(text: str) -> float:
    """Seconds since 1970 of a time in UTC."""
    return dt.datetime.fromisoformat(f"{text}+00:00").timestamp()


def is_put_off(window: str, time: str, agent: str = "compact") -> bool:
    return why_put_off(Settings({"upkeep.window": window}), agent=agent, now=at(time)) is not None


@pytest.mark.parametrize("agent", AGENTS)
def test_without_settings_nothing_is_put_off(agent: str) -> None:
    assert why_put_off(Settings({}), agent=agent, now=at("2026-01-01T12:00")) is None


@pytest.mark.parametrize("agent", AGENTS)
def test_a_paused_pool_is_left_alone_by_every_agent(agent: str) -> None:
    why = why_put_off(Settings({"agents": "paused"}), agent=agent, now=at("2026-01-01T12:00"))
    assert why == "agents=paused"


@pytest.mark.parametrize("agent", AGENTS)
def test_paused_upkeep_lets_loads_and_erasures_go_on(agent: str) -> None:
    why = why_put_off(Settings({"upkeep": "paused"}), agent=agent, now=at("2026-01-01T12:00"))
    assert why == (None if agent in ("ingest", "intervals", "derive", "erasure") else "upkeep=paused")


@pytest.mark.parametrize(
    ("window", "time", "closed"),
    [
        ("08:00-17:00", "2026-01-01T07:59:59", True),
        ("08:00-17:00", "2026-01-01T08:00", False),
        ("08:00-17:00", "2026-01-01T16:59:59", False),
        ("08:00-17:00", "2026-01-01T17:00", True),
        ("22:00-06:00", "2026-01-01T21:59", True),
        ("22:00-06:00", "2026-01-01T22:00", False),
        ("22:00-06:00", "2026-01-01T00:00", False),
        ("22:00-06:00", "2026-01-01T05:59", False),
        ("22:00-06:00", "2026-01-01T06:00", True),
        ("00:00-24:00", "2026-01-01T23:59", False),
        ("22:00-00:00", "2026-01-01T23:59", False),
        ("22:00-00:00", "2026-01-01T00:00", True),
        ("12:00-13:00,22:00-06:00", "2026-01-01T12:30", False),
        ("12:00-13:00,22:00-06:00", "2026-01-01T13:30", True),
        ("22:00-06:00 Europe/Berlin", "2026-01-01T21:00", False),
        ("22:00-06:00 Europe/Berlin", "2026-01-01T20:59", True),
        ("22:00-06:00 Europe/Berlin", "2026-07-01T20:00", False),
        ("22:00-06:00 Europe/Berlin", "2026-07-01T04:00", True),
        ("09:00-17:00 America/New_York", "2026-07-01T13:00", False),
        ("02:00-03:00 Europe/Berlin", "2026-03-29T01:30", True),  # that hour does not exist that night
    ],
)
def test_hours_are_open_from_their_begin_to_before_their_end(window: str, time: str, closed: bool) -> None:
    assert is_put_off(window, time) is closed


@pytest.mark.parametrize("agent", WITHOUT_HOURS)
def test_data_that_users_wait_for_and_erasures_are_not_bound_by_hours(agent: str) -> None:
    assert not is_put_off("08:00-17:00", "2026-01-01T20:00", agent)


@pytest.mark.parametrize(
    "text",
    [
        *("22-06", "22:00", "22:00-22:00", "24:00-06:00", "22:60-06:00", "22:00-24:01", "2:00-6:00", " "),
        *("22:00-06:00,", "22:00-06:00 Nowhere", "22:00-06:00 ../etc", "22:00-06:00 /etc/passwd", "always"),
        *("22:00-06:00 Europe", "22:00–06:00", "٢٢:٠٠-٠٦:٠٠"),
    ],
)
def test_hours_that_cannot_be_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"setting upkeep\.window="):
        Settings({"upkeep.window": text})["upkeep.window"]


# ---------------------------------------------------------------- the agents


@pytest.fixture
def clock() -> Clock:
    return Clock(at("2026-01-01T12:00"))


@pytest.fixture
def lake(clock: Clock) -> Lake:
    """Three pools in which compact, checkpoint, split, tombstones, index and retention have work."""
    lake = Lake.create_on(MemoryStore(), ids=IdSource(clock=clock))
    busy = {"checkpoint.entries": "2", "tombstones.apply": "0s", "expire.records": "1", "compact.depth": "1"}
    busy["range.records"] = "1"
    for name, more in {
        "a-paused": {"agents": "paused"},
        "b-night": {"upkeep.window": "22:00-06:00"},
        "c-open": {},
    }.items():
        branch = lake.create_pool(name, key="k", settings=busy | more).branch()
        for number in range(4):
            branch.append(pa.table({"k": [1, 2], "v": [number, number]}))
        branch.delete(where="k = 1")
        lake.configure_pool(name, {"index.v": "bloom(v)"})
    return lake


def found(agent: str, lake: Lake, **params: Any) -> dict[str, str]:
    """The pools that `find` hands out, each with why it is put off or ""."""
    find = finder(agent)
    work = find({"lake": "memory", **params}, open_lake=lambda name: lake)
    return {one["pool"]: one.get("put_off", "") for one in work if one["pool"] != "lake:pools"}


NIGHT = "it is outside of upkeep.window (22:00-06:00 UTC)"


@pytest.mark.parametrize("agent", BOUND_BY_HOURS)
def test_an_agent_hands_out_what_it_puts_off_for_the_report_alone(
    agent: str, lake: Lake, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    expected = {"a-paused": "agents=paused", "b-night": NIGHT, "c-open": ""}
    assert found(agent, lake) == expected
    assert "a-paused: put off: agents=paused" in caplog.messages
    assert f"b-night: put off: {NIGHT}" in caplog.messages
    assert found(agent, lake, pools=["b-night"]) == {"b-night": NIGHT}, (
        "to name a pool is no way around its hours"
    )
    assert found(agent, lake, dry_run=True) == {}
    clock.now = at("2026-01-01T22:00")
    assert found(agent, lake) == {**expected, "b-night": ""}


@pytest.mark.parametrize("agent", BOUND_BY_HOURS)
def test_a_report_names_what_was_put_off_and_does_not_miss_it(
    agent: str, lake: Lake, caplog: pytest.LogCaptureFixture
) -> None:
    report = reporter(agent)
    find = finder(agent)
    work = find({"lake": "memory", "pools": ["a-paused", "b-night"]}, open_lake=lambda name: lake)
    caplog.clear()
    caplog.set_level(logging.INFO)
    report(work, [])
    assert caplog.messages[:2] == ["a-paused: put off: agents=paused", f"b-night: put off: {NIGHT}"]


def test_a_pool_whose_hours_this_machine_cannot_read_is_put_off(lake: Lake) -> None:
    elsewhere = ConfigurePool(lake.pool("b-night").config.id, {"upkeep.window": "22:00-06:00 Mars/Olympus"})
    entry = PoolsEntry(lake.context.ids.new(), 0, "another machine", (elsewhere,))
    lake.catalog.journal.append(lambda loaded: entry, id=entry.id)
    assert "use a time zone that this machine knows" in found("compact", lake)["b-night"]


def test_the_ingest_agent_looks_at_no_source_of_a_paused_pool(lake: Lake, tmp_path: Path) -> None:
    for name in ("a-paused", "c-open"):
        lake.configure_pool(name, {"ingest.source": str(tmp_path)})
    (tmp_path / "a.ndjson").write_text('{"k": 1}\n')
    assert found("ingest", lake) == {"a-paused": "agents=paused", "c-open": ""}
    lake.configure_pool("a-paused", {"ingest.source": str(tmp_path / "nowhere")})
    assert found("ingest", lake) == {"a-paused": "agents=paused", "c-open": ""}


def test_an_interval_of_a_paused_pool_fails_the_run_because_no_later_run_does_it(lake: Lake) -> None:
    for name in ("a-paused", "c-open"):
        lake.configure_pool(name, {"intervals.source": "/nowhere/%Y-%m-%d/*.csv", "type.k": "bigint"})
    begin = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    work = finder("intervals")(
        {"lake": "memory"},
        begin=begin,
        end=begin + dt.timedelta(days=1),
        run="r",
        open_lake=lambda name: lake,
    )
    assert {one["pool"]: one.get("put_off", "") for one in work} == {
        "c-open": "",
        "a-paused": "agents=paused",
    }
    report = reporter("intervals")
    with pytest.raises(Incomplete, match="a-paused: put off: agents=paused"):
        report([one for one in work if one.get("put_off")], [])


def test_an_erasure_of_a_paused_pool_stays_pending_and_the_run_fails(lake: Lake) -> None:
    assert found("erasure", lake) == {}, "a paused pool without an erasure is not worth a word"
    asked = {"lake": "memory", "pools": ["a-paused"], "where": "k = 2"}
    work = finder("erasure")(asked, open_lake=lambda name: lake)
    assert [one["put_off"] for one in work] == ["agents=paused"]
    report = reporter("erasure")
    with pytest.raises(Incomplete, match="a-paused: put off: agents=paused: an erasure is pending"):
        report(work, [])
    assert found("erasure", lake) == {"a-paused": "agents=paused"}, "the next run says it again"
    lake.configure_pool("a-paused", {"agents": "active"})
    assert found("erasure", lake) == {"a-paused": ""}


def test_the_erasure_agent_as_a_command_leaves_a_paused_pool_alone_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = Lake.create(str(tmp_path))
    lake.create_pool("people", key="k", settings={"agents": "paused"}).branch().append(
        pa.table({"k": [1, 2]})
    )
    assert main(["erasure", "--lake", lake.store.uri, "people", "--key", "1"]) == Incomplete.exit_status
    assert "people: put off: agents=paused: an erasure is pending" in capsys.readouterr().err
    assert lake.pool("people").at().to_table()["k"].to_pylist() == [1, 2]


def test_an_unknown_pool_is_still_an_error(lake: Lake) -> None:
    for agent in (*BOUND_BY_HOURS, "erasure"):
        with pytest.raises(LakeError, match="does not exist"):
            found(agent, lake, pools=["nobody"])
