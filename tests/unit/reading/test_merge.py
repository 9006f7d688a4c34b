"""Merging streams: how many turns it takes, and what is open at once; the order itself is a property test."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pyarrow as pa

from lake_core.keys import PoolKey
from log_lake.columns.keys import key_at
from log_lake.objects.merge import ClosedStream, merge

KEY = PoolKey.parse("k")


def stream(*keys: int, seq: int, opened: list[int] | None = None) -> ClosedStream:
    """One batch of records, that say their sequence."""
    table = pa.table({"k": list(keys), "seq": [seq] * len(keys)})

    def batches() -> Iterator[pa.Table]:
        if opened is not None:
            opened.append(seq)
        yield table

    return ClosedStream(key_at(table, 0, KEY), seq, 0, batches)


def test_streams_that_begin_at_one_key_are_merged_in_one_turn() -> None:
    """In a turn each, the work would grow as the square of their number: minutes for thousands of small loads."""
    windows = list(merge([stream(1, 2, 3, seq=n) for n in range(100)], key=KEY))
    assert [window.num_rows for window in windows] == [300]
    assert windows[0]["k"].to_pylist() == [1] * 100 + [2] * 100 + [3] * 100
    assert windows[0]["seq"].to_pylist() == [*range(100)] * 3


def test_streams_are_topped_up_together_and_not_one_in_each_turn() -> None:
    """A window for each batch of each stream is 80 here: so many times all the others would be cut."""

    def batches(seq: int) -> Iterator[pa.Table]:
        for n in range(4):
            yield pa.table({"k": [100 * n + seq + 20 * i for i in range(5)], "seq": [seq] * 5})

    low = key_at(pa.table({"k": [0]}), 0, KEY)
    windows = list(merge([ClosedStream(low, n, 0, partial(batches, n)) for n in range(20)], key=KEY))
    found = [k for window in windows for k in window["k"].to_pylist()]
    assert found == list(range(400))
    assert len(windows) < 20


def test_a_stream_is_opened_when_the_merge_reaches_it() -> None:
    opened: list[int] = []
    found = merge([stream(1, 5, seq=1, opened=opened), stream(5, 9, seq=2, opened=opened)], key=KEY)
    assert next(found)["k"].to_pylist() == [1, 5]
    assert opened == [1]
    assert next(found)["k"].to_pylist() == [5, 9]
    assert opened == [1, 2]


def test_who_leaves_early_waits_only_for_what_is_being_read() -> None:
    leaves = threading.Event()
    begun: list[int] = []

    class Readers(ThreadPoolExecutor):
        def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
            super().shutdown(wait=False, cancel_futures=cancel_futures)
            leaves.set()
            super().shutdown(wait=wait)

    def batches(seq: int) -> Iterator[pa.Table]:
        for n in (0, 1000, 2000):
            if n == 2000:
                begun.append(seq)
                leaves.wait()
            yield pa.table({"k": [n + 10 * seq + i for i in (0, 1, 2, 1000)], "seq": [seq] * 4})

    low = key_at(pa.table({"k": [0]}), 0, KEY)
    streams = [ClosedStream(low, n, 0, partial(batches, n)) for n in range(10)]
    windows = merge([*streams, stream(500, seq=10)], key=KEY, threads=lambda: Readers(1))
    assert next(windows).num_rows == 30
    windows.close()  # while all ten have their third batch wanted, and the one reader waits in the first of them
    assert begun in ([], [0])
