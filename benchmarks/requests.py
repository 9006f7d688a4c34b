"""Requests and bytes of the lake on an S3 server (moto), counted by a proxy; lance and deltalake beside it.

The counts are exact and no timing: `tests/contract/test_requests.py` holds those of the lake.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.measure import Measure
from tests.support.servers.proxy import Answer, Proxy, Request
from tests.support.servers.s3 import BUCKET, REGION, moto, s3_client

RECORDS = 1_200_000
LOADS = 10
HOUR = 3600.0

DELAY = 0.2
"""Seconds: far longer than a thread takes to start."""


@dataclass(frozen=True)
class Counted:
    """How many requests a piece of work sent, how many of them were listings and writes, and the bytes of answers
    to its reads.

    `trips`: the most requests of which each began after the one before had ended.
    """

    what: str
    requests: int
    lists: int
    writes: int
    bytes: int
    seconds: float
    trips: int

    @property
    def note(self) -> str:
        """The counts in words."""
        asked = f"{self.requests} requests, {self.lists} LIST and {self.writes} PUT"
        return f"{asked}; {self.trips} round trips; {self.bytes / 1e6:.2f} MB"


class Counter(Proxy):  # type: ignore[misc]  # tests have no types here
    """A proxy that counts the bytes of answers, and the round trips.

    Each answer takes `delay` seconds more, so that requests that are sent side by side overlap.
    """

    def __init__(self, target: str, delay: float) -> None:
        super().__init__(target)
        self.bytes = 0
        self._delay = delay
        self._spans: list[tuple[float, float]] = []

    def _forward(self, request: Request) -> Answer:
        begun = time.perf_counter()
        time.sleep(self._delay)
        answer = super()._forward(request)
        self._spans.append((time.perf_counter(), begun))
        if request.method == "GET":
            self.bytes += len(answer.body)
        return answer

    def count(self, what: str, work: Callable[[], object]) -> Counted:
        """Does the work, and returns the requests that it sent."""
        self.forget()
        self.bytes = 0
        self._spans = []
        begun = time.perf_counter()
        work()
        seconds = time.perf_counter() - begun
        lists = self.asked(lambda one: "list-type=2" in one.path)
        writes = self.asked(lambda one: one.method == "PUT")
        trips, last = 0, 0.0
        for ended, began in sorted(self._spans):
            if began >= last:
                trips, last = trips + 1, ended
        return Counted(what, len(self.requests), lists, writes, self.bytes, seconds, trips)


def content(records: int, begin: int = 0) -> pa.Table:
    """Makes records with a key and three other columns, which compress little."""
    made = np.random.default_rng(begin)
    return pa.table(
        {
            "k": np.arange(begin, begin + records),
            "a": made.integers(0, 1 << 40, records),
            "b": made.random(records),
            "c": made.integers(0, 1_000, records),
        }
    )


@contextmanager
def counting(*, delay: float = 0.0) -> Iterator[Counter]:
    """Runs a proxy in front of an S3 server, both on loopback."""
    with moto() as address, Counter(address, delay) as proxy:
        yield proxy


def of_lake(proxy: Counter, *, records: int = RECORDS) -> Iterator[Counted]:
    """Counts the requests of the lake for the reads and writes in the table of docs/comparison.md."""
    from lake_core.ids import IdSource
    from log_lake.lake import Lake

    uri, options = f"s3://{BUCKET}/lake", s3_client(proxy.url)

    def view_of(pool: str) -> Any:
        return Lake.open(uri, options=options).pool(pool).at()

    lake = Lake.create(uri, options=options)
    lake.create_pool("one", key="k").branch().append(content(records))
    small = lake.create_pool("small", key="k").branch()
    for begin in range(LOADS):
        small.append(content(1_000, begin))
    view = view_of("one")
    (reference,) = view.references
    yield proxy.count(f"scan of {reference.size:,} bytes", view.to_table)
    yield proxy.count("the same again", view.to_table)
    view = view_of("one")
    yield proxy.count("1 of 4 columns", lambda: view.to_table(columns=["b"]))
    of_scans = Lake.create(f"s3://{BUCKET}/scans", options=options)
    of_scans.create_pool("one", key="k", settings={"layout": "scan"}).branch().append(content(records))
    wide = of_scans.pool("one").at()
    yield proxy.count("1 of 4 columns, layout=scan", lambda: wide.to_table(columns=["b"]))
    yield proxy.count("point get, layout=scan, footer known", lambda: wide.get(records // 2))
    view = view_of("one")
    yield proxy.count("point get", lambda: view.get(records // 2))
    yield proxy.count("point get, footer known", lambda: view.get(records // 3))
    view = view_of("small")
    yield proxy.count(f"point get, {LOADS} small objects", lambda: view.get(500))
    yield proxy.count(f"point get, {LOADS} small objects, again", lambda: view.get(500))
    yield from _of_journal(
        proxy, lambda ahead=0.0: Lake.open(uri, options=options, ids=IdSource(lambda: time.time() + ahead))
    )


def _of_journal(proxy: Counter, reopened: Callable[..., Any]) -> Iterator[Counted]:
    """Counts the requests of opening, writing and compacting a pool of small loads."""
    from log_lake.agents.checkpoint.run import write_checkpoint
    from log_lake.agents.driver import find
    from log_lake.rewriting.compaction import compact

    lake = reopened()
    yield proxy.count(f"cold open, {LOADS} entries", lambda: reopened().pool("small").at())
    small = lake.pool("small").branch()
    _on_a_fast_machine(small)
    for _ in range(2):
        small.append(content(1_000, LOADS))  # the second one counts the gates
    yield proxy.count("append, open writer", lambda: small.append(content(1_000, LOADS)))
    yield proxy.count("look for news, none", small.history.load)
    two = lake.pool("small").at().key_range(low=2, high=4)
    yield proxy.count("delete of a range", lambda: small.delete(key_range=two))
    yield proxy.count("delete by a condition", lambda: small.delete(where="c = 7"))
    small.append(
        content(1_000, LOADS)
    )  # the sixteenth entry, whose writer also lists requests and writes HEAD
    inputs = lake.pool("small").at().references[:LOADS]
    yield proxy.count(f"compaction of {LOADS} objects", lambda: compact(small, inputs))
    write_checkpoint(lake, "small", now=time.time())
    yield proxy.count("cold open, at a checkpoint", lambda: reopened().pool("small").at())
    compact(small, lake.pool("small").at().references)
    view = reopened().pool("small").at()
    yield proxy.count("point get, compacted", lambda: view.get(500))
    yield proxy.count("point get, compacted, again", lambda: view.get(500))
    yield proxy.count(
        "cold open and append", lambda: reopened().pool("small").branch().append(content(1_000))
    )

    def retention(ahead: float) -> Callable[[], object]:
        return lambda: find("retention", {"lake": small.store.uri}, open_lake=lambda _: reopened(ahead))

    yield proxy.count("retention looks at 2 pools", retention(0.0))
    retention(HOUR)()
    yield proxy.count("retention, 2 pools idle for an hour", retention(HOUR + 60.0))
    lake.create_pool("tiny", key="k", settings={"load.inline": "64KiB"})
    tiny = lake.pool("tiny").branch()
    _on_a_fast_machine(tiny)
    for _ in range(2):
        tiny.append(content(10))
    yield proxy.count("append, inlined", lambda: tiny.append(content(10, 1)))
    inlined = reopened().pool("tiny").at()
    yield proxy.count("scan, inlined", inlined.to_table)


def _on_a_fast_machine(branch: Any) -> None:
    """Nothing becomes old while this runs, however slow the machine is: the counts stay the same."""
    journal = branch.history.journal
    journal.retry = replace(journal.retry, clock=float)


def of_lance(proxy: Counter, *, records: int = RECORDS) -> Iterator[Counted]:
    """Counts the requests of lance for the same work; lance must be importable."""
    import lance

    options = {**_options(proxy), "allow_http": "true"}
    one, small = f"s3://{BUCKET}/lance", f"s3://{BUCKET}/lance-small"

    def opened(place: str = one) -> Any:
        return lance.dataset(place, storage_options=options)

    lance.write_dataset(content(records), one, storage_options=options)
    table = opened()
    yield proxy.count("lance: scan", table.to_table)
    table = opened()
    yield proxy.count("lance: 1 of 4 columns", lambda: table.to_table(columns=["b"]))
    table = opened()
    wanted = pc.field("k") == records // 2
    yield proxy.count("lance: point get without an index", lambda: table.to_table(filter=wanted))
    for begin in range(LOADS):
        lance.write_dataset(content(1_000, begin), small, mode="append", storage_options=options)
    yield proxy.count(f"lance: cold open, {LOADS} entries", lambda: opened(small))
    table = opened(small)
    yield proxy.count(
        "lance: append, open writer", lambda: table.insert(content(1_000, LOADS), mode="append")
    )
    yield proxy.count("lance: delete of a range", lambda: table.delete("k >= 2 and k < 4"))
    yield proxy.count("lance: delete by a condition", lambda: table.delete("c = 7"))
    yield proxy.count(f"lance: compaction of {LOADS + 1} objects", table.optimize.compact_files)


def of_delta(proxy: Counter, *, records: int = RECORDS) -> Iterator[Counted]:
    """Counts the requests of deltalake for the same work; deltalake must be importable."""
    from deltalake import DeltaTable, write_deltalake

    options = {**_options(proxy), "aws_allow_http": "true", "aws_conditional_put": "etag"}
    one, small = f"s3://{BUCKET}/delta", f"s3://{BUCKET}/delta-small"

    def opened(place: str = one) -> Any:
        return DeltaTable(place, storage_options=options)

    write_deltalake(one, content(records), storage_options=options)
    table = opened()
    yield proxy.count("deltalake: scan", table.to_pyarrow_table)
    for begin in range(LOADS):
        write_deltalake(small, content(1_000, begin), mode="append", storage_options=options)
    yield proxy.count(f"deltalake: cold open, {LOADS} entries", lambda: opened(small))
    table = opened(small)
    yield proxy.count(
        "deltalake: append, open writer", lambda: write_deltalake(table, content(1_000, LOADS), mode="append")
    )
    yield proxy.count("deltalake: delete of a range", lambda: table.delete("k >= 2 and k < 4"))
    yield proxy.count("deltalake: delete by a condition", lambda: table.delete("c = 7"))
    yield proxy.count(f"deltalake: compaction of {LOADS + 1} objects", table.optimize.compact)


def _options(proxy: Counter) -> dict[str, str]:
    return {
        "aws_access_key_id": "test",
        "aws_secret_access_key": "test",
        "aws_endpoint": proxy.url,
        "aws_region": REGION,
    }


def measures() -> Iterator[Measure]:
    """Yields lines with the counts in their notes. The seconds are those of a server on loopback, and say
    little."""
    import sys

    from benchmarks import peers

    peers.install()
    sys.path.append(str(peers.FOLDER))
    with counting(delay=DELAY) as proxy:
        for of in (of_lake, of_lance, of_delta):
            for number, one in enumerate(of(proxy)):
                yield Measure(one.what, one.seconds, RECORDS, 0, note=one.note, begins=not number)
