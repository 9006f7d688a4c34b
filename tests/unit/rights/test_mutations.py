"""Every kind of stored thing, changed at random with right checksums: the right answer, or its pool's error.

`LAKE_TEST_MUTATIONS=5000` (`make fuzz`) tries as many of each kind.  A failure names its kind and number, which are
the seed.
"""

from __future__ import annotations

import itertools
import os
import random
import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from lake_core import naming
from lake_core.errors import LakeError
from lake_core.history import Draft
from lake_core.history.group_commit.requests import Requests
from lake_core.journal.hints import write_head_hint
from lake_core.keys import KeyRange, PoolKey
from lake_core.keys.encoding import encode_value
from lake_core.keys.ranges import EVERYTHING
from lake_core.leases import HeldLease, LeaseNote, read_leases
from lake_core.records import Consume, Source
from lake_core.records.codec import frame, unframe
from lake_core.store import GuardedStore
from lake_core.store.memory import MemoryStore
from log_lake.agents.compact.run import compact_pool, plan_pool
from log_lake.agents.ingest.parking import park, parked_files
from log_lake.agents.packs import read_packs, write_packs
from log_lake.agents.put_off_jobs import WAY, record_put_off
from log_lake.agents.put_off_jobs import _read as _said
from log_lake.agents.quiet import Quiet
from log_lake.agents.request import Request as Asked
from log_lake.erasure import receipt as receipts
from log_lake.erasure.run import erase
from log_lake.lake import Lake
from log_lake.lake.given_up import give_up, read_given_up
from log_lake.loading.source_files import SourceFile
from log_lake.objects.facts import read_content, read_facts
from log_lake.objects.read import DataObject
from log_lake.repair.fsck import Fsck
from log_lake.system_tables.inspection import inspect_object
from log_lake.system_tables.tables import references_table, tags_table, tombstones_table
from log_lake.vacuum.execute import BeginVacuum, make_plan, read_plan, vacuum_lease, write_plan
from tests.support.crafted import rows_of, write_crafted
from tests.support.mutations import (
    changed_hint,
    changed_json,
    changed_msgpack,
    flipped,
    mutated,
    with_pairs,
    with_typed_footer,
)
from tests.support.records import an_id

COUNT = int(os.environ.get("LAKE_TEST_MUTATIONS", "60"))
SECONDS = 30
"""The longest that a reader may take for one of them."""

MEMORY = 256 << 20
"""Bytes that the process may grow by for one of them."""

Change = Callable[[bytes, random.Random], bytes]
Probe = Callable[["World", str], object]


@dataclass
class World:
    """A lake of two pools with all that can be stored."""

    store: MemoryStore
    a: str
    """The id of the pool whose objects are changed."""

    def lake(self) -> Lake:
        """The lake as a process finds it that has read nothing."""
        return Lake.open_on(self.store)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    store = MemoryStore("memory://mutations")
    lake = Lake.create_on(store)
    a, b = (lake.create_pool(name, key="k") for name in ("a", "b"))
    for n in range(6):
        a.branch().append(pa.table({"k": [n, n + 1], "v": [f"x{n}", None]}))
        b.branch().append(pa.table({"k": [n]}))
    a.branch().delete(where="k = 3 and v = 'x2'")
    a.create_branch("dev")
    a.branch("dev").append(pa.table({"k": [50]}))
    a.tag("kept", at="main", reason="why")
    a.branch().append(pa.table({"k": [9]}), token="once")
    a.commit_actions((Consume((Source("s3://in/x.json", 5, "e"),)),), branch="main", message="consume")
    compact_pool(lake, "a", plan_pool(lake, "a", strategy="full", now=lake.context.now()))
    removed = sorted(id for id, _ in a.history.load().state.removed.items())
    a.commit_actions((BeginVacuum(tuple(removed[:1])),), message="begun")
    write_crafted(a.history.journal, rows_of(a.history.journal), id=an_id(5))
    write_crafted(lake.catalog.journal, rows_of(lake.catalog.journal), id=an_id(6))
    for form in ("zng", "zst"):
        lake.create_pool(form, key="k", settings={"format": form}).branch().append(pa.table({"k": [1, 2, 3]}))
    notes(lake)
    return World(store, a.config.id)


def notes(lake: Lake) -> None:
    """What is stored beside the journals."""
    a = lake.pool("a")
    HeldLease(a.store, a.config.id, an_id(20), LeaseNote("read", 3, "me", 600.0, "why")).take()
    with vacuum_lease(a, "plan") as lease:
        write_plan(a, msgspec.structs.replace(make_plan(a, lease, grace=0.0), id=an_id(21)))
    low = encode_value(900)
    erase(a, key_range=KeyRange(low, low + b"\xff"), where=None, grace=0.0)
    write_packs(lake, [[{"pool": "a", "title": "t", "inputs": [an_id(1)]}]])
    park(a, SourceFile("s3://in/bad.json", 3, "e", 1.0), why="bad", now=1.0)
    give_up(lake.context, a.config.id, why="no")
    quiet = Quiet.of(lake, Asked("memory://mutations"), agent="compact")
    quiet.found_nothing(a.config)
    quiet.write()
    record_put_off(lake, [{"pool": "a", "title": "t", "put_off": "paused"}], agent="compact")
    write_head_hint(a.store, a.history.journal.name, a.history.load().version)
    requests = Requests(a.store, a.history.journal.name)
    requests.post(Draft(an_id(22), "main", 1, "me", (Consume((Source("u", 1),)),)), possible_since=1, time=1)


def state_of(world: World, name: str) -> None:
    """All that a reader asks of the pool."""
    lake = world.lake()
    asked: list[Callable[[], object]] = [
        lambda: lake.pool("a").at().to_table(),
        lambda: lake.pool("a").at("dev").references,
        lambda: lake.pool("a").at("kept").to_table(),
        lambda: list(lake.pool("a").log()),
        lambda: lake.pool("a").tag_costs(),
        lambda: [lake.pool("a").history.load_version(version) for version in (3, 9)],
        lambda: tables_of(lake),
        lambda: lake.pool("b").at().snapshot.records == 6 or pytest.fail("pool b"),
    ]
    for ask in asked:
        answered(ask)


def tables_of(lake: Lake) -> None:
    pool = lake.pool("a")
    state = pool.history.load().state
    for items in (state.tokens.items(), state.sources.items(), state.removed.items()):
        list(items)
    tags_table(state)
    tombstones_table(state, branch="main", key=pool.config.key)
    references_table(pool.at().references, pool.config.key, lambda seq: seq)
    state.ingested("main", "s3://in/x.json")
    state.ingested("dev", "s3://in/x.json")


def answered(ask: Callable[[], object]) -> None:
    try:
        ask()
    except LakeError as error:
        line = str(error)
    else:
        return
    assert "\n" not in line


def whole_lake(world: World, name: str) -> None:
    """What a change of the lake's own objects, or of the list of pools, may do."""
    for ask in (
        lambda: world.lake().pools(),
        lambda: world.lake().pool("a").at().references,
        lambda: [pool.config for pool in world.lake().pools_of(["a", "b"]).values()],
        lambda: world.lake().dropped_pools(),
    ):
        answered(ask)


def framed(data: bytes, rng: random.Random) -> bytes:
    return frame(changed_msgpack(bytes(unframe(data, name="x")), rng))


def footer(checksum: bool) -> Change:
    def change(data: bytes, rng: random.Random) -> bytes:
        return with_pairs(data, lambda pair: changed_footer(pair, rng), checksum=checksum)

    def changed_footer(pair: bytes, rng: random.Random) -> bytes:
        return changed_json(pair.replace(b'"data_end"', b'"was"').replace(b'"blocks"', b'"w"'), rng)

    return change


def typed(data: bytes, rng: random.Random) -> bytes:
    return with_typed_footer(data, lambda old: changed_json(old, rng))


def object_of(world: World, name: str) -> None:
    pool_id, _, _ = name.partition("/")
    store = GuardedStore(world.store)  # another one each time: no footer is kept from before
    narrow = KeyRange(encode_value(1), encode_value(2))
    with DataObject(store, pool_id=pool_id, object_id=naming.data_id(name) or "") as data:
        read_facts(data)
        read_content(data, key=PoolKey.parse("k"))
        for key_range in (EVERYTHING, narrow):
            data.weigh(key_range, ["k"])
            for _ in data.batches(key_range, key=PoolKey.parse("k"), columns=None):
                pass


KINDS: dict[str, tuple[str, Change, Probe]] = {
    "entries": ("{a}/journal/0*.txn", framed, state_of),
    "requests": ("{a}/journal/requests/*", framed, lambda w, n: requests_of(w)),
    "head": ("{a}/journal/HEAD", changed_hint, state_of),
    "lists of pools": ("pools/0*.txn", framed, whole_lake),
    "checkpoint footers": ("{a}/journal/marks/*", footer(checksum=True), state_of),
    "leases": ("{a}/leases/*", changed_json, lambda w, n: leases_of(w)),
    "plans": ("{a}/plans/*", changed_json, lambda w, n: read_plan(w.lake().pool("a"), an_id(21))),
    "receipts": ("{a}/erasures/*", changed_json, lambda w, n: list(receipts.read_all(w.lake().pool("a")))),
    "packs": ("packs/*", changed_json, lambda w, n: read_packs(w.lake(), [n])),
    "parked": ("{a}/parked/*", changed_json, lambda w, n: parked_files(w.lake().pool("a"))),
    "given up": ("{a}/given-up", changed_json, lambda w, n: read_given_up(w.store, w.a)),
    "quiet": ("quiet/*", changed_json, lambda w, n: quiet_of(w)),
    "lake.json": ("lake.json", changed_json, whole_lake),
    "activity": ("activity/*", changed_hint, lambda w, n: quiet_of(w)),
    "objects in parquet": ("{a}/data/*.parquet", footer(checksum=False), object_of),
    "objects in zng": ("*/data/*.zng", typed, object_of),
    "objects in zst": ("*/data/*.zst", typed, object_of),
}


def requests_of(world: World) -> None:
    requests = Requests(world.store, naming.pool_journal(world.a))
    for request in requests.read(requests.queue()):
        assert request.draft.actions is not None


def leases_of(world: World) -> None:
    leases = read_leases(world.store, world.a, own=an_id(20))
    assert leases.oldest_version is None or leases.oldest_version >= 0
    for lease in leases.all:
        assert lease.until() >= 0 or lease.is_live(leases.now) is not None


def quiet_of(world: World) -> None:
    lake = world.lake()
    Quiet.of(lake, Asked("memory://mutations"), agent="compact").others(["a", "b"])
    _said(lake, naming.quiet("compact", WAY))  # to record more would let the jobs grow with each change


def names_like(world: World, pattern: str) -> list[str]:
    sought = pattern.format(a=world.a)
    names = [info.name for info in world.store.list("") if Path(info.name).match(sought)]
    assert names, sought
    return names


@contextmanager
def bounded(what: str) -> Iterator[None]:
    """Fails the block if it takes too much of a processor, whatever else the machine does, or too much memory."""

    def late(*_: object) -> None:
        raise TimeoutError(f"{what} took more than {SECONDS} s of a processor")

    before, memory = signal.signal(signal.SIGPROF, late), peak()
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    if peak() - memory > MEMORY:
        raise MemoryError(f"{what} took {peak() - memory:,} bytes")


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@pytest.mark.parametrize("kind", KINDS)
def test_a_changed_object_gives_the_right_answer_or_an_error_of_the_lake(world: World, kind: str) -> None:
    pattern, change, probe = KINDS[kind]
    names = names_like(world, pattern)
    for number, name in zip(range(COUNT), itertools.cycle(names), strict=False):
        rng = random.Random(f"{kind} {number}")
        sound = world.store.get(name) or b""
        try:
            data = change(sound, rng)
            world.store.put(name, data or b" ")
            with bounded(f"{kind} {number}"):
                answered(partial(probe, world, name))
                answered(partial(inspect_object, GuardedStore(world.store), name))
                if number % 50 == 0:
                    answered(lambda: list(Fsck(world.lake().context).run()))
        except Exception as error:
            raise AssertionError(f"{kind} {number} of {name}: {type(error).__name__}: {error}") from error
        finally:
            world.store.put(name, sound)


def changed_rows(rows: list[dict[str, Any]], rng: random.Random) -> list[dict[str, Any]]:
    """Rows with a column of one of them changed, or its value's parts."""
    changed = [dict(one) for one in rows]
    one = rng.choice(changed)
    column = rng.choice([name for name in one if one[name] is not None or rng.random() < 0.1])
    if rng.random() < 0.1:
        changed.append(dict(one))
    if column == "value" and one["value"] and one["section"] not in ("schema", "lift") and rng.random() < 0.8:
        one["value"] = changed_msgpack(one["value"], rng)
    elif isinstance(one[column], bytes) and rng.random() < 0.5:
        one[column] = flipped(one[column], rng)
    else:
        (one[column],) = mutated([one[column]], rng) or [None]
    return changed


@pytest.mark.parametrize("of", ["pool", "list of pools"])
def test_a_changed_checkpoint_gives_the_right_answer_or_an_error_of_the_lake(world: World, of: str) -> None:
    lake = world.lake()
    journal = lake.pool("a").history.journal if of == "pool" else lake.catalog.journal
    probe = state_of if of == "pool" else whole_lake
    rows = rows_of(journal)
    mine = naming.checkpoint(journal.name, journal.load().version, an_id(77))
    for number in range(COUNT):
        rng = random.Random(f"{of} {number}")
        try:
            write_crafted(journal, changed_rows(rows, rng), id=an_id(77))
        except (ValueError, TypeError, OverflowError, pa.ArrowException, LakeError):
            continue  # no column holds such a value
        try:
            with bounded(f"{of} {number}"):
                probe(world, mine)
                answered(partial(inspect_object, GuardedStore(world.store), mine))
                if number % 20 == 0:
                    answered(lambda: list(Fsck(world.lake().context).run()))
        except Exception as error:
            raise AssertionError(f"{of} {number}: {type(error).__name__}: {error}") from error
        finally:
            world.store.delete(mine)
