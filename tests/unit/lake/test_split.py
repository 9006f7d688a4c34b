"""Splitting a pool from Python: what points are, which writers meet, and that no answer depends on them."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

from lake_core.errors import InvalidInput, NotFound
from lake_core.keys import KeyRange
from lake_core.keys.encoding import encode_value
from log_lake.compaction.ranges import ALWAYS_CUT, SMALLEST_CUT, apart, cuts, figures, places
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.lake.ranges import PoolRange
from log_lake.rewriting.compaction import begin_compaction, compact
from log_lake.stores.memory import MemoryStore
from tests.support.pools import a_pool, compact_all


def wide(n: int = 3, keys: int = 1000) -> Pool:
    return a_pool(*(pa.table({"k": list(range(keys)), "n": [load] * keys}) for load in range(n)))


def bounds(pool: Pool) -> list[tuple[object, object]]:
    return [(one.low, one.high) for one in pool.ranges()]


def test_points_are_typed_values() -> None:
    pool = a_pool(pa.table({"k": [dt.datetime(2026, 1, day, tzinfo=dt.UTC) for day in (1, 9)]}))
    pool.split(at=[dt.datetime(2026, 1, 5, tzinfo=dt.UTC), "2026-01-03"])
    assert bounds(pool)[1] == ("2026-01-03T00:00:00Z", "2026-01-05T00:00:00Z")
    with pytest.raises(InvalidInput, match="the field is a timestamp"):
        pool.split(at=[5])


def test_one_of_two_ways_is_named() -> None:
    pool = wide(1)
    for wrong in ({}, {"at": [1], "into": 2}):
        with pytest.raises(InvalidInput, match="split: name the keys to split at, or into how many ranges"):
            pool.split(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", ["abc", 5, ["a", ""]], ids=repr)
def test_points_are_a_list_of_keys(wrong: object) -> None:
    """In a script an empty text is a variable that was not set."""
    pool = a_pool(pa.table({"k": ["a"]}))
    with pytest.raises(InvalidInput, match="write a list of keys"):
        pool.split(at=wrong)  # type: ignore[arg-type]


def test_two_processes_that_split_at_once_agree() -> None:
    store = MemoryStore()
    one = a_pool(pa.table({"k": [1, 2, 3]}), store=store)
    other = Lake.open_on(store).pool("p")
    other.at()
    first = one.split(at=[2, 3])
    second = other.split(at=[2])
    third = other.split(at=[2, 1])
    assert (first.version, second.version, third.version) == (2, None, 3)
    assert (second.points, second.ranges, third.points, third.ranges) == (0, 3, 1, 4)
    assert one.unsplit().ranges == 1


def test_points_belong_to_no_branch() -> None:
    pool = wide(1)
    pool.create_branch("dev")
    pool.tag("before")
    pool.split(at=[500])
    tip = pool.at("dev").held.tip
    assert (pool.at("dev").points, pool.at("before").points) == (pool.at().points, ())
    pool.create_branch("old", at="before")
    assert (len(pool.ranges("old")), pool.at("dev").held.tip) == (2, tip)
    feed = pool.feed()
    assert list(feed.between(1, feed.newest())) == [], "a stream of the branch does not see them"
    with pytest.raises(NotFound):
        pool.ranges("none")


def test_a_pool_is_split_by_the_samples_of_objects_without_reading_records() -> None:
    pool = a_pool(pa.table({"k": list(range(10_000)), "v": ["x" * 50] * 10_000}))
    pool.split(into=8)
    figures = pool.ranges()
    assert len(figures) == 8
    assert [one.high for one in figures][:-1] == pytest.approx([1250 * n for n in range(1, 8)], abs=160)


def test_keys_that_cannot_be_divided_are_left_in_one_range() -> None:
    pool = a_pool(pa.table({"k": [7] * 100}))
    assert pool.split(into=4).version is None
    assert bounds(pool) == [(None, None)]


def test_what_lies_in_a_range() -> None:
    pool = wide(2, 100)
    pool.split(at=[50])
    pool.branch().append(pa.table({"k": [60]}))
    low, high = pool.ranges()
    assert (low.records, low.objects, low.straddling, low.depth, low.runs) == (100, 2, 2, 2, 2)
    assert (high.records, high.objects, high.straddling, high.depth, high.runs) == (101, 3, 2, 3, 3)
    assert low.size + high.size == pool.at().snapshot.size
    compact_all(pool)
    low, high = pool.ranges()
    assert low == PoolRange(None, 50, 100, low.size, 1, 0, 1, 1, low.compacted)
    assert isinstance(high.compacted, dt.datetime)
    assert high.records == 101


def test_a_job_cuts_its_outputs_at_the_points_and_by_size() -> None:
    pool = wide()
    before = pool.at().to_table()
    pool.split(at=[100, 900, 5000])
    work = begin_compaction(pool.branch(), pool.at().references, outputs=9, message="")
    assert len(work.pieces) == 9
    assert {p.low for p in work.pieces[1:]} >= {encode_value(100), encode_value(900)}
    compact(pool.branch(), pool.at().references, outputs=9)
    assert all(len(places(r, pool.at().points)) == 1 for r in pool.at().references)
    assert pool.at().to_table() == before


def test_a_small_job_is_not_cut_at_every_point_of_many() -> None:
    points = [encode_value(n) for n in range(1, 1001)]
    everything = KeyRange(encode_value(-5), encode_value(2000))
    small = cuts(points, everything, size=1)
    assert (len(small), small[:2]) == (62, [encode_value(16), encode_value(32)])
    assert len(small) < ALWAYS_CUT
    larger = cuts(points, everything, size=300 * SMALLEST_CUT)
    assert set(small) < set(larger) < set(points), "jobs of any size cut at the same keys"
    assert cuts(points, everything, size=1001 * SMALLEST_CUT) == points
    assert cuts(points, KeyRange(encode_value(5), encode_value(8)), size=1) == [
        encode_value(6),
        encode_value(7),
    ]
    assert cuts(points, KeyRange(encode_value(5)), size=1 << 60)[0] == encode_value(6)


def test_a_reference_that_ends_at_a_point_lies_below_it() -> None:
    (reference,) = a_pool(pa.table({"k": [3, 5]})).at().references
    for points, numbers in (
        ([], [0]),
        ([reference.low], [1]),
        ([reference.high], [0]),
        ([encode_value(4)], [0, 1]),
        ([encode_value(1), encode_value(4), encode_value(5), encode_value(9)], [1, 2, 3]),
    ):
        assert list(places(reference, points)) == numbers
        assert [len(apart([reference], points))] == [1]
        assert [one.objects for one in figures([reference], points)] == [
            int(n in numbers) for n in range(len(points) + 1)
        ]


def test_a_point_that_samples_chose_can_be_named() -> None:
    pool = Lake.create_on(MemoryStore()).create_pool("p", key="k")
    for first in (0, 100):
        pool.branch().append(pa.table({"k": [f"u{n:04d}" for n in range(first, first + 100)]}))
    assert pool.split(into=2).points == 1
    (low,) = [one.low for one in pool.ranges() if one.low is not None]
    assert pool.split(at=[low]).version is None, "it is there already"
    assert pool.unsplit(at=[low]).ranges == 1
