"""A small lake in memory that has every kind of stored thing, and the questions of those who read it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from lake_core import naming
from lake_core.history import Draft
from lake_core.history.group_commit.requests import Requests
from lake_core.history.transactions.decisions import Begun, CommitLease, Decisions, JoinedPool
from lake_core.journal.hints import write_begun, write_head_hint, write_tail_hint
from lake_core.keys import KeyRange
from lake_core.keys.encoding import encode_value
from lake_core.records import Consume, Source
from lake_core.records.codec import frame, unframe
from lake_core.store import Store
from log_lake.agents.checkpoint.run import purge_pool, write_checkpoint
from log_lake.agents.compact.run import compact_pool, plan_pool
from log_lake.agents.ingest.parking import park
from log_lake.agents.packs import write_outcome, write_packs
from log_lake.agents.put_off_jobs import record_put_off
from log_lake.agents.quiet import Quiet
from log_lake.agents.request import Request as Asked
from log_lake.agents.retention.run import retain
from log_lake.agents.work import PutOff
from log_lake.doctor.examine import examine
from log_lake.erasure.run import erase
from log_lake.lake import Lake
from log_lake.lake.given_up import give_up
from log_lake.lake.pool import Pool
from log_lake.leases import HeldLease, LeaseNote
from log_lake.loading.source_files import SourceFile
from log_lake.repair.fsck import Fsck
from log_lake.stores.memory import MemoryStore
from log_lake.system_tables.tables import references_table, tags_table, tombstones_table
from log_lake.vacuum.execute import BeginVacuum, make_plan, vacuum, vacuum_lease, write_plan
from log_lake.view.overview import Overview
from tests.support.agents import finder
from tests.support.crafted import rows_of, write_crafted
from tests.support.records import an_id

find_checkpoint = finder("checkpoint")
find_compact = finder("compact")
find_erasure = finder("erasure")
find_retention = finder("retention")
find_tombstones = finder("tombstones")

URI = "memory://mutations"

OTHERS = ("b", "zng", "zst")
"""The pools besides `a`, the pool whose objects are changed."""

FINDS: Mapping[str, Callable[..., list[dict[str, Any]]]] = {
    "compact": find_compact,
    "retention": find_retention,
    "tombstones": find_tombstones,
    "checkpoint": find_checkpoint,
    "erasure": find_erasure,
}


class Copied(MemoryStore):
    """A store in memory with these objects, whose journals are read one entry after another.

    For each mutation some stores are made and read many times. So names are not checked again, and no thread is
    started.
    """

    def __init__(self, objects: Mapping[str, bytes]) -> None:
        super().__init__(URI)
        self._objects, self._names = dict(objects), sorted(objects)
        self._modified = dict.fromkeys(objects, self._clock())
        self._tags = dict.fromkeys(objects, "")

    def local_path(self, name: str) -> str | None:
        return name if "/data/" not in name else None


@dataclass
class World:
    """A lake with pools that have everything that can be stored; `a` is the id of the pool whose objects are
    changed."""

    store: Store
    a: str

    @cached_property
    def objects(self) -> dict[str, bytes]:
        """The objects of the store, as they are at the first call."""
        return {info.name: self.store.get(info.name) or b"" for info in self.store.list("")}

    def lake(self) -> Lake:
        """Returns the lake for a process that has read nothing yet."""
        return Lake.open_on(self.store)

    def changed(self, writes: Mapping[str, bytes | None]) -> World:
        """Returns a copy of the lake with some objects written, or deleted (None)."""
        objects = self.objects | writes
        return World(Copied({name: data for name, data in objects.items() if data is not None}), self.a)

    def names_like(self, pattern: str) -> list[str]:
        """Returns the names of the objects that fit the pattern; `{a}` stands for the pool's id."""
        sought = pattern.format(a=self.a)
        names = [name for name in self.objects if Path(name).match(sought)]
        assert names, sought
        return names


def build(store: Store) -> World:
    """Makes the lake on an empty store."""
    lake = Lake.create_on(store)
    a = lake.create_pool("a", key="k", settings={"index.v": "bloom(v)"})
    b = lake.create_pool("b", key="k")
    for n in range(6):
        a.branch().append(pa.table({"k": [n, n + 1], "v": [f"x{n}", None]}))
        b.branch().append(pa.table({"k": [n]}))
    b.branch().delete(where="k = 3")
    a.branch().delete(where="k = 3 and v = 'x2'")
    a.create_branch("dev")
    a.branch("dev").append(pa.table({"k": [50]}))
    a.tag("kept", at="main", reason="why")
    a.tag("until", at="dev", expires=lake.context.now() + 1e6)
    a.branch().append(pa.table({"k": [9]}), token="once")
    a.commit_actions((Consume((Source("s3://in/x.json", 5, "e"),)),), branch="main", message="consume")
    compact_pool(lake, "a", plan_pool(lake, "a", strategy="full", now=lake.context.now()))
    a.create_branch("gone")
    a.branch("gone").append(pa.table({"k": [70]}))
    a.branch().merge("gone")
    a.delete_branch("gone")
    removed = sorted(id for id, _ in a.history.load().state.removed.items())
    a.commit_actions((BeginVacuum(tuple(removed[:1])),), message="begun")
    a.delete_tag("until")
    a.split(at=[3, 6])
    a.unsplit(at=[6])
    small_loads(lake)
    for form in ("zng", "zst"):
        pool = lake.create_pool(form, key="k", settings={"format": form})
        pool.branch().append(pa.table({"k": [1, 2, 3], "v": ["x", None, "z"]}))
    lake.create_pool("old", key="k").branch().append(pa.table({"k": [1]}))
    lake.drop_pool("old")
    notes(lake)
    write_crafted(a.history.journal, rows_of(a.history.journal), id=an_id(5))
    write_crafted(lake.catalog.journal, rows_of(lake.catalog.journal), id=an_id(6))
    return World(store, a.config.id)


def small_loads(lake: Lake) -> None:
    """Makes loads of `a` that are inlined: on two branches, which are merged, and with deletes."""
    lake.configure_pool("a", {"load.inline": "64KiB"})
    a = lake.pool("a")
    a.branch().append(pa.table({"k": [2, 60], "v": ["y", "z"]}))
    a.branch("dev").append(pa.table({"k": [51, 52], "v": ["y", None]}))
    a.create_branch("small")
    a.branch("small").append(pa.table({"k": [61, 62, 63]}))
    a.branch().merge("small")
    a.branch().delete(where="k = 62")
    lake.configure_pool("a", {"load.inline": "0"})


def notes(lake: Lake) -> None:
    """Makes what is stored beside the journals."""
    a = lake.pool("a")
    HeldLease(a.store, a.config.id, an_id(20), LeaseNote("read", 3, "me", 600.0, "why")).take()
    with vacuum_lease(a, "plan") as lease:
        write_plan(a, msgspec.structs.replace(make_plan(a, lease, grace=0.0), id=an_id(21)))
    low = encode_value(900)
    erase(a, key_range=KeyRange(low, low + b"\xff"), where=None, grace=0.0)
    write_packs(lake, [[{"pool": "a", "title": "t", "inputs": [an_id(1)]}]])
    write_outcome(lake, naming.pack(an_id(24), 0), [{"pool": "a", "title": "t", "version": 3}])
    park(a, SourceFile("s3://in/bad.json", 3, "e", 1.0), why="bad", now=1.0)
    give_up(lake.context, a.config.id, why="no")
    decisions = Decisions(a.store, lambda: 0.0)
    decisions.begin(an_id(22), Begun("me", 1, 2, "t"))
    decisions.join(an_id(22), a.config.id, JoinedPool())
    decisions.keep_lease(an_id(22), CommitLease("me"))
    decisions.decide(an_id(22), committed=True, by="me", prepared={a.config.id: 7})
    quiet = Quiet.of(lake, Asked(URI), agent="compact")
    quiet.found_nothing(a.config)
    quiet.write()
    record_put_off(lake, [PutOff(pool="a", title="t", why="paused")], agent="compact")
    for journal, version in (
        (a.history.journal.name, a.history.load().version),
        (lake.catalog.journal.name, lake.catalog.load().version),
    ):
        write_head_hint(lake.store, journal, version)
        write_tail_hint(lake.store, journal, 1)
        write_begun(lake.store, journal)
    requests = Requests(a.store, a.history.journal.name)
    now = int(time.time() * 1e6)
    for number, id in enumerate((an_id(22), an_id(23))):
        draft = Draft(id, "main", 1, "me", (Consume((Source(f"u{number}", 1),)),))
        requests.post(draft, possible_since=1, time=now)


def bare(world: World) -> World:
    """Returns the lake without checkpoints, so readers must fold the entries."""
    return world.changed(dict.fromkeys((name for name in world.objects if "/marks/" in name), None))


def purged(world: World) -> World:
    """Returns the lake without entries, so readers have nothing except the newest checkpoints."""
    store = world.changed({}).store
    lake = Lake.open_on(store)
    for journal in (lake.pool("a").history.journal, lake.catalog.journal):
        version = journal.load().version
        for name in [info.name for info in store.list(journal.name)]:
            entry, mark = naming.entry_version(name), naming.checkpoint_version(name)
            if entry is not None or (mark is not None and mark < version):
                store.delete(name)
        store.put(naming.fence(journal.name, version), str(version).encode())
        store.put(naming.gate(journal.name, 1), b"\n")
    return World(store, world.a)


def relinked(world: World, name: str, data: bytes) -> dict[str, bytes]:
    """Returns an entry with other bytes, and all later entries, each with the new checksum of the one before
    it."""
    journal, version = name.rpartition("/")[0], naming.entry_version(name)
    assert version is not None
    writes = {name: data}
    while (after := world.objects.get(next_name := naming.entry(journal, version + 1))) is not None:
        entry = msgspec.msgpack.decode(unframe(after, name=next_name))
        before = writes[naming.entry(journal, version)]
        data = frame(msgspec.msgpack.encode(entry | {"previous": int.from_bytes(before[4:8], "big")}))
        writes[next_name], version = data, version + 1
    return writes


# --- what readers ask: each name with what gives a value that can be compared

Asks = Iterator[tuple[str, Callable[[], object]]]


def asks_of_pool(world: World) -> Asks:
    """Returns all questions that readers ask of the pool `a`."""
    pool = world.lake().pool("a")  # one for all questions: each would fold the entries anew
    yield "scan", lambda: pool.at().to_table().to_pylist()
    yield "found", lambda: pool.at().to_table(where="k >= 2 and v in ('x1', 'y')").to_pylist()
    yield "one", lambda: pool.at().get(2).to_pylist()
    yield "summary", lambda: pool.at().summary()
    yield "branch", lambda: pool.at("dev").references
    yield "tag", lambda: pool.at("kept").snapshot.records
    yield "log", lambda: [(version, one.id) for version, one in pool.log()]
    yield "costs", lambda: pool.tag_costs()
    yield "ranges", lambda: pool.ranges()
    for version in (3, 9):
        yield f"version {version}", lambda version=version: _size(pool, version)
    yield "tables", lambda: tables_of(pool)


def _size(pool: Pool, version: int) -> object:
    loaded = pool.history.load_version(version)
    return None if loaded is None else pool.at_version(version).snapshot.records


def tables_of(pool: Pool) -> object:
    state = pool.history.load().state
    return (
        [sorted(map(repr, items)) for items in (state.tokens.items(), state.sources.items())],
        sorted(map(repr, state.removed.items())),
        tags_table(state).to_pylist(),
        tombstones_table(state, branch="main", key=pool.config.key).to_pylist(),
        references_table(pool.at().references, pool.config.key, lambda seq: seq).to_pylist(),
        state.ingested("main", "s3://in/x.json"),
        state.ingested("dev", "s3://in/x.json"),
    )


def asks_of_list(world: World) -> Asks:
    """Returns all questions that readers ask of the list of pools."""
    lake = world.lake()
    yield "pools", lambda: lake.pools()
    yield "a", lambda: lake.pool("a").at().to_table().to_pylist()
    yield "of", lambda: [pool.config for pool in lake.pools_of(["a", "b"]).values()]
    yield "dropped", lambda: [(one.pool.name, one.version) for one in lake.dropped_pools()]


def asks_of_others(world: World, *, whole: bool = True) -> Asks:
    """Returns questions about all pools at once, whose answers say something about those besides `a`.

    Unless `whole`, only those of the list of pools and of the view.
    """
    lake = world.lake()
    rows = Overview(time.monotonic).table
    yield "listed", lambda: [pool for pool in lake.pools() if pool.name in OTHERS]
    yield "view", lambda: [row for row in rows(lake).pools if row.pool in OTHERS]
    if not whole:
        return
    yield "scans", lambda: [lake.pool(name).at().to_table().to_pylist() for name in OTHERS]
    yield (
        "fsck",
        lambda: [
            one
            for one in Fsck(lake.context).run()
            if one.pool in OTHERS or (not one.where.startswith(world.a) and one.pool != "a")
        ],
    )
    yield (
        "doctor",
        lambda: [
            (one.pool, one.findings)
            for one in examine(lake, anew=True, writes=False).pools
            if one.pool in OTHERS
        ],
    )
    for agent, find in FINDS.items():
        yield agent, lambda find=find: _found(world, find)


def _found(world: World, find: Callable[..., list[dict[str, Any]]]) -> object:
    found = find({"lake": URI}, open_lake=lambda uri: world.lake(), recurring=True)
    return sorted(work["pool"] for work in found if work["pool"] in OTHERS)


def upkeep(world: World) -> Asks:
    """Returns the work of those who write to the pool `a`, with all rights."""
    lake = world.lake()
    pool = lake.pool("a")
    now = lake.context.now()
    yield "append", lambda: pool.branch().append(pa.table({"k": [5], "v": ["new"]}))
    yield "delete", lambda: pool.branch().delete(where="v = 'new'")
    yield "compact", lambda: compact_pool(lake, "a", plan_pool(lake, "a", strategy="full", now=now))
    yield "checkpoint", lambda: write_checkpoint(lake, "a", now=now)
    yield "purge", lambda: purge_pool(lake, "a", keep=0.0, now=now)
    yield "retain", lambda: retain(lake, "a")
    yield "erase", lambda: erase(pool, where="k = 5", grace=0.0)
    yield "vacuum", lambda: vacuum(pool, grace=0.0)
    yield "tag", lambda: pool.tag("new", at="main")
    yield "split", lambda: pool.split(at=[4])
    yield "drop", lambda: lake.drop_pool("a")
