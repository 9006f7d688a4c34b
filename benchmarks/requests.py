"""Requests and bytes of the lake on an S3 server (moto), counted by a proxy; lance beside it.

The counts are exact and no timing: `tests/contract/test_requests.py` holds those of the lake.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.measure import Measure
from tests.support.servers.proxy import Answer, Proxy, Request
from tests.support.servers.s3 import BUCKET, REGION, moto, s3_client

RECORDS = 1_200_000
LOADS = 10


@dataclass(frozen=True)
class Counted:
    """What a piece of work asked for: requests, listings and writes among them; bytes of answers to reads."""

    what: str
    requests: int
    lists: int
    writes: int
    bytes: int
    seconds: float

    @property
    def note(self) -> str:
        """The counts in words."""
        return f"{self.requests} requests, {self.lists} LIST and {self.writes} PUT; {self.bytes / 1e6:.2f} MB"


class Counter(Proxy):  # type: ignore[misc]  # tests have no types here
    """A proxy that counts the bytes of answers."""

    def __init__(self, target: str) -> None:
        super().__init__(target)
        self.bytes = 0

    def _forward(self, request: Request) -> Answer:
        answer = super()._forward(request)
        if request.method == "GET":
            self.bytes += len(answer.body)
        return answer

    def count(self, what: str, work: Callable[[], object]) -> Counted:
        """What the work asks for."""
        self.forget()
        self.bytes = 0
        begun = time.perf_counter()
        work()
        seconds = time.perf_counter() - begun
        lists = self.asked(lambda one: "list-type=2" in one.path)
        writes = self.asked(lambda one: one.method == "PUT")
        return Counted(what, len(self.requests), lists, writes, self.bytes, seconds)


def content(records: int, begin: int = 0) -> pa.Table:
    """Records with a key and three other columns, which compress little."""
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
def counting() -> Iterator[Counter]:
    """A proxy in front of an S3 server, both on loopback."""
    with moto() as address, Counter(address) as proxy:
        yield proxy


def of_lake(proxy: Counter, *, records: int = RECORDS) -> Iterator[Counted]:
    """The reads and writes of the table in docs/comparison.md, by the lake."""
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
    view = view_of("one")
    yield proxy.count("point get", lambda: view.get(records // 2))
    yield proxy.count("point get, footer known", lambda: view.get(records // 3))
    view = view_of("small")
    yield proxy.count(f"point get, {LOADS} small objects", lambda: view.get(500))
    yield proxy.count("the same again", lambda: view.get(500))
    yield proxy.count(f"cold open, {LOADS} entries", lambda: view_of("small"))
    yield proxy.count("append, open writer", lambda: small.append(content(1_000, LOADS)))


def of_lance(proxy: Counter, *, records: int = RECORDS) -> Iterator[Counted]:
    """The same reads by lance, which must be in the path."""
    import lance

    options = {
        "aws_access_key_id": "test",
        "aws_secret_access_key": "test",
        "aws_endpoint": proxy.url,
        "aws_region": REGION,
        "allow_http": "true",
    }
    place = f"s3://{BUCKET}/lance"
    lance.write_dataset(content(records), place, storage_options=options)

    def opened() -> Any:
        return lance.dataset(place, storage_options=options)

    table = opened()
    yield proxy.count("lance: scan", table.to_table)
    table = opened()
    yield proxy.count("lance: 1 of 4 columns", lambda: table.to_table(columns=["b"]))
    table = opened()
    wanted = pc.field("k") == records // 2
    yield proxy.count("lance: point get without an index", lambda: table.to_table(filter=wanted))


def measures() -> Iterator[Measure]:
    """The counts as notes; the seconds are those of a server on loopback, and say little."""
    import sys

    from benchmarks import peers

    peers.install()
    sys.path.append(str(peers.FOLDER))
    with counting() as proxy:
        for of in (of_lake, of_lance):
            for number, one in enumerate(of(proxy)):
                yield Measure(one.what, one.seconds, RECORDS, 0, note=one.note, begins=not number)
