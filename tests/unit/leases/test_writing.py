"""Writers: their work takes a lease if it lasts, and their objects have ids from the floor on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

from lake_core import naming
from lake_core.ids import IdSource, first_above, first_id, is_id, not_below
from log_lake.agents.tombstones import run as tombstones
from log_lake.lake import Lake
from log_lake.lake.branch import Branch
from log_lake.lake.loads import load_blocks
from log_lake.lake.write import WriteArguments
from log_lake.leases import HeldLease, LeaseNote
from log_lake.leases.alarm import Alarm
from log_lake.loading.block import Block
from log_lake.rewriting.compaction import compact
from log_lake.stores.memory import MemoryStore
from log_lake.vacuum.execute import vacuum
from log_lake.vacuum.orphans import scan_orphans
from tests.support.clocks import DAY, Clock
from tests.support.stores import ScriptedStore, unavailable


@pytest.fixture
def store() -> ScriptedStore:
    return ScriptedStore()


def branch_of(store: ScriptedStore, after: str = "0s") -> Branch:
    """A pool with two objects that share a key, and a delete."""
    lake = Lake.create_on(store, author="vera")
    pool = lake.create_pool("p", key="k", settings={"lease.after": after})
    for _ in range(2):
        pool.branch().append(pa.table({"k": [1, 2]}))
    pool.branch().delete(where="k = 2")
    store.requests.clear()
    return pool.branch()


def compacted(branch: Branch, path: Path) -> object:
    return compact(branch, branch.history.load().state.branches["main"].snapshot.overlapping())


WRITES: dict[str, Callable[[Branch, Path], object]] = {
    "load": lambda branch, path: branch.append(pa.table({"k": [3]})),
    "load files": lambda branch, path: branch.load([str(path)]),
    "replace": lambda branch, path: branch.replace_with(pa.table({"k": [1]})),
    "compact": compacted,
    "apply deletes": lambda branch, path: tombstones.apply(branch, now=branch.context.now(), at_once=True),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "x.ndjson"
    path.write_text('{"k": 7}\n')
    return path


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
def test_work_that_lasts_longer_than_the_setting_holds_a_lease_until_it_is_committed(
    store: ScriptedStore, path: Path, write: Callable[[Branch, Path], object]
) -> None:
    branch = branch_of(store)
    seen: list[LeaseNote] = []

    def look() -> None:
        names = [info.name for info in store.behind.list(naming.leases(branch.config.id))]
        seen.extend(note_of(store, name) for name in names)

    before = branch.history.load().version
    store.on("create", f"{before + 1:020d}.txn", before=look)
    write(branch, path)
    assert [(note.kind, note.version, note.holder) for note in seen] in (
        [("write", before, "vera")],
        [],  # deletes are marked between the search and the rewrite, which have leases of their own
    )
    assert store.asked("create", ".lease") >= 1
    assert list(store.behind.list(naming.leases(branch.config.id))) == []


def note_of(store: ScriptedStore, name: str) -> LeaseNote:
    return msgspec.json.decode(store.behind.get(name) or b"", type=LeaseNote)


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
def test_short_work_takes_no_lease(
    store: ScriptedStore, path: Path, write: Callable[[Branch, Path], object]
) -> None:
    write(branch_of(store, after="1h"), path)
    assert store.asked("create", ".lease") == store.asked("put", ".lease") == 0


def test_a_lease_is_taken_while_the_work_goes_on(store: ScriptedStore) -> None:
    taken, by = threading.Event(), list[threading.Thread]()
    store.on("create", ".lease", before=lambda: (by.append(threading.current_thread()), taken.set()))
    note = LeaseNote("write", 1, "vera", 600.0)
    with HeldLease(store, "pool", first_id(2e9), note, after=0.02) as lease:
        assert taken.wait(600)
        assert not lease.is_lost
    assert by != [threading.current_thread()], "the work does not wait for it"
    assert list(store.behind.list("pool/leases")) == []


def test_a_lease_that_the_store_refuses_at_first_is_taken_later(store: ScriptedStore) -> None:
    store.on("create", ".lease", instead=unavailable, times=3)
    taken = threading.Event()
    note = LeaseNote("write", 1, "vera", 0.1)
    with HeldLease(store, "pool", first_id(2e9), note, after=0.01):
        store.on("create", ".lease", before=taken.set)
        assert taken.wait(600)


def test_an_alarm_calls_what_is_due_in_order_and_nothing_that_was_cancelled() -> None:
    alarm, called, done = Alarm(), list[str](), threading.Event()

    def call(name: str) -> None:
        called.append(name)
        if len(called) == 2:
            done.set()

    with alarm._changed:  # nothing is called until all of them are set
        for name, seconds in {"late": 0.2, "cancelled": 0.05, "early": 0.05}.items():
            alarm.set(name, seconds, partial(call, name))
        alarm.cancel("cancelled")
        alarm.cancel("unknown")
        # "early" is the later one if the machine stands still while they are set
        in_order = sorted(alarm._due, key=lambda name: alarm._due[name][0])
    assert done.wait(600)
    assert called == in_order
    again = threading.Event()
    alarm.set("again", 0.0, again.set)  # its thread has ended, or ends now
    assert again.wait(600)


def test_an_alarm_that_waits_for_a_late_call_wakes_for_an_earlier_one() -> None:
    alarm, done = Alarm(), threading.Event()
    alarm.set("late", 6_000.0, lambda: None)
    deadline = time.monotonic() + 600
    while not alarm._changed._waiters and time.monotonic() < deadline:  # type: ignore[attr-defined]
        time.sleep(0.001)
    alarm.set("early", 0.01, done.set)
    assert done.wait(600)
    alarm.cancel("late")
    alarm.set("last", 0.0, done.set)  # so that its thread ends


def in_process(clock: Clock, store: MemoryStore, own: Callable[[], float]) -> Lake:
    return Lake.open_on(store, ids=IdSource(clock=own), author="slow")


def test_a_load_that_outlives_the_grace_time_is_committed_since_it_holds_a_lease() -> None:
    clock = Clock()
    store = MemoryStore(clock=clock)
    lake = Lake.create_on(store, ids=IdSource(clock=clock), author="test")
    pool = lake.create_pool(
        "p",
        key="k",
        settings={"lease.after": "0s", "lease.ttl": "1d", "load.memory": "1KiB", "load.sort": "parts"},
    )

    def blocks() -> Iterator[Block]:
        yield Block(pa.table({"k": list(range(1000))}))
        yield Block(pa.table({"k": list(range(1000, 1500))}))
        (lease,) = store.list(naming.leases(pool.config.id))
        for _ in range(20):  # ten days; the thread that renews the lease runs by another clock
            clock.now += DAY / 2
            store.put(lease.name, store.get(lease.name) or b"")
            scan_orphans(other)
            vacuum(other, grace=0.0)
        yield Block(pa.table({"k": [5000]}))

    other = Lake.open_on(store, ids=IdSource(clock=clock), author="vacuum").pool("p")
    load_blocks(pool.branch(), blocks(), WriteArguments())
    assert pool.at().to_table().num_rows == 1501


@pytest.mark.parametrize("write", ["append", "compact"])
def test_a_writer_whose_clock_is_behind_by_a_month_is_not_refused(write: str) -> None:
    clock = Clock()
    store = MemoryStore(clock=clock)
    lake = Lake.create_on(store, ids=IdSource(clock=clock), author="test")
    pool = lake.create_pool("p", key="k")
    for _ in range(2):
        pool.branch().append(pa.table({"k": [1]}))
    clock.now += 8 * DAY
    scan_orphans(pool)
    floor = pool.history.load().state.removed.floor
    assert floor
    slow = in_process(clock, store, lambda: clock.now - 30 * DAY).pool("p").branch()
    if write == "append":
        slow.append(pa.table({"k": [2]}))
    else:
        compact(slow, slow.history.load().state.branches["main"].snapshot.overlapping())
    newest = {r.object for r in pool.at().references}
    assert max(newest) >= floor
    clock.now += 8 * DAY
    scan_orphans(pool)
    vacuum(pool)
    assert pool.at().to_table().num_rows == (3 if write == "append" else 2)


def test_ids_of_a_slow_clock_are_lifted_to_the_first_and_stay_apart() -> None:
    first = first_above("", now=2e9)
    assert first_above(first, now=0.0) == first_id(2e9 + 1)
    slow = [IdSource(clock=lambda: 1.5e9).new() for _ in range(100)]
    lifted = [not_below(id, first) for id in slow]
    assert len(set(lifted)) == 100
    assert all(first <= id < first_id(2e9 + 1) and is_id(id) for id in lifted)
    fast = IdSource(clock=lambda: 2.1e9).new()
    assert not_below(fast, first) == fast
    assert not_below(fast, "") == fast
