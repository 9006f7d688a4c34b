"""Scans of a list of ranges, and by parts at the same time: the records, the requests, the end."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from itertools import count

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lake_core.errors import InvalidInput, LakeError, Unavailable
from lake_core.keys import KeyRange, PoolKey
from lake_core.keys.encoding import encode_value
from lake_core.keys.ranges import parts_within, united
from log_lake.lake.pool import Pool
from log_lake.reading.limits import ScanLimits
from log_lake.reading.parts import side_by_side
from log_lake.rewriting.compaction import compact
from log_lake.texts.rangelines import ranges_of_lines
from tests.support.pools import a_pool
from tests.support.stores import ScriptedStore, unavailable

KEYS = 60


def span(low: int, high: int) -> KeyRange:
    return KeyRange(encode_value(low), encode_value(high))


def some_pool(chance: random.Random, kind: str, *, store: ScriptedStore | None = None) -> Pool:
    """Loads of random keys, a delete, and a compaction of some of them; objects of many sizes and row groups."""
    limits = ScanLimits(max_tiny_bytes=chance.choice((0, 64 << 10)), min_bulk_ratio=chance.choice((1, 8)))
    aggregates = {"n": "sum"} if kind == "aggregate" else None
    pool = a_pool(kind=kind, aggregates=aggregates, limits=limits, store=store)
    for number in range(6):
        keys = [chance.randrange(KEYS) for _ in range(chance.choice((2, 30)))]
        pool.branch().append(pa.table({"k": keys, "n": [number] * len(keys)}))
        if number == 2:
            compact(pool.branch(), pool.at().references)
            pool.branch().delete(where="k = 7")
    pool.split(at=[20, 40])
    return pool


@pytest.mark.parametrize("kind", ["append", "upsert", "aggregate"])
@pytest.mark.parametrize("seed", range(4))
def test_a_list_of_ranges_gives_the_records_of_their_keys_once_and_in_order(kind: str, seed: int) -> None:
    chance = random.Random(seed)
    view = some_pool(chance, kind).at()
    whole = view.to_table()
    for ranges_wanted in (1, 3, 12, 80):
        lows = [chance.randrange(KEYS) for _ in range(ranges_wanted)]
        ranges = [span(low, low + chance.randint(1, 9)) for low in lows]
        wanted = [any(r.contains(encode_value(k)) for r in ranges) for k in whole["k"].to_pylist()]
        expected = whole.filter(pa.array(wanted))
        for jobs in (1, 3):
            tables = list(view.scan(ranges=ranges, jobs=jobs))
            assert pa.concat_tables([whole.slice(0, 0), *tables]).equals(expected)
        limited = pa.concat_tables([whole.slice(0, 0), *view.scan(ranges=ranges, where="n > 2", limit=3)])
        assert limited.equals(expected.filter(pc.greater(expected["n"], 2)).slice(0, 3))


@pytest.mark.parametrize("jobs", [2, 5])
@pytest.mark.parametrize("seed", range(4))
def test_a_scan_by_parts_is_the_scan(jobs: int, seed: int) -> None:
    view = some_pool(random.Random(seed), "append").at()
    tables = list(view.scan(jobs=jobs))
    assert pa.concat_tables(tables).equals(view.to_table())


def test_each_object_is_opened_once_and_none_outside_of_the_ranges() -> None:
    store = ScriptedStore()
    pool = a_pool(*(pa.table({"k": range(n, n + 1_000)}) for n in range(0, 10_000, 1_000)), store=store)
    view = pool.at()
    store.requests.clear()
    ranges = [span(low, low + 3) for low in (*range(0, 1_000, 50), 4_998, 5_000, 10, 11)]
    assert sum(t.num_rows for t in view.scan(ranges=ranges)) == 20 * 3 + 5 + 4
    assert store.asked("open_input") == 3
    store.requests.clear()
    assert sum(t.num_rows for t in view.scan(ranges=[span(10, 13), span(9_500, 9_503)], jobs=2)) == 6
    assert store.asked("open_input") <= 4  # of two objects, for their footers and records
    store.requests.clear()
    assert list(view.scan(ranges=[])) == []
    assert [t.num_rows for t in view.scan(limit=0, jobs=2)] == []
    assert store.asked("open_input") == 0


def test_ranges_are_united() -> None:
    assert united([span(5, 9), span(1, 3), span(3, 5), span(20, 30), span(22, 23)]) == (
        span(1, 9),
        span(20, 30),
    )
    assert united([KeyRange(encode_value(4)), span(1, 2), span(5, 6)]) == (
        span(1, 2),
        KeyRange(encode_value(4)),
    )
    assert united([span(4, 4)]) == ()
    spans = united([span(1, 3), span(5, 9), span(20, 30)])
    assert parts_within(spans, span(2, 21)) == (span(2, 3), span(5, 9), span(20, 21))
    assert parts_within(spans, span(9, 20)) == ()
    assert parts_within(spans, KeyRange()) == spans


def test_an_empty_range_and_no_jobs_are_refused() -> None:
    view = a_pool(pa.table({"k": [1]})).at()
    with pytest.raises(InvalidInput, match="is empty"):
        view.plan(ranges=[span(3, 3)])
    with pytest.raises(InvalidInput, match="jobs=0"):
        list(view.scan(jobs=0))


# ---------------------------------------------------------------- by parts


def test_a_reader_that_ends_early_ends_the_threads() -> None:
    ended = threading.Event()

    def endless(check: Callable[[], None]) -> Iterator[pa.Table]:
        try:
            while True:
                yield pa.table({"k": [1]})
        finally:
            ended.set()

    tables = side_by_side([endless, endless, endless], at_once=2, most_bytes=64)
    assert next(tables).num_rows == 1
    tables.close()
    assert ended.is_set()
    assert not [thread for thread in threading.enumerate() if thread.name == "scan"]


def test_a_part_whose_condition_leaves_nothing_ends_with_its_reader() -> None:
    begun, ended = threading.Event(), threading.Event()

    def nothing(check: Callable[[], None]) -> Iterator[pa.Table]:
        begun.set()
        try:
            for _ in count():
                check()
        finally:
            ended.set()
        yield pa.table({"k": [2]})

    def one(check: Callable[[], None]) -> Iterator[pa.Table]:
        begun.wait()
        yield pa.table({"k": [1]})

    reading = side_by_side([one, nothing], at_once=2, most_bytes=64)
    assert next(reading)["k"].to_pylist() == [1]
    reading.close()
    assert ended.is_set()
    checked = list[int]()
    view = a_pool(pa.table({"k": [1, 2], "n": [1, 9]})).at()
    assert not list(view._scanned(view.plan(where="n = 5"), lambda: checked.append(1)))
    assert checked


def test_a_process_that_leaves_a_scan_by_parts_ends() -> None:
    program = """
import pyarrow as pa
from log_lake.reading.parts import side_by_side

def endless(*check):
    while True:
        yield pa.table({"k": [1]})

tables = side_by_side([endless, endless], at_once=2, most_bytes=8)
print(next(tables).num_rows, flush=True)
raise SystemExit(3)
"""
    ended = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=600
    )
    assert (ended.returncode, ended.stdout) == (3, "1\n"), ended.stderr


def test_a_part_holds_a_bounded_number_of_bytes_ahead() -> None:
    given: list[int] = []

    def counted(check: Callable[[], None]) -> Iterator[pa.Table]:
        for number in range(100):
            given.append(number)
            yield pa.table({"k": [number]})

    tables = side_by_side([lambda check: iter(()), counted], at_once=2, most_bytes=8 * 10)
    numbers = [next(tables)["k"][0].as_py() for _ in range(3)]
    assert numbers == [0, 1, 2]
    assert len(given) <= 3 + 10 + 1
    assert [t["k"][0].as_py() for t in tables] == list(range(3, 100))


def test_the_error_of_a_part_comes_where_its_records_would() -> None:
    failed = threading.Event()

    def first(check: Callable[[], None]) -> Iterator[pa.Table]:
        failed.wait()
        yield pa.table({"k": [1]})

    def second(check: Callable[[], None]) -> Iterator[pa.Table]:
        yield pa.table({"k": [2]})
        failed.set()
        raise Unavailable("gone")

    tables = side_by_side([first, second], at_once=2, most_bytes=64)
    assert [next(tables)["k"].to_pylist() for _ in range(2)] == [[1], [2]]
    with pytest.raises(Unavailable, match="gone"):
        next(tables)


def test_the_error_of_a_store_ends_a_scan_by_parts() -> None:
    store = ScriptedStore()
    pool = some_pool(random.Random(1), "append", store=store)
    view = pool.at()
    store.on("open_input", "", instead=unavailable, times=1_000)
    with pytest.raises(LakeError):
        list(view.scan(jobs=3))


# ---------------------------------------------------------------- the file


def test_a_file_of_ranges_has_one_a_line() -> None:
    lines = ['{"from": 5, "to": 9}', "", '{"key": 3}', '{"from": "7"}']
    ranges = ranges_of_lines(lines, PoolKey.parse("k"), {"k": "number"}, name="some.jsonl")
    assert [r.low for r in ranges] == [encode_value(5), encode_value(3), encode_value(7)]
    assert ranges[0] == span(5, 9)
    assert ranges[2].high is None


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("5", "is no range"),
        ('{"from": 5, "until": 9}', "is no range"),
        ("from 5", "is not JSON"),
        pytest.param("[" * 100_000, "is not JSON", id="deep"),
        pytest.param('{"key": ' + "[" * 100_000, "is not JSON", id="a deep key"),
        ('{"from": 9, "to": 5}', "is empty"),
        ('{"from": "x"}', "the field is a number"),
        ('{"key": [1, 2]}', "has 2 values"),
        ('{"key": []}', '"key" has no value'),
        ('{"from": []}', '"from" has no value'),
        ('{"to": null}', '"to" is null; leave it out'),
    ],
)
def test_a_line_that_is_no_range_is_named(line: str, why: str) -> None:
    with pytest.raises(InvalidInput, match=r"^some.jsonl, line 2: .*") as error:
        ranges_of_lines(['{"key": 1}', line], PoolKey.parse("k"), {"k": "number"}, name="some.jsonl")
    assert why in str(error.value)
