"""The split agent: which ranges it splits, by which keys, and which it joins."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lake_core.errors import InvalidInput
from lake_core.history import Reference
from lake_core.keys import KeyRange
from lake_core.keys.encoding import encode_value
from lake_core.keys.ranges import EVERYTHING
from log_lake.agents.split.plan import JOINED, LEAST, MAX_SPLITS, cuts_of, plan_ranges
from log_lake.agents.split.policy import RangePolicy, policy_of
from log_lake.agents.split.run import split_pool
from log_lake.compaction.ranges import ranges_of
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.reading.ranges import WeightedSample
from log_lake.settings import Settings
from log_lake.stores.memory import MemoryStore
from spark_apps.command import run_agent
from tests.support.pools import compact_all
from tests.support.records import an_id

POLICY = RangePolicy(size=0, records=100)


def ref(low: int, high: int, records: int) -> Reference:
    return Reference(
        object=an_id(low * 1000 + high),
        low=encode_value(low),
        high=encode_value(high),
        seq=1,
        ordinal=0,
        records=records,
        size=10 * records,
        schema="s",
    )


def in_ranges(*held: int) -> tuple[list[Reference], list[bytes]]:
    """References with so many records in the ranges between the points 10, 20, ..., and these points."""
    references = [ref(10 * n + 1, 10 * n + 9, records) for n, records in enumerate(held) if records]
    return references, [encode_value(10 * n) for n in range(1, len(held))]


def joins(*held: int) -> list[int]:
    """The numbers of the points that are removed."""
    references, points = in_ranges(*held)
    return [points.index(point) for point in plan_ranges(references, points, POLICY).joins]


def splits(*held: int, policy: RangePolicy = POLICY) -> list[int]:
    """The numbers of the ranges that are split."""
    references, points = in_ranges(*held)
    ranges = ranges_of(points)
    return [ranges.index(one) for one, _ in plan_ranges(references, points, policy).splits]


def test_without_a_policy_ranges_may_be_of_any_size() -> None:
    assert policy_of(Settings({})).is_off
    assert splits(1000, 1, 1, policy=policy_of(Settings({}))) == []


def test_a_range_above_the_policy_is_split() -> None:
    assert splits(100, 101, 3, 500) == [1, 3]
    assert splits(60, 101, policy=RangePolicy(size=1000, records=0)) == [1]
    assert splits(60, 50, policy=RangePolicy(size=550, records=100)) == [0], "the nearer limit counts"


def test_a_small_range_is_joined_with_a_neighbour_if_both_are_at_most_half() -> None:
    assert joins(90, 24, 26, 90) == [1]
    assert joins(90, 25, 25, 90) == [], "neither is below a quarter"
    assert joins(90, 20, 31, 90) == []
    assert joins(100, 0, 0, 0, 0) == [1, 2, 3]
    assert joins(100, 20, 20, 20, 20) == [1, 3], "what is joined may be joined again, up to a half"
    assert joins(0, 100, 0) == []


def test_a_pool_that_holds_less_than_a_full_range_keeps_its_points() -> None:
    assert joins(0, 0, 0, 99) == []
    assert joins(0, 0, 0, 100) == [0, 1]


def test_a_straddling_reference_counts_with_an_equal_share() -> None:
    references, points = [ref(0, 40, 240)], [encode_value(20)]
    assert len(plan_ranges(references, points, POLICY).splits) == 2
    assert not plan_ranges([ref(0, 40, 200)], points, POLICY).has_work


def test_a_plan_is_bounded() -> None:
    found = plan_ranges(*in_ranges(*[101] * (MAX_SPLITS + 5), 900), POLICY)
    assert len(found.splits) == MAX_SPLITS
    assert found.splits[-1][1] == 9.0, "the largest come first"


def sample(*keys: int, weight: float) -> WeightedSample:
    """A run with equally many records between each two of these keys."""
    steps = [weight / (len(keys) - 1)] * (len(keys) - 1)
    return WeightedSample(tuple(map(encode_value, keys)), tuple(steps))


def test_a_range_is_cut_into_pieces_of_about_equal_weight() -> None:
    run = sample(*range(0, 101, 2), weight=3.2)
    assert cuts_of([run], EVERYTHING) == tuple(map(encode_value, (26, 50, 74)))
    assert cuts_of([run], KeyRange(encode_value(50))) == (encode_value(76),)
    assert cuts_of([sample(*range(0, 101, 2), weight=1.0)], EVERYTHING) == ()


def test_no_piece_is_below_a_quarter() -> None:
    heavy = WeightedSample((encode_value(0), encode_value(1), encode_value(2)), (0.2, 1.8))
    assert cuts_of([heavy], EVERYTHING) == ()
    assert cuts_of([sample(5, 6, weight=9.0)], EVERYTHING) == (), "records of one key cannot be divided"


@given(st.lists(st.floats(0.01, 3.0), min_size=1, max_size=30))
def test_pieces_of_a_split_are_neither_split_nor_joined_again(weights: list[float]) -> None:
    run = WeightedSample(tuple(encode_value(n) for n in range(len(weights) + 1)), tuple(weights))
    cuts = cuts_of([run], EVERYTHING)
    pieces = [sum(sum(s.weights) for s in [run.within(piece)]) for piece in ranges_of(cuts)]
    assert len(cuts) == 0 or min(pieces) >= LEAST - 1e-9
    assert all(a + b > JOINED or min(a, b) >= LEAST for a, b in pairwise(pieces))


def a_lake(**settings: str) -> tuple[Lake, Pool]:
    lake = Lake.create_on(MemoryStore())
    dotted = {name.replace("_", "."): value for name, value in settings.items()}
    return lake, lake.create_pool("p", key="k", settings=dotted)


def load(pool: Pool, keys: range) -> None:
    pool.branch().append(pa.table({"k": list(keys), "v": ["x" * 20] * len(keys)}))


def run(lake: Lake, **asked: Any) -> Any:
    return run_agent("split", {"pools": ["p"], **asked}, lake=lake)


def test_a_pool_grows_and_shrinks() -> None:
    _, pool = a_lake(range_records="1000")
    load(pool, range(3500))
    before = pool.at().to_table()
    assert split_pool(pool).added == 3
    assert [one.records for one in pool.ranges()] == [875] * 4
    assert split_pool(pool).version is None
    compact_all(pool)
    assert sorted(one.records for one in pool.ranges()) == pytest.approx([875] * 4, abs=120)
    assert split_pool(pool).version is None
    assert pool.at().to_table() == before
    load(pool, range(10_000, 13_000))
    assert split_pool(pool).added >= 2
    pool.branch().delete(where="k < 10000")
    compact_all(pool)
    assert split_pool(pool).removed >= 2
    assert split_pool(pool).version is None
    assert pool.at().to_table().num_rows == 3000


def test_a_dry_run_changes_nothing_and_a_run_reports() -> None:
    lake, pool = a_lake(range_bytes="2KB")
    load(pool, range(2000))
    version = pool.at().version
    run(lake, dry_run=True)
    assert pool.at().version == version
    run(lake)
    assert pool.at().version == version + 1
    message = next(iter(pool.log()))[1].message
    assert message.startswith("split at ")
    run(lake)
    assert pool.at().version == version + 1


def test_a_pool_that_was_split_before_its_first_load_stays_so() -> None:
    lake, pool = a_lake(range_records="1000", type_k="bigint")
    pool.split(at=[10, 20, 30])
    run(lake)
    load(pool, range(100))
    run(lake)
    assert len(pool.ranges()) == 4


def test_a_setting_is_a_size_or_a_number() -> None:
    for wrong in ({"range.bytes": "many"}, {"range.records": "-1"}):
        with pytest.raises(InvalidInput):
            Lake.create_on(MemoryStore()).create_pool("p", key="k", settings=wrong)
