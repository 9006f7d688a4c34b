"""Transactions over three pools, beside three single commits; what they cost readers, single writers and an open.

On local files, and on an S3 server (moto) behind a proxy that counts requests.  What lasts for minutes, or has many
processes, runs on a store in memory that answers after a while, as an object store does: on one machine
the processor would be the limit otherwise.  There a *round trip* is a wait for answers: requests at the same time
are one.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks import data
from benchmarks.measure import Measure
from benchmarks.requests import Counter, counting
from lake_core.store import Store
from log_lake.agents.checkpoint.run import write_checkpoint
from log_lake.lake import Lake
from log_lake.lake.open_transactions import clean
from log_lake.lake.transactions import PoolsTransaction
from log_lake.stores.memory import MemoryStore
from tests.support.servers.s3 import BUCKET, s3_client
from tests.support.stores import StoreInFront

POOLS = ("a", "b", "c")
FOUR = ("a", "b", "c", "d")
TIMES = 40
TIMES_ON_S3 = 15
RECORDS = 1_000
WAIT = 0.05
WAIT_OF_MANY = 0.3
"""Seconds to an answer where many write at once: more than a store takes, so that the processor does not decide."""
SECONDS = 60.0
CROWD = 8
PAST = 10_000
PATIENCE = 240.0
"""Seconds after which a past is long enough, although it has not `PAST` transactions."""
OPENS = 20


def records(seed: int) -> pa.Table:
    """Some that are too many to lie in the journal."""
    chance = np.random.default_rng(seed)
    return pa.table({"k": chance.integers(0, 10**9, RECORDS), "v": chance.random(RECORDS)})


def _with_pools(lake: Lake, names: tuple[str, ...] = POOLS) -> Lake:
    for name in names:
        lake.create_pool(name, key="k").branch().append(records(0))
    return lake


def _singles(lake: Lake, names: tuple[str, ...] = POOLS) -> None:
    for seed, name in enumerate(names):
        lake.pool(name).branch().append(records(seed))


def _written(lake: Lake, names: tuple[str, ...] = POOLS) -> PoolsTransaction:
    """A transaction that is ready to be committed."""
    transaction = lake.transaction()
    for seed, name in enumerate(names):
        transaction.pool(name).append(records(seed))
    return transaction


@dataclass
class _Taken:
    """How often some work was done, in how many seconds, and how much of them the processor worked."""

    name: str
    times: int = 0
    seconds: float = 0.0
    processor: float = 0.0

    def run(self, work: Callable[[], Any]) -> Any:
        processor, begun = time.process_time(), time.perf_counter()
        done = work()
        self.seconds += time.perf_counter() - begun
        self.processor += time.process_time() - processor
        self.times += 1
        return done

    def measure(self, note: str = "", *, begins: bool = False) -> Measure:
        seconds, processor = (spent / self.times * 1e3 for spent in (self.seconds, self.processor))
        each = f"{seconds:.1f} ms each, {processor:.1f} of processor"
        note = f"{each}; {note}" if note else each
        return Measure(self.name, self.seconds, self.times, 0, note, self.processor, begins=begins)


def _measure(name: str, seconds: float, note: str = "", *, records: int = 1, begins: bool = False) -> Measure:
    return Measure(name, seconds, records, 0, note, begins=begins)


def _compared(
    lake: Lake, where: str, times: int, notes: tuple[str, str, str] = ("", "", "")
) -> Iterator[Measure]:
    """One transaction against three single commits; the two take turns, since others use the machine too."""
    single, writes = _Taken(f"3 single commits, {where}"), _Taken(f"3 joins and loads, {where}")
    commit = _Taken(f"the commit of 3 pools, {where}")
    for _ in range(times):
        single.run(lambda: _singles(lake))
        transaction = writes.run(lambda: _written(lake))
        commit.run(transaction.commit)
    yield single.measure(notes[0], begins=True)
    yield writes.measure(notes[1])
    yield commit.measure(notes[2])


def commits() -> Iterator[Measure]:
    """On local files."""
    lake = _with_pools(Lake.create(data.fresh(f"transactions-{time.time_ns()}")))
    _written(lake).commit()
    yield from _compared(lake, "local files", TIMES)


def on_s3(proxy: Counter) -> Iterator[Measure]:
    """The same on an S3 server, with requests; and a reader beside an undecided transaction."""
    uri, options = f"s3://{BUCKET}/transactions", s3_client(proxy.url)
    lake = _with_pools(Lake.create(uri, options=options))
    _singles(lake)
    _written(lake).commit()
    left: list[PoolsTransaction] = []
    notes = (
        proxy.count("", lambda: _singles(lake)).note,
        proxy.count("", lambda: left.append(_written(lake))).note,
        proxy.count("", left[0].commit).note,
    )
    yield from _compared(lake, "S3", TIMES_ON_S3, notes)
    yield from _undecided(proxy, uri, options)


def round_trips() -> Iterator[Measure]:
    """Round trips, one after the other, of single commits and of transactions over one pool or several."""
    store = _Slow(MemoryStore(f"memory://round-trips-{time.time_ns()}"))
    names = tuple("abcdef")
    lake = _with_pools(Lake.create_on(store.behind), names)
    _written(lake, names).commit()
    lake = Lake.open_on(store)
    _singles(lake, names)
    for count in (1, 3, 6):
        some = names[:count]
        left: list[PoolsTransaction] = []
        for what, work in (
            ("single commits", lambda some=some: _singles(lake, some)),
            ("joins and loads", lambda some=some, left=left: left.append(_written(lake, some))),
            ("the commit of pools", lambda left=left: left[0].commit()),
        ):
            taken = _Taken(f"{what}: {count}")
            store.asked.clear()
            taken.run(work)
            note = f"{store.round_trips()} round trips, {len(store.asked)} requests"
            yield taken.measure(note, begins=what == "single commits")


class _Killed(BaseException):
    """The process is gone."""


class _DiesBeforeDecision(StoreInFront):  # type: ignore[misc]  # tests have no types here
    def __init__(self, behind: Store) -> None:
        self.behind = behind

    def ask(self, request: str, name: str, call: Callable[[], Any]) -> Any:
        if request == "create" and name.endswith("/decision"):
            raise _Killed
        return call()


def _undecided(proxy: Counter, uri: str, options: dict[str, Any]) -> Iterator[Measure]:
    """All pools are prepared, and the writer is killed just before its decision."""
    reader = Lake.open(uri, options=options).pool("a")
    reader.at().to_table()
    before = proxy.count("", reader.at)
    dying = Lake.open_on(_DiesBeforeDecision(Lake.open(uri, options=options).store))
    transaction = dying.transaction()
    for name in POOLS:
        transaction.pool(name).append(records(1))
    try:
        transaction.commit()
    except _Killed:
        died = time.perf_counter()
    reader.at()
    beside = proxy.count("", reader.at)
    opened = Lake.open(uri, options=options)
    opened.pool("a").branch().append(records(2))  # a load does not wait
    loaded = time.perf_counter() - died
    opened.pool("a").branch().delete(where="v > 2")  # a delete does
    waited = time.perf_counter() - died
    after = proxy.count("", opened.pool("a").at)
    yield _measure("look for news, S3", before.seconds, before.note, begins=True)
    yield _measure("the same beside an undecided transaction", beside.seconds, beside.note)
    yield _measure("the same after it was resolved", after.seconds, after.note)
    yield _measure("a load after the writer was killed", loaded)
    yield _measure("a delete after the writer was killed", waited, "it ends the transaction")


class _Slow(StoreInFront):  # type: ignore[misc]  # tests have no types here
    """A store that answers as late as an object store, and lists as S3 does."""

    lists_from_name = True

    def __init__(self, behind: Store, *, wait: float = WAIT) -> None:
        self.behind, self.wait = behind, wait
        self.asked: list[tuple[float, float]] = []
        """When each answer came, and when it was asked for."""

    def ask(self, request: str, name: str, call: Callable[[], Any]) -> Any:
        begun = time.monotonic()
        time.sleep(self.wait)
        answer = call()
        self.asked.append((time.monotonic(), begun))
        return answer

    def round_trips(self) -> int:
        """The most requests of which each was asked for after the answer of the one before."""
        count, last = 0, 0.0
        for ended, begun in sorted(self.asked):
            if begun >= last:
                count, last = count + 1, ended
        return count


def beside() -> Iterator[Measure]:
    """Eight single writers alone, beside eight others, and beside eight transactions over two or three pools."""
    first = True
    for what, work in (("alone", None), ("beside 8 more of them", _single), ("beside 8 transactions", _over)):
        singles, others = _crowd(work)
        note = f"slowest / median {min(singles) / max(1.0, statistics.median(singles)):.2f}"
        if work is not None:
            note += f"; the others commit {sum(others)}, the slowest of them {min(others)}"
        yield _measure(f"8 single writers {what}", SECONDS, note, records=sum(singles), begins=first)
        first = False


def _single(lake: Lake, number: int, turn: int) -> None:
    lake.pool(FOUR[(number + turn) % 4]).branch().append(records(turn))


def _over(lake: Lake, number: int, turn: int) -> None:
    with lake.transaction() as transaction:
        for step in range(2 + number % 2):
            transaction.pool(FOUR[(number + step) % 4]).append(records(turn))


def _crowd(beside: Callable[[Lake, int, int], None] | None) -> tuple[list[int], list[int]]:
    """The commits of each of the single writers, and of those beside them."""
    store = MemoryStore(f"memory://beside-{time.time_ns()}")
    _with_pools(Lake.create_on(store), FOUR)
    end = time.monotonic() + SECONDS
    done = dict.fromkeys(range(2 * CROWD if beside else CROWD), 0)

    def run(number: int, work: Callable[[Lake, int, int], None]) -> None:
        lake = Lake.open_on(_Slow(store, wait=WAIT_OF_MANY), author=f"writer {number}")
        while time.monotonic() < end:
            work(lake, number, done[number])
            done[number] += time.monotonic() < end

    threads = [threading.Thread(target=run, args=(number, _single)) for number in range(CROWD)]
    if beside is not None:
        threads += [threading.Thread(target=run, args=(CROWD + n, beside)) for n in range(CROWD)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    counts = list(done.values())
    return counts[:CROWD], counts[CROWD:]


def opening() -> Iterator[Measure]:
    """A cold open of a pool with a long past: of single commits, of transactions; with a checkpoint and without."""
    small = pa.table({"k": [1], "v": [0.5]})

    def singles(lake: Lake) -> None:
        for name in ("a", "b"):
            lake.pool(name).branch().append(small)

    def together(lake: Lake) -> None:
        with lake.transaction() as transaction:
            for name in ("a", "b"):
                transaction.pool(name).append(small)

    stores: dict[str, MemoryStore] = {}
    past = PAST
    for what, work in (("transactions over 2 pools", together), ("single commits", singles)):
        store = stores[what] = MemoryStore(f"memory://{what.replace(' ', '-')}")
        lake = Lake.create_on(store)
        for name in ("a", "b"):
            lake.create_pool(name, key="k", settings={"load.inline": "64KiB"}).branch().append(small)
        taken = _Taken(f"{what}, made")
        while taken.times < past and (what != "transactions over 2 pools" or taken.seconds < PATIENCE):
            taken.run(partial(work, lake))
            if taken.times % 1_000 == 0:
                _upkeep(lake)
        past = taken.times
        _upkeep(lake)
        yield taken.measure(begins=True)
    for number, (what, store) in enumerate(stores.items()):
        yield _opened(f"open, {past:,} {what}", store, lambda lake: lake.pool("a").at(), begins=not number)
        yield _opened(f"lake.at of both, {past:,} {what}", store, lambda lake: lake.at("a", "b"))
    for more in (10, 60):
        for what, work in (("transactions over 2 pools", together), ("single commits", singles)):
            lake = Lake.open_on(stores[what])
            for _ in range(more):
                work(lake)
            yield _opened(f"open, {more} {what} later", stores[what], lambda lake: lake.pool("a").at())
            clean(lake, grace=0.0)
            _upkeep(lake)


def _upkeep(lake: Lake) -> None:
    """What agents do now and then."""
    clean(lake, grace=0.0)
    for name in ("a", "b"):
        write_checkpoint(lake, name, now=time.time())


def _opened(name: str, store: MemoryStore, work: Callable[[Lake], Any], *, begins: bool = False) -> Measure:
    """By a process that has read nothing yet."""
    asked = _Counted(store)
    taken = _Taken(name)
    for _ in range(OPENS):
        taken.run(lambda: work(Lake.open_on(asked)))
    return taken.measure(f"{asked.count // OPENS} requests", begins=begins)


class _Counted(StoreInFront):  # type: ignore[misc]  # tests have no types here
    lists_from_name = True

    def __init__(self, behind: Store) -> None:
        self.behind, self.count = behind, 0

    def ask(self, request: str, name: str, call: Callable[[], Any]) -> Any:
        self.count += 1
        return call()


def measures() -> Iterator[Measure]:
    """`records` are commits here."""
    yield from commits()
    with counting() as proxy:
        yield from on_s3(proxy)
    yield from round_trips()
    yield from beside()
    yield from opening()
