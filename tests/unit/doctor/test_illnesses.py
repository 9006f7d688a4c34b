"""Illnesses made by hand: the doctor names each rightly, and names no other."""

from __future__ import annotations

import datetime as dt
import shlex
from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
import pytest

from lake_core import naming
from lake_core.catalog import Catalog
from lake_core.errors import Denied, Unavailable
from lake_core.history.transactions.decisions import CommitLease, Decisions
from lake_core.ids import IdSource
from lake_core.records.vacuuming import BeginVacuum
from lake_core.store import Created, Store
from log_lake.agents.ingest import parking
from log_lake.agents.jobs import Job, new_jobs, write_jobs
from log_lake.cli.main import build_parser
from log_lake.doctor.health_finding import HealthFinding, Severity, Verdict
from log_lake.doctor.kinds import POOL_KINDS, findings_of
from log_lake.doctor.lake_kinds import LAKE_KINDS, lake_findings_of
from log_lake.doctor.signs import LakeSigns, PoolSigns, TailSigns
from log_lake.erasure import receipt as receipts
from log_lake.erasure.receipt import Receipt
from log_lake.lake import Lake
from log_lake.lake.open_transactions import transactions
from log_lake.lake.pool import Pool
from log_lake.leases.lease import READ, LeaseNote
from log_lake.loading.source_files import SourceFile
from log_lake.stores.locked import LockedStore
from log_lake.stores.locks import FileLock
from log_lake.stores.memory import MemoryStore
from tests.support.clocks import Clock
from tests.support.pools import compact_all
from tests.support.stores import ScriptedStore, StoreInFront, raising
from tests.unit.doctor.conftest import DAY, HOUR, Ward

ONE_DAY = dt.timedelta(days=1)

ILLNESSES: dict[str, Callable[[Ward], Lake | None]] = {}
"""By its name `KIND how`; the function makes the illness and returns the lake that the doctor opens."""

Make = Callable[[Ward], Lake | None]


def ill(name: str) -> Callable[[Make], Make]:
    def keep(make: Make) -> Make:
        ILLNESSES[name] = make
        return make

    return keep


@ill("depth for two days")
def _(ward: Ward) -> None:
    ward.pool(loads=9)
    agent_was_here(ward, "compact", 2 * DAY)


def agent_was_here(ward: Ward, agent: str, wait: float) -> None:
    """Time passes in which the agent was there, and did not do its work."""
    ward.wait(wait)
    ward.store.put(naming.quiet(agent, "0"), b"{}")


@ill("behind with compactions that do not suffice")
def _(ward: Ward) -> None:
    pool = ward.pool(loads=12)
    for _ in range(2):
        job(ward, "compact", "done", figures={"depth_before": 14, "depth_after": 12})
        ward.wait(HOUR)
    assert pool.at().version == 12


def job(ward: Ward, agent: str, state: str, **values: object) -> None:
    (one,) = new_jobs(ward.lake, agent=agent, pool_names=["logs"])
    ended = None if state == "running" else dt.datetime.fromtimestamp(ward.clock.now, dt.UTC)
    write_jobs(ward.lake, [replace(one, state=state, ended=ended, **values)])


@ill("tombstones not applied")
def _(ward: Ward) -> None:
    pool = ward.pool(loads=1)
    pool.branch().delete(where="k = 1")
    agent_was_here(ward, "tombstones", 3 * DAY)


@ill("erasure that nobody ends")
def _(ward: Ward) -> None:
    pending(ward, ward.pool(loads=1))
    ward.wait(3 * DAY)


def pending(ward: Ward, pool: Pool) -> None:
    """An erasure began now."""
    begun = int(ward.clock.now * 1e6)
    ids = ward.lake.context.ids
    about = {"lake": ward.lake.id, "pool_id": pool.config.id, "pool": "logs", "author": "ann"}
    what = {"sub_pool": "", "low": b"", "high": None, "where": "k = 1"}
    receipts.write(pool, Receipt(1, ids.new(), **about, **what, version_before=1, begun=begun))


@ill("checkpoint of many entries")
def _(ward: Ward) -> None:
    ward.pool(loads=6, settings={"checkpoint.entries": "5"})
    agent_was_here(ward, "checkpoint", 2 * DAY)


@ill("checkpoint of old entries")
def _(ward: Ward) -> None:
    ward.pool(loads=65, settings={"compact.depth": "100"})
    agent_was_here(ward, "checkpoint", 3 * DAY)


@ill("purge that nobody does")
def _(ward: Ward) -> None:
    ward.pool(loads=3, settings={"history.keep": "1d"})
    agent_was_here(ward, "checkpoint", 5 * DAY)


def garbage(ward: Ward) -> Pool:
    """Three objects that a compaction removed, and that may be deleted after ten days."""
    pool = ward.pool(loads=3, settings={"vacuum.grace": "1d", "history.keep": "10d"})
    compact_all(pool)
    return pool


@ill("garbage that nobody deletes")
def _(ward: Ward) -> None:
    pool = garbage(ward)
    agent_was_here(ward, "retention", 12.5 * DAY)
    ward.load(pool)  # no checkpoint is old enough for a purge


@ill("garbage of a vacuum that died")
def _(ward: Ward) -> None:
    pool = garbage(ward)
    gone = sorted(id for id, _ in pool.history.load().state.removed.items())
    loaded = pool.history.load()
    pool.commit_actions((BeginVacuum(tuple(gone)),), branch="", on=loaded.version, message="vacuum")
    agent_was_here(ward, "retention", 3 * DAY)


@ill("lease of a reader that hangs")
def _(ward: Ward) -> None:
    pool = ward.pool(loads=3, settings={"vacuum.grace": "1d", "history.keep": "2d"})
    lease = naming.lease(pool.config.id, ward.lake.context.ids.new())
    note = LeaseNote(READ, pool.at().version, "eve@host", DAY, "lake scan").encode()
    compact_all(pool)
    agent_was_here(ward, "retention", 3.5 * DAY)
    ward.store.put(lease, note)


@ill("parked file")
def _(ward: Ward) -> None:
    pool = ward.pool(loads=1, settings={"ingest.source": "/incoming/*.csv"})
    assert ward.findings() == []  # the doctor remembers that the pool was well
    ward.wait(HOUR)
    assert ward.findings() == []
    file = SourceFile("/incoming/bad.csv", 12, "e", ward.clock.now)
    parking.park(pool, file, why="record 3: not a number", now=ward.clock.now)


@ill("publication that nobody made")
def _(ward: Ward) -> None:
    ward.pool(loads=1, settings={"publish.iceberg": "beside"})
    agent_was_here(ward, "compact", 2 * DAY)


@ill("coverage that lacks days")
def _(ward: Ward) -> None:
    today = dt.datetime.fromtimestamp(ward.clock.now, dt.UTC).date()
    ward.pool(loads=1, settings={"intervals.since": str(today - 2 * ONE_DAY), "intervals.late": "26h"})
    assert ward.findings()[0].says.startswith("1 day is late; the first was due ")
    ward.wait(DAY)


@ill("job that failed")
def _(ward: Ward) -> None:
    ward.pool(loads=1)
    job(ward, "compact", "done")
    ward.wait(1)
    job(ward, "compact", "failed", error="Corrupt: an object is damaged")


@ill("job that died")
def _(ward: Ward) -> None:
    ward.pool(loads=1)
    job(ward, "ingest", "running")
    ward.wait(HOUR)


@ill("clock of a writer")
def _(ward: Ward) -> None:
    ward.pool()
    ahead = Clock(ward.clock.now + 3 * HOUR)
    ward.load(ward.opened(clock=ahead).pool("logs"))


@ill("settings of another program")
def _(ward: Ward) -> None:
    ward.pool(loads=1)
    Catalog(ward.lake.context, check=lambda *_: None).configure("logs", {"compact.depth": "deep"})


@ill("fight of two sizes")
def _(ward: Ward) -> None:
    ward.pool(loads=1, settings={"compact.max_bytes": "10MiB"})


@ill("fight of a field that there is not")
def _(ward: Ward) -> None:
    ward.pool(loads=1, settings={"expire.age": "30d", "expire.by": "tiem"})


@ill("fight of a filter without its field")
def _(ward: Ward) -> None:
    ward.pool(loads=1, settings={"keep.where": "levle = 'warn'"})


@ill("fight of a pause and a publication")
def _(ward: Ward) -> None:
    ward.pool(loads=1, settings={"publish.iceberg": "beside", "upkeep": "paused"})


@ill("unseen journal that is damaged")
def _(ward: Ward) -> None:
    pool = ward.pool(loads=3)
    ward.store.put(naming.entry(pool.history.journal.name, 2), b"garbage")


@ill("unseen erasures")
def _(ward: Ward) -> Lake:
    pool = ward.pool(loads=1)
    scripted = ScriptedStore(ward.store)
    denied = raising(Denied("403 Forbidden"))
    scripted.on("list", naming.erasures(pool.config.id), instead=denied, times=9)
    return ward.opened(scripted)


@ill("interrupted drop")
def _(ward: Ward) -> None:
    ward.pool(loads=1).close()


class Overwriting(StoreInFront):
    """A store that creates a name as often as it is asked."""

    def __init__(self, behind: Store) -> None:
        self.behind = behind

    def create(self, name: str, data: bytes) -> Created:
        self.behind.put(name, data)
        return Created.YES


@ill("create-only write that overwrites")
def _(ward: Ward) -> Lake:
    ward.pool(loads=1)
    return ward.opened(Overwriting(ward.store))


@ill("create-only write by a lock alone")
def _(ward: Ward) -> Lake:
    store = LockedStore(Overwriting(MemoryStore(clock=ward.clock)), FileLock(str(ward.folder)))
    ward.lake = Lake.create_on(store, ids=IdSource(ward.clock))
    ward.pool(loads=1)
    return ward.opened(store)


@ill("create-only write whose lock is missing")
def _(ward: Ward) -> Lake:
    behind = MemoryStore(clock=ward.clock)
    ward.lake = Lake.create_on(LockedStore(behind, FileLock(str(ward.folder))), ids=IdSource(ward.clock))
    ward.pool(loads=1)
    return ward.opened(behind)


@ill("clocks of machine and store")
def _(ward: Ward) -> Lake:
    ward.pool(loads=1)
    return ward.opened(clock=Clock(ward.clock.now + 300))


@ill("unseen store that takes no hint")
def _(ward: Ward) -> Lake:
    ward.pool(loads=1)
    scripted = ScriptedStore(ward.store)
    scripted.on("put", ".json", instead=raising(Denied("403 Forbidden")), times=9)
    return ward.opened(scripted)


@ill("stopped agents")
def _(ward: Ward) -> None:
    pool = ward.pool(loads=1)
    ward.store.put(naming.quiet("checkpoint", "0"), b"{}")
    ward.wait(2 * DAY)
    ward.load(pool)
    ward.wait(DAY)


@ill("dropped pool that nobody deletes")
def _(ward: Ward) -> None:
    ward.pool(loads=1)
    ward.lake.drop_pool("logs")
    ward.wait(10 * DAY)


@ill("transaction that nobody ends")
def _(ward: Ward) -> None:
    ward.pool(loads=1)
    ward.lake.transaction(open_for=HOUR).pool("logs").append(pa.table({"k": [2]}))
    ward.wait(3 * DAY)


@ill("transaction whose commit died")
def _(ward: Ward) -> None:
    ward.pool(loads=1)
    tx = ward.lake.transaction()
    tx.pool("logs").append(pa.table({"k": [2]}))
    Decisions(ward.store, ward.clock).keep_lease(tx.id, CommitLease("gone"))
    ward.wait(HOUR)


@ill("transaction with a damaged object")
def _(ward: Ward) -> None:
    ward.pool(loads=1)
    tx = ward.lake.transaction()
    tx.pool("logs").append(pa.table({"k": [2]}))
    ward.store.put(naming.transaction_object(tx.id, naming.BEGUN), b"junk")


def test_a_damaged_transaction_is_mended_by_the_command_that_the_doctor_names(ward: Ward) -> None:
    ILLNESSES["transaction with a damaged object"](ward)
    (one,) = ward.findings()
    assert one.command.startswith("lake abort ")
    ward.lake.transaction(one.command.split()[-1]).abort()
    assert ward.findings() == []


def test_a_transaction_is_mended_by_the_command_that_the_doctor_names(ward: Ward) -> None:
    ILLNESSES["transaction whose commit died"](ward)
    (one,) = ward.findings()
    assert one.command == f"lake commit {transactions(ward.lake)[0].id}"
    ward.lake.transaction(one.command.split()[-1]).commit()
    assert ward.findings() == []


@pytest.mark.parametrize("name", ILLNESSES)
def test_an_illness_is_named_rightly_and_alone(ward: Ward, name: str) -> None:
    opened = ILLNESSES[name](ward)
    kinds = {one.kind for one in ward.findings(opened)}
    assert kinds == {name.partition(" ")[0]}


@pytest.mark.parametrize("name", ILLNESSES)
def test_the_command_that_mends_it_is_one(ward: Ward, name: str) -> None:
    opened = ILLNESSES[name](ward)
    parser = build_parser()
    for one in ward.findings(opened):
        words = shlex.split(one.command)
        if words and words[0] == "lake":
            parser.parse_args(words[1:])


def test_an_agent_that_never_ran_is_named_beside_the_work_that_waits(ward: Ward) -> None:
    ward.pool(loads=9)
    ward.wait(2 * DAY)
    assert [(one.kind, one.pool) for one in ward.findings()] == [("agent", ""), ("depth", "logs")]
    ward.wait(7 * DAY)
    (agent, depth) = ward.findings()
    assert (agent.severity, depth.severity) == (Severity.ILL, Severity.ILL)
    assert agent.says == "the agent compact has never run, and work waits for it: logs"
    assert depth.command == "lake compact logs"


def test_a_list_of_pools_without_a_checkpoint_is_named() -> None:
    now = 2_000_000_000.0
    tail = TailSigns(entries=600, first=now - 9 * DAY, full=now - 3 * DAY)
    assert [one.kind for one in lake_findings_of(LakeSigns(now, checkpoint=tail))] == ["pools"]


def test_a_lake_that_cannot_be_reached_is_an_error_and_never_well(ward: Ward) -> None:
    ward.pool(loads=1)
    scripted = ScriptedStore(ward.store)
    lake = ward.opened(scripted)
    for request in ("get", "list"):
        scripted.on(request, "", instead=raising(Unavailable("no route to host")), times=1_000)
    with pytest.raises(Unavailable, match="no route"):
        ward.health(lake)


def test_a_pool_that_is_damaged_hides_no_other(ward: Ward) -> None:
    ILLNESSES["unseen journal that is damaged"](ward)
    ward.pool("other", loads=1)
    health = ward.health()
    assert {pool.pool: pool.verdict for pool in health.pools} == {"logs": Verdict.ILL, "other": Verdict.WELL}


def test_every_kind_has_an_illness_that_is_made_by_hand() -> None:
    made = {name.partition(" ")[0] for name in ILLNESSES} | {"agent", "pools", "paused"}
    assert made == {kind.name for kind in (*POOL_KINDS, *LAKE_KINDS)}


def test_what_fails_again_and_again_is_ill(ward: Ward) -> None:
    pool = ward.pool()
    began = dt.datetime.fromtimestamp(ward.clock.now, dt.UTC)
    failed = [Job(began, "0", "compact", "logs", "main", "failed", error="no memory")] * 3
    (one,) = findings_of(PoolSigns(pool.config, ward.clock.now, failed))
    assert (one.severity, one.says) == (
        Severity.ILL,
        "compact failed 3 times, one after another: no memory",
    )


def test_a_name_that_a_shell_would_read_is_quoted(ward: Ward) -> None:
    ward.pool("a&b", loads=9)
    ward.wait(2 * DAY)
    commands = [one.command for one in ward.findings() if one.pool]
    assert commands == ["lake compact 'a&b'"]


def test_findings_are_values(ward: Ward) -> None:
    one = HealthFinding(kind="depth", severity=Severity.ILL, pool="logs", says="deep")
    assert one == HealthFinding(kind="depth", severity=Severity.ILL, pool="logs", says="deep")
