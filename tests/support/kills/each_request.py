"""Kills splits, inlined loads and bulk imports at their first request, at their second, and so on to their last.

Each is a process of its own, which SIGKILL ends `before` the store gets the request, or `after` the store has
answered it. On S3 there is a third phase, `late`: the request reaches the store when its process is already
gone. In a folder, a call of the store counts as a request. A record of all work in plain Python says what the
pool must hold. After each kill a new process reads all: what was done must be there once, or not at all. Then
the same work is done again with the same token, to its end, and must be there once. A checkpoint follows, so
that the next process makes about as many requests. At last a check of all records must find no damage.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from lake_core.store import Store
from log_lake.agents.checkpoint.run import write_checkpoint
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.repair.finding import DAMAGE
from log_lake.repair.fsck import Fsck
from log_lake.stores import open_store
from tests.support.kills.lost_answers.processes import PRELOADED
from tests.support.kills.lost_answers.trouble import Trouble, troubled
from tests.support.servers.proxy import Proxy
from tests.support.stores import StoreInFront

KEYS, RECORDS, FILES = 1_000, 60, 3
LONGEST = 120
MOST = 40
"""About the most requests of a piece of work."""
SETTINGS = {"type.k": "bigint", "type.v": "bigint", "load.memory": "1MiB"}
POINTS = (250, 500, 750)

Rows = list[tuple[int, int]]


def rows(number: int, file: int = 0) -> Rows:
    """The records of a load, or of one file of it; always the same for the same number."""
    chance = random.Random(number * FILES + file)
    return [(chance.randrange(KEYS), number * 10_000 + file * 1_000 + n) for n in range(RECORDS)]


def table(of: Rows) -> pa.Table:
    return pa.table({"k": [k for k, _ in of], "v": [v for _, v in of]}).cast(
        pa.schema([("k", pa.int64()), ("v", pa.int64())])
    )


def split(pool: Pool, number: int, folder: str) -> None:
    """Adds split points, or, each third time, removes all of them."""
    if number % 3 == 2:
        pool.unsplit()
    else:
        pool.split(at=points_of(number))


def points_of(number: int) -> list[int]:
    chance = random.Random(number)
    return sorted(chance.sample(range(1, KEYS), 3))


def inlined(pool: Pool, number: int, folder: str) -> None:
    """Makes a small load, whose records are stored in its entry."""
    pool.branch().append(table(rows(number)), token=f"t{number}")


def bulk(pool: Pool, number: int, folder: str) -> None:
    """Imports some files into a pool of four ranges."""
    files = []
    for file in range(FILES):
        files.append(f"{folder}/{number}-{file}.parquet")
        pq.write_table(table(rows(number, file)), files[-1])
    pool.branch().load(files, bulk=True, token=f"t{number}")


WORKS: dict[str, Callable[[Pool, int, str], None]] = {"split": split, "inlined": inlined, "bulk": bulk}


# ---------------------------------------------------------------- the process that is killed


class KilledStore(StoreInFront):
    """A store whose process is killed at one of its calls."""

    def __init__(self, behind: Store, at: int, phase: str) -> None:
        self.behind, self._left, self._phase = behind, at, phase

    def ask(self, request: str, name: str, call: Callable[[], Any]) -> Any:
        self._left -= 1
        if self._left == 0 and self._phase == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        answer = call()
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    def open_output(self, name: str) -> AbstractContextManager[BinaryIO]:
        """Opens an output. Its end counts as a call too, because it gives the object its name."""

        @contextmanager
        def opened() -> Iterator[BinaryIO]:
            output = self.behind.open_output(name)
            file = self.ask("open_output", name, output.__enter__)
            try:
                yield file
            except BaseException as error:
                output.__exit__(type(error), error, error.__traceback__)
                raise
            self.ask("end_output", name, lambda: output.__exit__(None, None, None))

        return opened()


def act(work: str, uri: str, options: dict[str, Any], number: int, folder: str, at: int, phase: str) -> None:
    """What the process does that is killed."""
    store = open_store(uri, options)
    lake = Lake.open_on(KilledStore(store, at, phase) if at else store)
    WORKS[work](lake.pool(work), number, folder)


# ---------------------------------------------------------------- the account


@dataclass
class Account:
    """What the pools must hold, the number of kills, and after how many of them all of the work was done."""

    records: dict[str, Counter[tuple[int, int]]] = field(
        default_factory=lambda: {work: Counter() for work in WORKS}
    )
    points: dict[str, set[int]] = field(default_factory=lambda: {work: set() for work in WORKS})
    kills: Counter[str] = field(default_factory=Counter)
    done_though_killed: Counter[str] = field(default_factory=Counter)

    def after(self, work: str, number: int) -> tuple[Counter[tuple[int, int]], set[int]]:
        """Returns the records and points that must be there once the work with this number is done."""
        match work:
            case "split":
                return self.records[work], set() if number % 3 == 2 else self.points[work] | {
                    *points_of(number)
                }
            case "inlined":
                return self.records[work] + Counter(rows(number)), self.points[work]
            case _:
                new = Counter(row for file in range(FILES) for row in rows(number, file))
                return self.records[work] + new, self.points[work]

    def state(self, work: str) -> tuple[Counter[tuple[int, int]], set[int]]:
        return self.records[work], self.points[work]


@dataclass
class EachRequest:
    """One run; `proxy_url` is the address at which the processes find the server, None for a folder."""

    uri: str
    options: Mapping[str, Any]
    folder: Path
    kills: int
    step: int
    trouble: Trouble | None = None
    proxy_url: str | None = None
    account: Account = field(default_factory=Account)

    def __post_init__(self) -> None:
        self._number = 0
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload([*PRELOADED, "tests.support.kills.each_request"])

    def prepare(self) -> None:
        """Makes the pools, with records."""
        lake = Lake.create(self.uri, options=self.options)
        for work in WORKS:
            inline = {"load.inline": "64KiB"} if work == "inlined" else {}
            pool = lake.create_pool(work, key="k", settings=SETTINGS | inline)
            if work == "bulk":
                pool.split(at=list(POINTS))
                self.account.points[work] = {*POINTS}
            pool.branch().append(table(rows(0)))
            self.account.records[work] += Counter(rows(0))

    def run(self) -> None:
        """Kills each work at each of its requests in each phase, then at random ones, until there were enough
        kills."""
        phases = ("before", "after") if self.trouble is None else ("before", "after", "late")
        every = [(work, phase) for work in WORKS for phase in phases]
        for work, phase in every:
            at = 1
            while self._killed(work, phase, at):
                at += self.step
            assert at > 1, f"{work}: no request was seen"
        chance = random.Random(1)
        while sum(self.account.kills.values()) < self.kills:
            self._killed(*chance.choice(every), at=chance.randrange(1, MOST))
        lake = Lake.open(self.uri, options=self.options)
        for work in WORKS:
            branch = lake.pool(work).at()
            assert work != "inlined" or any(r.data for r in branch.references), "nothing was inlined"
        found = [one for one in Fsck(lake.context, data=True).run() if one.severity == DAMAGE]
        assert not found, f"fsck finds {found}"

    def _killed(self, work: str, phase: str, at: int) -> bool:
        """Kills one work at a request, checks the pool, and repeats the work. Returns false if the work ended
        before that request."""
        self._number += 1
        status = self._process(work, at, phase)
        assert status in (0, -signal.SIGKILL), f"{work} at request {at}, {phase}: status {status}"
        before, after = self.account.state(work), self.account.after(work, self._number)
        found = self._found(work)
        where = f"{work} {self._number}, killed {phase} its request {at}"
        if status == 0:
            assert found == after, f"{where}, which did not come"
        else:
            assert found in (before, after), f"{where}: neither what was there nor what was to come"
            self.account.kills[f"{work}, {phase}"] += 1
            self.account.done_though_killed[work] += found == after != before
            assert self._process(work, 0, "") == 0
            assert self._found(work) == after, f"{where} and done again"
        self.account.records[work], self.account.points[work] = after
        write_checkpoint(Lake.open(self.uri, options=self.options), work, now=time.time())
        return status != 0

    def _process(self, work: str, at: int, phase: str) -> int:
        """Runs a process. Returns its exit status."""
        options = dict(self.options)
        if self.proxy_url is not None:
            options |= {"client_kwargs": options["client_kwargs"] | {"endpoint_url": self.proxy_url}}
        told = at if self.trouble is None else 0
        arguments = (work, self.uri, options, self._number, str(self.folder), told, phase)
        process = self._context.Process(target=act, args=arguments)
        if self.trouble is not None and at:
            self.trouble.kill_at(
                at, lambda: os.kill(process.pid or 0, signal.SIGKILL), phase, only_writes=False
            )
        process.start()
        process.join(LONGEST)
        if self.trouble is not None:
            self.trouble.forget_kill()
            self.trouble.wait_until_idle()
        assert process.exitcode is not None, f"{work}: no end after {LONGEST} s"
        return process.exitcode

    def _found(self, work: str) -> tuple[Counter[tuple[int, int]], set[int]]:
        """Returns what a reader sees that opens the pool anew."""
        pool = Lake.open(self.uri, options=self.options).pool(work)
        read = pool.at().to_table()
        records = Counter(zip(read["k"].to_pylist(), read["v"].to_pylist(), strict=True))
        return records, {row.low for row in pool.ranges() if isinstance(row.low, int)}


def killed(uri: str, options: Mapping[str, Any], *, kills: int, step: int) -> dict[str, Any]:
    """Runs until there were so many kills, at every `step`th request. Returns what happened. Raises
    AssertionError."""
    server = options.get("client_kwargs", {}).get("endpoint_url")
    proxied: AbstractContextManager[Proxy | None] = Proxy(server) if server else nullcontext()
    with tempfile.TemporaryDirectory() as folder, proxied as proxy:
        trouble = Trouble(random.Random(1), share=0.0) if proxy else None
        run = EachRequest(uri, options, Path(folder), kills, step, trouble, proxy.url if proxy else None)
        run.prepare()
        if proxy and trouble:
            troubled(proxy, trouble)
        run.run()
    return {
        "kills": sum(run.account.kills.values()),
        **dict(sorted(run.account.kills.items())),
        **{f"{work}, done though killed": n for work, n in run.account.done_though_killed.items()},
        **{f"{work}, records": sum(of.values()) for work, of in run.account.records.items()},
    }
