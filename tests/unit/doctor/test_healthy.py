"""Healthy lakes in odd but fine states: the doctor says that they are well."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import pyarrow as pa
import pytest

from lake_core import naming
from log_lake.agents.checkpoint.run import checkpoint_and_purge
from log_lake.coverage.key_ranges import interval_range
from log_lake.doctor.health_finding import Severity, Verdict
from log_lake.lake import Lake
from log_lake.leases.lease import READ, LeaseNote
from log_lake.stores.memory import MemoryStore
from log_lake.stores.read_only import ReadOnlyStore
from tests.support.clocks import Clock
from tests.support.pools import compact_all
from tests.support.stores import ScriptedStore
from tests.unit.doctor.conftest import DAY, HOUR, Ward
from tests.unit.doctor.test_illnesses import ONE_DAY, job, pending

Make = Callable[[Ward], Lake | None]

HEALTHY: dict[str, Make] = {}


def well(name: str) -> Callable[[Make], Make]:
    def keep(make: Make) -> Make:
        HEALTHY[name] = make
        return make

    return keep


@well("a lake without pools")
def _(ward: Ward) -> None:
    pass


@well("a pool that never had a record, a month old")
def _(ward: Ward) -> None:
    ward.pool(settings={"expire.age": "30d", "expire.by": "ts", "publish.iceberg": "beside"})
    ward.wait(30 * DAY)


@well("a lake of an hour, in which no agent has run yet")
def _(ward: Ward) -> None:
    pool = ward.pool(loads=20)
    pool.branch().delete(where="k = 1")
    ward.wait(HOUR)


@well("a process that may only read")
def _(ward: Ward) -> Lake:
    ward.pool(loads=3)
    return ward.opened(ReadOnlyStore(ward.store))


@well("a pool that is paused by choice")
def _(ward: Ward) -> None:
    pool = ward.pool(loads=70, settings={"agents": "paused"})
    pool.branch().delete(where="k = 1")
    ward.wait(60 * DAY)


@well("a pool whose upkeep is paused by choice")
def _(ward: Ward) -> None:
    ward.pool(loads=70, settings={"upkeep": "paused"})
    ward.wait(60 * DAY)


@well("a pool outside of its hours of upkeep")
def _(ward: Ward) -> None:
    ward.pool(loads=12, settings={"upkeep.window": "03:00-04:00"})
    ward.wait(20 * HOUR)


@well("a pool that was just split")
def _(ward: Ward) -> None:
    pool = ward.pool()
    for low in range(0, 40, 4):
        pool.branch().append(pa.table({"k": list(range(low, low + 4))}))
    pool.split(at=[10, 20, 30])


@well("young tombstones")
def _(ward: Ward) -> None:
    pool = ward.pool(loads=1)
    for key in range(20):
        pool.branch().delete(where=f"k = {key} and k < 99")
    ward.wait(DAY)


@well("many branches, each with loads")
def _(ward: Ward) -> None:
    pool = ward.pool(loads=2)
    for number in range(12):
        pool.create_branch(f"try{number}")
        for _ in range(3):
            pool.branch(f"try{number}").append(pa.table({"k": [number]}))
    ward.wait(9 * DAY)


@well("an upsert pool with delete markers")
def _(ward: Ward) -> None:
    pool = ward.pool(kind="upsert", loads=3)
    pool.branch().delete_keys(pa.table({"k": [1]}))
    ward.wait(9 * DAY)


@well("an aggregate pool")
def _(ward: Ward) -> None:
    pool = ward.pool(kind="aggregate", aggregates={"n": "sum"})
    for _ in range(4):
        pool.branch().append(pa.table({"k": [1], "n": [2]}))
    ward.wait(9 * DAY)


@well("many small loads that lie in the journal")
def _(ward: Ward) -> None:
    pool = ward.pool(settings={"load.inline": "64KiB"})
    for key in range(40):
        pool.branch().append(pa.table({"k": [key]}))


@well("days that are held, or not late yet, or late in a pool that is paused")
def _(ward: Ward) -> None:
    today = dt.datetime.fromtimestamp(ward.clock.now, dt.UTC).date()
    settings = {"intervals.since": str(today - 3 * ONE_DAY), "intervals.late": "50h"}
    pool = ward.pool(loads=1, settings=settings)
    begin = dt.datetime.combine(today - 3 * ONE_DAY, dt.time(), dt.UTC)
    span = interval_range(begin, begin + ONE_DAY, key=pool.config.key, key_class="number")
    pool.branch().replace_with(pa.table({"k": pa.array([], pa.int64())}), key_range=span)
    ward.pool("paused", loads=1, settings=settings | {"agents": "paused"})


@well("removed objects that a tag keeps for years")
def _(ward: Ward) -> None:
    pool = ward.pool(loads=3, settings={"vacuum.grace": "1d", "history.keep": "3000d"})
    pool.tag("release")
    compact_all(pool)
    ward.wait(900 * DAY)


@well("removed objects within the grace time")
def _(ward: Ward) -> None:
    compact_all(ward.pool(loads=3))
    ward.wait(8 * DAY)


@well("a reader that has just begun on an old version")
def _(ward: Ward) -> None:
    pool = ward.pool(loads=3, settings={"vacuum.grace": "1d", "history.keep": "2d"})
    compact_all(pool)
    ward.wait(3.5 * DAY)
    lease = naming.lease(pool.config.id, ward.lake.context.ids.new())
    ward.store.put(lease, LeaseNote(READ, 1, "eve@host", 3_600.0, "lake scan").encode())


@well("a pool that was dropped, restored and renamed")
def _(ward: Ward) -> None:
    ward.pool(loads=2)
    ward.lake.drop_pool("logs")
    ward.lake.restore_pool("logs", new_name="logs2")
    ward.lake.rename_pool("logs2", "logs3")


@well("a dropped pool within its grace time")
def _(ward: Ward) -> None:
    ward.pool(loads=2)
    ward.lake.drop_pool("logs")
    ward.wait(3 * DAY)


@well("a job that failed once, and then was done")
def _(ward: Ward) -> None:
    ward.pool(loads=1)
    job(ward, "compact", "failed", error="Unavailable: no answer")
    ward.wait(1)
    job(ward, "compact", "done")


@well("work that was put off")
def _(ward: Ward) -> None:
    ward.pool(loads=1)
    job(ward, "compact", "put off", why="outside of upkeep.window")


@well("an erasure that began an hour ago")
def _(ward: Ward) -> None:
    pending(ward, ward.pool(loads=1))
    ward.wait(HOUR)


@well("a copy of a lake, whose objects are younger than their times")
def _(ward: Ward) -> Lake:
    ward.pool(loads=5)
    ward.wait(40 * DAY)
    copy = MemoryStore(clock=Clock(ward.clock.now))
    for info in ward.store.list(""):
        copy.put(info.name, ward.store.get(info.name) or b"")
    return ward.opened(copy)


@well("an idle lake that was kept until all was done")
def _(ward: Ward) -> None:
    pool = ward.pool(loads=9, settings={"history.keep": "30d"})
    compact_all(pool)
    ward.store.put(naming.quiet("checkpoint", "0"), b"{}")
    ward.wait(2 * DAY)
    checkpoint_and_purge(ward.lake, "logs", now=ward.clock.now)
    ward.wait(20 * DAY)


@well("bad records set apart")
def _(ward: Ward) -> None:
    pool = ward.pool(settings={"bad_records": "quarantine"})
    source = ward.folder / "some.ndjson"
    source.write_text('{"k": 1}\n{"k": \n{"a": 2}\n')
    pool.branch().load([str(source)])


@well("clocks that differ by less than a minute")
def _(ward: Ward) -> Lake:
    ward.pool(loads=1)
    return ward.opened(clock=Clock(ward.clock.now - 20))


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_lake_is_well_at_each_look(ward: Ward, name: str) -> None:
    opened = HEALTHY[name](ward)
    assert ward.findings(opened) == []
    for anew in (False, True):
        assert ward.health(opened, anew=anew).verdict is Verdict.WELL


def test_a_pause_and_a_read_only_process_are_notes(ward: Ward) -> None:
    ward.pool(settings={"agents": "paused"})
    notes = ward.health(ward.opened(ReadOnlyStore(ward.store))).all_findings
    assert [(one.kind, one.pool, one.severity) for one in notes] == [
        ("unseen", "", Severity.NOTE),
        ("paused", "logs", Severity.NOTE),
    ]


def test_an_idle_pool_that_was_well_costs_no_request(ward: Ward) -> None:
    for number in range(30):
        ward.pool(f"logs{number}", loads=1)
    ward.wait(HOUR)
    assert ward.health().verdict is Verdict.WELL
    ward.wait(HOUR)
    scripted = ScriptedStore(ward.store)
    health = ward.health(ward.opened(scripted))
    assert (health.verdict, len(health.pools)) == (Verdict.WELL, 30)
    assert {pool.seen for pool in health.pools} == {health.now - HOUR}
    ids = [pool.id for pool in ward.lake.pools()]
    assert [name for _, name in scripted.requests if name.startswith(tuple(ids))] == []


def test_a_pool_that_was_written_to_is_looked_at_again(ward: Ward) -> None:
    pool = ward.pool(loads=1)
    ward.pool("other", loads=1)
    ward.wait(HOUR)
    ward.health()
    ward.wait(HOUR)
    ward.load(ward.opened().pool("logs"))
    health = ward.health()
    assert {one.pool: one.seen == health.now for one in health.pools} == {"logs": True, "other": False}
    assert [one.seen == health.now for one in ward.health(None, "other").pools] == [True]
    assert pool.at().version == 2


def test_a_pool_that_time_alone_makes_ill_is_looked_at_again(ward: Ward) -> None:
    ward.pool(loads=9)
    ward.wait(HOUR)
    assert ward.findings() == []
    ward.wait(1.1 * DAY)
    assert {one.kind for one in ward.findings()} == {"depth", "agent"}
