"""Does the work of each role of docs/trust.md on a lake in memory: real work of the lake, the agents and the
commands."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pyarrow as pa

from lake_core import naming
from lake_core.errors import Incomplete
from lake_core.ids import IdSource
from lake_core.store import Store
from local.rights import Operation
from log_lake.agents.checkpoint.run import POOLS, write_checkpoint
from log_lake.agents.ingest import parking
from log_lake.agents.jobs import recorded
from log_lake.agents.packs import KEPT, read_packs, write_packs
from log_lake.derived.create import derive
from log_lake.derived.standing import standing_of
from log_lake.doctor.examine import examine
from log_lake.erasure.run import erase
from log_lake.iceberg_catalog.app import Answering
from log_lake.iceberg_catalog.catalog import IcebergCatalog
from log_lake.iceberg_catalog.request import CatalogRequest
from log_lake.indexes.lookup import faults_of
from log_lake.indexes.names import list_indexes
from log_lake.lake import Lake
from log_lake.lake.rekey import rekey
from log_lake.leases import LeaseNote
from log_lake.leases.holding import HeldLease
from log_lake.leases.lease import WRITE
from log_lake.loading.source_files import SourceFile
from log_lake.rewriting.compaction import compact
from log_lake.rewriting.indexing import make_indexes, rule_states
from log_lake.sql_writes.run import execute
from log_lake.stores import memory
from log_lake.stores.guard import guarded
from log_lake.stores.read_only import ReadOnlyStore
from log_lake.vacuum.dropped import delete_dropped, plan_dropped
from log_lake.view.lakes import Lakes
from spark_apps.command import run_agent
from tests.support.clocks import DAY
from tests.support.rights import May, RightsStore
from tests.support.spark.processes import await_true
from tests.support.stores import InPlaceStore

Work = Callable[["World", RightsStore], None]
"""A function that does the work of a role; it raises an error unless the work is done."""

TTL = 0.03
"""How many seconds a lease of the tests lives. It is short, so that it is soon renewed."""


@dataclass
class PastClock:
    """The machine's clock, set back by some seconds. Workers of agents have the machine's own clock."""

    ago: float

    def __call__(self) -> float:
        return time.time() - self.ago


@dataclass
class World:
    """A lake with a pool in which every agent finds work, with a dropped pool, and with a folder of files."""

    landing: Path
    clock: PastClock = field(default_factory=lambda: PastClock(100 * DAY))

    def __post_init__(self) -> None:
        self.store = InPlaceStore("memory://trust", clock=self.clock)
        lake = Lake.create_on(self.store, ids=self._ids(), author="administrator")
        settings = {
            "ingest.source": str(self.landing / "files"),
            "compact.depth": "2",
            "range.records": "4",
            "tombstones.apply": "0s",
            "checkpoint.entries": "2",
            "expire.age": "60d",
            "history.keep": "60d",
            "vacuum.grace": "1d",
        }
        pool = lake.create_pool("p", key="k", settings=settings)
        gone = lake.create_pool("gone", key="k", settings={"vacuum.grace": "0s"})
        gone.branch().append(pa.table({"k": [1]}))
        for day in range(5):
            pool.branch().append(pa.table({"k": [1, 2, 9 - day], "who": ["ann", "bob", "cid"]}))
        days = {"intervals.source": f"{self.landing}/%Y-%m-%d.ndjson", "type.k": "timestamp"}
        by_day = lake.create_pool("days", key="k", settings=days)
        by_day.branch().append(
            pa.table({"k": pa.array([dt.datetime(2026, 1, 1)], pa.timestamp("us", "UTC"))})
        )
        write_packs(lake, [[{"old": True}]])
        for name in (POOLS, "p"):
            write_checkpoint(lake, name, now=self.clock())
        pool.branch().append(pa.table({"k": [3], "who": ["cid"]}))
        write_checkpoint(lake, "p", now=self.clock())
        self.clock.ago -= KEPT + DAY
        with recorded(lake, agent="compact", pool_name="p"):  # makes `$jobs`
            compact(pool.branch(), pool.at().references[:2])
        pool.branch().delete(where="who = 'cid'")
        lake.drop_pool("gone")
        (note,) = (LeaseNote(WRITE, 1, "killed", TTL),)
        HeldLease(self.store, pool.config.id, lake.context.ids.new(), note).take()
        self.clock.ago = 0.0
        (self.landing / "files").mkdir(exist_ok=True)
        (self.landing / "files/1.ndjson").write_text('{"k": 20, "who": "eve"}\n')
        (self.landing / "2026-01-01.ndjson").write_text('{"k": "2026-01-01T12:00:00Z"}\n')
        ids = {"p": pool.config.id, "days": by_day.config.id, "gone": gone.config.id}
        self.pools = {**ids, "all": "*"}
        self.jobs = lake.pool(naming.JOBS).config.id

    def _ids(self) -> IdSource:
        return IdSource(clock=self.clock)

    def limited(self, may: May) -> RightsStore:
        """The store for a process that has these rights only."""
        return RightsStore(self.store, may)

    def open(self, store: Store) -> Lake:
        return Lake.open_on(store, ids=self._ids(), author="role")


def table(*keys: int, who: str = "eve") -> pa.Table:
    return pa.table({"k": list(keys), "who": [who] * len(keys)})


def hold(world: World, store: RightsStore, pool_id: str) -> None:
    """Takes the lease of a writer, late, and holds it until it is renewed."""
    note, id = LeaseNote(WRITE, 1, "writer", TTL), world.open(store).context.ids.new()
    with HeldLease(guarded(store), pool_id, id, note, after=0.001) as lease:
        await_renewal(store, lease)


def await_renewal(store: RightsStore, lease: HeldLease) -> None:
    """Waits until the lease is renewed, or one of the rights that this needs is denied."""
    again, denied = (Operation.PUT, lease.name), (Operation.CREATE, lease.name)
    await_true(
        lambda: again in store.used or not store.denied.isdisjoint((again, denied)),
        seconds=600,
        what="the lease is written again",
    )


def keys_in(world: World) -> list[int]:
    """The current keys of the pool, read with all rights."""
    return list(world.open(world.store).pool("p").at().to_table()["k"].to_pylist())


def read(world: World, store: RightsStore) -> None:
    """Scans a pool under a lease, and reads its history."""
    lake = world.open(store)
    assert "p" in [pool.name for pool in lake.pools()]
    pool = lake.pool("p")
    with pool.read_lease(pool.at().version, why="read", ttl=TTL) as lease:
        assert pool.at().to_table().num_rows > 5
        await_renewal(store, lease)
    assert next(iter(pool.log()))


def load(world: World, store: RightsStore) -> None:
    """Makes loads, some of which lose races, while another one lasts."""
    rival = world.open(world.store).pool("p").branch()
    table = pa.table({"k": [100], "who": ["eve"]})
    store.before_entries = [lambda: rival.append(table)] * 3
    pool = world.open(store).pool("p")
    world.store.delete(naming.activity(pool.config.id))
    hold(world, store, pool.config.id)
    for _ in range(34):  # HEAD is written after every 16th entry
        pool.branch().append(table)
    files = [str(world.landing / "files/1.ndjson")]
    world.open(store).pool("p").branch().load(files)
    world.open(store).pool("p").branch().load(files, bulk=True)
    assert keys_in(world).count(100) == 37
    assert keys_in(world).count(20) == 2


def load_small(world: World, store: RightsStore) -> None:
    """Makes loads whose records are inlined; some of them lose races."""
    world.open(world.store).configure_pool("p", {"load.inline": "64KiB"})
    rival = world.open(world.store).pool("p").branch()
    table = pa.table({"k": [100], "who": ["eve"]})
    store.before_entries = [lambda: rival.append(table)] * 3
    pool = world.open(store).pool("p")
    world.store.delete(naming.activity(pool.config.id))
    for _ in range(34):
        pool.branch().append(table)
    assert keys_in(world).count(100) == 37


def run_sql(world: World, store: RightsStore) -> None:
    """Runs each kind of statement that changes a pool."""
    rival = world.open(world.store).pool("p").branch()
    store.before_entries = [lambda: rival.append(pa.table({"k": [100], "who": ["eve"]}))] * 3
    lake = world.open(store)
    world.store.delete(naming.activity(lake.pool("p").config.id))
    hold(world, store, lake.pool("p").config.id)
    for number in range(17):
        execute(lake, f"INSERT INTO p (k, who) VALUES ({200 + number}, 'zoe')")
    execute(lake, "UPDATE p SET who = 'max' WHERE k = 200")
    execute(lake, "MERGE INTO p USING (SELECT 201 AS k) s USING (k) WHEN MATCHED THEN UPDATE SET who = 'ida'")
    execute(lake, "DELETE FROM p WHERE who = 'bob'")
    assert {200, 2} & {*keys_in(world)} == {200}
    execute(lake, "TRUNCATE p")
    assert keys_in(world) == []


def rekey_here(world: World, store: RightsStore) -> None:
    rekey(world.open(store), "p", "by_who", key="who")
    assert world.open(world.store).pool("by_who").at().to_table().num_rows > 5


class OnBucket(RightsStore):
    """The store with the URI of a bucket: what is in this process's memory cannot be published for other
    programs."""

    uri = "s3://trust/lake"


def serve(world: World, store: RightsStore) -> None:
    """Asks a catalog for its tables, and for one of them before and after a change of the pool."""
    limited = OnBucket(store.behind, store.may)
    limited.used, limited.denied = store.used, store.denied
    lakes = Lakes({"lake": limited.uri}, opener=lambda uri: world.open(limited))
    catalog = Answering(IcebergCatalog(lakes))
    for path in ("", "/p", "/p"):
        request = CatalogRequest("GET", f"/v1/namespaces/lake/tables{path}", "", "")
        answer = asyncio.run(catalog.answer(request))
        if answer.status != 200:
            raise Incomplete(json.loads(answer.body)["error"]["message"])
        world.open(world.store).pool("p").branch().append(pa.table({"k": [7], "who": ["eve"]}))


def serve_published(world: World, store: RightsStore) -> None:
    """Like `serve`, for tables that another process has published."""
    serve(world, RightsStore(world.store, lambda operation, name: True))
    limited = OnBucket(store.behind, store.may)
    limited.used, limited.denied = store.used, store.denied
    lakes = Lakes({"lake": limited.uri}, opener=lambda uri: world.open(ReadOnlyStore(limited)))
    request = CatalogRequest("GET", "/v1/namespaces/lake/tables/p", "", "")
    answer = asyncio.run(Answering(IcebergCatalog(lakes)).answer(request))
    if answer.status != 200:
        raise Incomplete(json.loads(answer.body)["error"]["message"])


def examine_all(world: World, store: RightsStore) -> None:
    """Examines all pools twice. The doctor must report what it may not see, and must not call it well."""
    for anew in (True, False):
        health = examine(world.open(store), anew=anew)
        found = [one for pool in (*health.pools, health) for one in pool.findings]
        for one in found:
            if "grant this process the right" in one.says:
                raise Incomplete(one.says)


def delete(world: World, store: RightsStore) -> None:
    pool = world.open(store).pool("p")
    pool.branch().delete(where="who = 'bob'")
    assert 2 not in keys_in(world)


def of_agent(agent: str, *, pools: tuple[str, ...] = ("p",), **request: Any) -> Work:
    """Returns work that runs an agent once with something to do, and twice with nothing, with the packs of
    Airflow's tasks."""

    def run(world: World, store: RightsStore) -> None:
        lake = world.open(store)
        read_packs(lake, write_packs(lake, [[{"pool": "p"}]]))
        hold(world, store, world.jobs)
        if agent == "compact":
            world.store.delete(naming.activity(world.jobs))
        also: dict[str, Any] = {"recurring": True}
        if agent == "intervals":
            day = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
            also = {"begin": day, "end": day + dt.timedelta(days=1), "run": "a run"}
        memory._NAMED[store.uri] = cast(Any, store)  # where workers open it
        try:
            for _ in range(3):
                run_agent(agent, {"pools": list(pools), **request}, lake=lake, **also)
        finally:
            del memory._NAMED[store.uri]

    return run


def ingest(world: World, store: RightsStore) -> None:
    """Ingests new files, one of which is refused, parked and released."""
    of_agent("ingest")(world, store)
    pool = world.open(store).pool("p")
    refused = SourceFile("refused.ndjson", 1, "", 0.0)
    for _ in range(2):
        parking.park(pool, refused, why="no records", now=0.0)
    parking.release(pool, parking.parked_files(pool))
    assert 20 in keys_in(world)


def derive_here(world: World, store: RightsStore) -> None:
    """Keeps a pool that is derived from `p`, after a load of that."""
    lake = world.open(world.store)
    own = {"load.inline": "0"}
    derive(lake, "d", source="p", query="SELECT k // 2 AS h, count(*) AS n FROM p GROUP BY h", settings=own)
    lake.pool("p").branch().append(table(2, 3))
    of_agent("derive", pools=("d",))(world, store)
    pool = world.open(world.store).pool("d")
    assert standing_of(world.open(world.store), pool).behind == 0  # type: ignore[union-attr]


def index_here(world: World, store: RightsStore) -> None:
    """Makes the indexes that objects lack, after one of them was damaged."""
    lake = world.open(world.store)
    lake.configure_pool("p", {"index.who": "bloom(who)"})
    of_agent("index")(world, store)
    pool = world.open(world.store).pool("p")
    (state,) = rule_states(pool)
    assert state.objects > state.missing == 0
    for one in list_indexes(pool.store, pool.config.id):
        pool.store.put(one.info.name, b"damaged")
    make_indexes(world.open(store).pool("p"), checks=lambda name: True)
    assert not faults_of(pool.store, list(list_indexes(pool.store, pool.config.id)))


def erase_here(world: World, store: RightsStore) -> None:
    pool = world.open(store).pool("p")
    assert erase(pool, where="who = 'ann'", grace=0.0).status == "done"


def administrate(world: World, store: RightsStore) -> None:
    """Makes a lake and upgrades another one; makes a pool, and configures, drops and restores one."""
    Lake.create_on(store.elsewhere())
    head = json.loads(world.store.get(naming.LAKE_FILE) or b"")
    world.store.put(naming.LAKE_FILE, json.dumps({**head, "version": 1}).encode())
    lake = world.open(store)
    assert lake.upgrade() == (1, 3)
    lake.create_pool("new", key="k")
    for number in range(34):
        lake.configure_pool("p", {"description": f"{number}"})
    lake.drop_pool("p")
    lake.restore_pool("p")


def sweep(world: World, store: RightsStore) -> None:
    lake = world.open(store)
    assert len(delete_dropped(lake, plan_dropped(lake))) == 1


WORK: dict[str, Work] = {
    "reader": read,
    "loader": load,
    "small loader": load_small,
    "SQL": run_sql,
    "rekeyer": rekey_here,
    "catalog": serve,
    "catalog that reads": serve_published,
    "doctor": examine_all,
    "deleter": delete,
    "agent ingest": ingest,
    "agent intervals": of_agent("intervals", pools=("days",)),
    "agent derive": derive_here,
    "agent compact": of_agent("compact"),
    "agent split": of_agent("split"),
    "agent tombstones": of_agent("tombstones"),
    "agent index": index_here,
    "agent checkpoint": of_agent("checkpoint", pools=("p", POOLS)),
    "agent retention": of_agent("retention"),
    "agent erasure": of_agent("erasure", where="who = 'ann'", grace="0s"),
    "eraser": erase_here,
    "administrator": administrate,
    "sweeper": sweep,
}
"""The work of each role of `local.rights`."""

POOL_OF = {
    "agent intervals": "days",
    "sweeper": "gone",
    "rekeyer": "all",
    "doctor": "all",
    "agent derive": "all",
}
"""By role, the pool on which it works, if that is not `p`."""
