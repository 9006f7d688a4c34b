"""How many requests a read of data objects sends, and which bytes; the numbers are exact."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest

from lake_core.errors import Corrupt, ObjectMissing
from lake_core.keys import KeyRange
from lake_core.store.planned import Range
from log_lake.agents.checkpoint.run import write_checkpoint
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.stores.memory import MemoryStore
from log_lake.stores.ranges import RangeAnswer, RangedFile, Ranges, RequestSizes

RECORDS = 300_000


class Ranged(MemoryStore):
    """A store in memory that is read as one on a server is: by ranges, each of which is a request."""

    def __init__(self, threads: ThreadPoolExecutor, reach: RequestSizes) -> None:
        super().__init__("memory://ranged")
        self.threads, self.reach = threads, reach
        self.asked: list[tuple[str, Range]] = []

    def open_input(self, name: str, *, size: int | None = None) -> pa.NativeFile:
        if size is None:
            size = len(super().get(name) or b"")

        def fetch(asked: Range) -> RangeAnswer:
            self.asked.append((name, asked))
            data = self.get(name)
            if data is None:
                raise FileNotFoundError(name)
            return RangeAnswer(data[asked.begin : asked.end], len(data))

        return RangedFile(Ranges(fetch, name=name, size=size, threads=lambda: self.threads, reach=self.reach))

    def taken(self) -> tuple[int, int]:
        """Requests and bytes since this was asked last."""
        taken = len(self.asked), sum(end - begin for _, (begin, end) in self.asked)
        self.asked.clear()
        return taken


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as pool:
        yield pool


def content(begin: int, count: int) -> pa.Table:
    made = np.random.default_rng(begin)
    return pa.table(
        {
            "k": np.arange(begin, begin + count),
            "a": made.integers(0, 1 << 62, count),
            "b": made.random(count),
            "c": made.integers(0, 1_000, count),
        }
    )


def a_pool(
    threads: ThreadPoolExecutor, *, hole: int = 512 << 10, form: str = "parquet"
) -> tuple[Ranged, Pool]:
    store = Ranged(threads, RequestSizes(hole=hole))
    lake = Lake.create_on(store)
    return store, lake.create_pool("p", key="k", settings={"format": form})


def test_a_scan_takes_each_byte_once_in_few_requests(threads: ThreadPoolExecutor) -> None:
    store, pool = a_pool(threads)
    pool.branch().append(content(0, RECORDS))
    view = pool.at()
    (reference,) = view.references
    store.taken()
    assert view.to_table().equals(content(0, RECORDS))
    requests, size = store.taken()
    assert requests == 2  # the footer; all row groups
    assert size <= 1.02 * reference.size
    assert view.to_table().num_rows == RECORDS
    assert store.taken()[0] == 1  # the footer is known


def test_columns_are_fetched_alone_if_the_holes_are_worth_requests(threads: ThreadPoolExecutor) -> None:
    store, pool = a_pool(threads, hole=4 << 10)
    pool.branch().append(content(0, RECORDS))
    view = pool.at()
    (reference,) = view.references
    store.taken()
    expected = content(0, RECORDS).select(["c"])
    assert view.to_table(columns=["c"]).equals(expected)
    _, size = store.taken()
    assert size < 0.5 * reference.size  # c and the key


@pytest.mark.parametrize("form", ["parquet", "zng", "zst"])
def test_a_point_read_is_one_request_once_the_footer_is_known(threads: ThreadPoolExecutor, form: str) -> None:
    store, pool = a_pool(threads, form=form)
    pool.branch().append(content(0, 60_000))
    view = pool.at()
    store.taken()
    assert view.get(30_000).num_rows == 1
    cold, _ = store.taken()
    assert view.get(59_000).to_pylist() == content(0, 60_000).slice(59_000, 1).to_pylist()
    warm, size = store.taken()
    assert cold <= 3
    assert warm == 1
    assert size <= 300_000 + view.references[0].size // 7


def test_a_small_object_is_one_request(threads: ThreadPoolExecutor) -> None:
    store, pool = a_pool(threads)
    for begin in range(10):
        pool.branch().append(content(begin, 1_000))
    view = pool.at()
    store.taken()
    assert view.get(500).num_rows == 10
    assert store.taken()[0] == 10


def test_a_small_checkpoint_is_one_request(threads: ThreadPoolExecutor) -> None:
    store, pool = a_pool(threads)
    for begin in range(10):
        pool.branch().append(content(begin, 1_000))
    lake = Lake.open_on(store)
    written, _ = write_checkpoint(lake, "p", now=time.time())
    assert written
    store.taken()
    assert len(Lake.open_on(store).pool("p").at().references) == 10
    assert [name for name, _ in store.asked if name.endswith(".checkpoint")] == [store.asked[0][0]]


def requests_of_one_range(threads: ThreadPoolExecutor, objects: int, *, deep: int) -> tuple[int, int]:
    """Requests for data objects of a process that reads the range 2 of a pool of so many ranges, of an object for
    each load, and all its other requests for stored ranges of bytes."""
    store, pool = a_pool(threads)
    for begin in range(0, 1_000 * objects, 1_000):
        for _ in range(deep if begin == 2_000 else 1):
            pool.branch().append(content(begin, 1_000))
    pool.split(at=list(range(1_000, 1_000 * objects, 1_000)))
    write_checkpoint(Lake.open_on(store), "p", now=time.time())
    store.taken()
    view = Lake.open_on(store).pool("p").at()
    low, high = view.points[1:3]
    assert sum(t.num_rows for t in view.scan(ranges=[KeyRange(low, high)])) == 1_000 * deep
    data = sum(not name.endswith(".checkpoint") for name, _ in store.asked)
    return data, len(store.asked) - data


def test_the_requests_for_one_range_are_those_of_its_objects_whatever_the_pool_has(
    threads: ThreadPoolExecutor,
) -> None:
    assert requests_of_one_range(threads, 6, deep=1) == (1, 1)
    assert requests_of_one_range(threads, 24, deep=1) == (1, 1)
    assert requests_of_one_range(threads, 12, deep=5) == (5, 1)


def test_an_object_of_another_size_is_corrupt_and_a_missing_one_is_missing(
    threads: ThreadPoolExecutor,
) -> None:
    store, pool = a_pool(threads)
    pool.branch().append(content(0, 60_000))
    view = pool.at()
    assert view.to_table().num_rows == 60_000  # the footer is known from now on
    name = view.object_name(view.references[0])
    data = store.get(name) or b""
    for changed in (data + b"x", data[:-1]):
        store.put(name, changed)
        with pytest.raises(Corrupt):
            view.to_table()
        with pytest.raises(Corrupt):
            Lake.open_on(store).pool("p").at().to_table()
    store.delete(name)
    with pytest.raises(ObjectMissing, match="restore it, or take it out"):
        view.to_table()
    with pytest.raises(ObjectMissing, match="restore it, or take it out"):
        Lake.open_on(store).pool("p").at().to_table()
