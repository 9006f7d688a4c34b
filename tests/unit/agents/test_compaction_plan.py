"""What compaction rewrites, strategy by strategy.

That plans are bounded, disjoint, independent of order and come to rest: tests/properties/test_compaction_plans.py.
What they cost over months: tests/simulation/compaction.
"""

from __future__ import annotations

import datetime as dt
import itertools
from typing import Any

import msgspec
import pytest

from lake_core.errors import InvalidInput
from lake_core.history import Reference
from lake_core.history.between import Ages
from lake_core.ids import IdSource
from lake_core.keys import PoolKey
from lake_core.keys.encoding import Instant, encode_key
from lake_core.phrases import choices
from log_lake.agents.compact import plan_compaction, policy_of
from log_lake.compaction import CompactionPlan, CompactionPolicy
from log_lake.compaction.planner import Planner
from log_lake.compaction.strategies import names
from log_lake.settings import Settings

HOUR = 3600
BEGIN = 1_700_000_000 // HOUR * HOUR
NOW = BEGIN + 100 * HOUR
TARGET = 100
_numbers = itertools.count(1)


def ref(
    low: Any,
    high: Any,
    size: int = 50,
    *,
    seq: int,
    oldest: int | None = None,
    made: float = BEGIN,
    key: str = "k",
    ordinal: int = 0,
) -> Reference:
    fields = PoolKey.parse(key)
    bounds = sorted(encode_key((bound,), fields) for bound in (low, high))
    return Reference(
        object=IdSource(lambda: made, lambda n: next(_numbers).to_bytes(n, "big")).new(),
        low=bounds[0],
        high=bounds[1],
        seq=seq,
        ordinal=ordinal,
        records=size,
        size=size,
        schema="s",
        oldest=oldest,
    )


def plan(
    references: list[Reference], *, kind: str = "append", key: str = "k", now: float = NOW, **policy: Any
) -> CompactionPlan:
    chosen = {
        "strategy": "size_ratio",
        "target_size": TARGET,
        "max_inputs": 64,
        "max_bytes": 100_000,
        "depth": 8,
        "ratio": 2.0,
        "window": float(HOUR),
    } | policy
    return plan_compaction(references, CompactionPolicy(**chosen), key=PoolKey.parse(key), kind=kind, now=now)


def inputs(found: CompactionPlan) -> list[list[int]]:
    """For each job the sequences of its inputs, from old to new."""
    return [sorted(r.seq for r in job.inputs) for job in found.jobs]


def wide(*sizes: int) -> list[Reference]:
    """Loads that all lie on the same keys, from old to new."""
    return [ref(0, 100, size, seq=n) for n, size in enumerate(sizes, 1)]


# ---------------------------------------------------------------- the plan


def test_an_empty_pool_has_no_jobs() -> None:
    found = plan([])
    assert (found.jobs, found.depth, found.depth_after, found.write_amplification) == ((), 0, 0, 0.0)


def test_a_plan_says_what_it_costs_and_what_it_gains() -> None:
    found = plan([*wide(50, 50, 50, 50), ref(200, 300, 200, seq=9)])
    (job,) = found.jobs
    assert (job.depth, job.size, job.records, job.outputs) == (4, 200, 200, 2)
    assert job.why == "4 runs of like sizes"
    assert (found.references, found.size, found.depth, found.depth_after) == (5, 400, 4, 1)
    assert (found.rewritten, found.write_amplification) == (200, 0.5)


def test_ranges_that_touch_do_not_overlap() -> None:
    found = plan([ref(n, n + 1, seq=n + 1) for n in range(5)], strategy="full")
    assert (found.jobs, found.depth) == ((), 1)


# ---------------------------------------------------------------- size_ratio


def test_three_loads_wait_for_a_fourth() -> None:
    assert inputs(plan(wide(50, 50, 50))) == []
    assert inputs(plan(wide(50, 50, 50, 50))) == [[1, 2, 3, 4]]


def test_a_large_run_is_left_alone_until_newer_ones_hold_as_much() -> None:
    assert inputs(plan(wide(1000, 50, 50, 50, 50))) == [[2, 3, 4, 5]]
    assert inputs(plan(wide(1000, 300, 300, 300, 100))) == [[1, 2, 3, 4, 5]]


def test_the_ratio_says_how_much_is_like() -> None:
    assert inputs(plan(wide(100, 60, 40, 30), ratio=2.0)) == [[1, 2, 3, 4]]
    assert inputs(plan(wide(100, 60, 40, 30), ratio=2.5)) == []


def test_only_neighbours_in_age_are_like() -> None:
    assert inputs(plan(wide(50, 50, 9000, 50, 50))) == []


def test_a_run_of_many_objects_counts_as_one() -> None:
    run = [ref(10 * n, 10 * n + 10, 100, seq=1, oldest=0, ordinal=n) for n in range(10)]
    small = [ref(0, 100, 50, seq=n) for n in range(2, 6)]
    assert inputs(plan([*run, *small])) == [[2, 3, 4, 5]]


def test_what_is_too_deep_is_merged_though_sizes_are_not_alike() -> None:
    doubling = [2**n for n in range(9, 0, -1)]
    assert inputs(plan(wide(*doubling), depth=9)) == []
    found = plan(wide(*doubling), depth=8)
    assert (inputs(found), found.depth_after) == ([[8, 9]], 8)
    assert found.jobs[0].why == "deeper than 8"


def test_only_what_overlaps_is_rewritten() -> None:
    left = [ref(0, 10, seq=n) for n in range(1, 5)]
    right = [ref(20, 30, seq=n) for n in range(11, 15)]
    assert inputs(plan([*left, ref(10, 20, seq=9), *right])) == [[1, 2, 3, 4], [11, 12, 13, 14]]


# ---------------------------------------------------------------- small neighbours


def small(count: int, size: int = 10) -> list[Reference]:
    return [ref(10 * n, 10 * n + 9, size, seq=n + 1) for n in range(count)]


def test_small_neighbours_are_joined_when_there_are_four() -> None:
    assert inputs(plan(small(3))) == []
    found = plan(small(4))
    assert (inputs(found), found.jobs[0].why, found.jobs[0].outputs) == (
        [[1, 2, 3, 4]],
        "small neighbours",
        1,
    )


def test_a_stretch_of_small_neighbours_ends_where_it_makes_an_object() -> None:
    assert [len(job.inputs) for job in plan(small(12, 24)).jobs] == [5, 5]


def test_a_stretch_of_small_neighbours_ends_at_what_a_job_may_take() -> None:
    assert [len(job.inputs) for job in plan(small(12, 1), max_inputs=5).jobs] == [5, 5]
    assert [len(job.inputs) for job in plan(small(12, 20), max_bytes=80).jobs] == [4, 4, 4]


def test_large_objects_are_not_rewritten_for_small_neighbours() -> None:
    references = small(6)
    references[3] = ref(30, 39, 25, seq=4)
    assert inputs(plan(references)) == []


def test_nothing_is_joined_across_what_overlaps() -> None:
    references = [r for r in small(6) if r.seq not in (3, 4)]
    assert inputs(plan([*references, ref(20, 35, 50, seq=9), ref(25, 39, 50, seq=10)])) == []


def test_small_loads_that_overlap_a_little_are_joined() -> None:
    chain = [ref(10 * n, 10 * n + 12, 10, seq=n + 1) for n in range(8)]
    found = plan(chain)
    assert (inputs(found), found.depth_after) == ([list(range(1, 9))], 1)


def test_small_loads_are_joined_above_a_large_object() -> None:
    assert inputs(plan([ref(0, 99, 500, seq=1), *(ref(r, r + 5, 1, seq=9 + r) for r in range(1, 9))])) == [
        list(range(10, 18))
    ]


def test_an_object_that_holds_most_of_its_stretch_is_not_rewritten_for_what_follows() -> None:
    def sizes(*each: int) -> list[list[int]]:
        return inputs(plan([ref(10 * n, 10 * n + 9, size, seq=n + 1) for n, size in enumerate(each)]))

    assert sizes(20, 1, 1, 1) == []
    assert sizes(20, 1, 1, 1, 1) == [[2, 3, 4, 5]]
    assert sizes(1, 1, 1, 1, 20, 2, 2, 2, 2) == [[1, 2, 3, 4], [6, 7, 8, 9]]
    assert sizes(20, 8, 8, 8) == [[1, 2, 3, 4]]
    assert sizes(1, 1, 1, 8, 8, 8, 8) == [[1, 2, 3, 4, 5, 6, 7]]


def test_neighbours_that_do_not_grow_do_not_keep_others_from_being_joined() -> None:
    def sizes(*each: int, **policy: int) -> list[list[int]]:
        return inputs(
            plan([ref(10 * n, 10 * n + 9, size, seq=n + 1) for n, size in enumerate(each)], **policy)
        )

    assert sizes(4, 1, 1, 1, 1, max_inputs=4) == [[2, 3, 4, 5]]
    assert sizes(1, 1, 1, 8, 8, 8, 8, max_inputs=4) == [[4, 5, 6, 7]]
    assert sizes(1, 1, 1, 1, 1, 1, max_inputs=2) == [[1, 2], [3, 4]], (
        "what is left may be joined with the next"
    )
    assert sizes(2, 2, 2, 2, max_bytes=3) == [[1, 2]], "two always fit"


def test_neighbours_are_joined_whatever_the_ratio_of_runs_is() -> None:
    assert [len(job.inputs) for job in plan(small(12, 1), ratio=900).jobs] == [12]


def test_nothing_is_joined_across_what_another_job_takes() -> None:
    deep = [ref(50, 60, 10, seq=20 + n) for n in range(4)]
    left, right = small(3), [ref(70 + 10 * n, 79 + 10 * n, 10, seq=10 + n) for n in range(3)]
    assert inputs(plan([*left, *deep, *right])) == [[20, 21, 22, 23]]


def test_records_of_an_aggregate_pool_are_not_rewritten_for_small_neighbours_above_them() -> None:
    def of(kind: str) -> list[list[int]]:
        above = [ref(10 * n, 10 * n + 12, 10, seq=seq) for n, seq in enumerate((2, 3, 4, 9))]
        return inputs(plan([*above, ref(31, 32, 90, seq=5)], kind=kind))

    assert of("append") == [[2, 3, 4, 9]]
    assert of("aggregate") == []


def test_one_wide_record_of_an_aggregate_pool_does_not_keep_all_above_it_apart() -> None:
    above = [ref(10 * n + 1, 10 * n + 13, 1, seq=n + 1 if n < 8 else 100 + n) for n in range(16)]
    wide = ref(0, 200, 90, seq=50)
    assert inputs(plan([*above, wide], kind="aggregate")) == [list(range(1, 9)), list(range(108, 116))]


# ---------------------------------------------------------------- depth


def test_depth_leaves_alone_what_is_not_too_deep() -> None:
    assert inputs(plan(wide(*[50] * 8), strategy="depth")) == []


def test_depth_merges_the_fewest_bytes_of_those_that_are_worth_it() -> None:
    found = plan(wide(100, 100, 50, 60, 400, 400), strategy="depth", depth=4)
    assert (inputs(found), found.depth_after) == ([[2, 3, 4]], 4)


def test_depth_does_not_merge_small_runs_into_the_same_large_one_again_and_again() -> None:
    found = plan(wide(1000, 40, 40, 40, 600, 8), strategy="depth", depth=5)
    assert inputs(found) == [[2, 3]]


def test_depth_merges_what_is_most_alike_where_nothing_is_worth_it() -> None:
    found = plan(wide(1000, 100, 60, 5), strategy="depth", depth=3)
    assert inputs(found) == [[2, 3]]


def test_depth_rewrites_only_where_it_is_deep() -> None:
    deep = [ref(0, 10, seq=n) for n in range(1, 5)]
    chain = [ref(5 * n, 5 * n + 8, seq=10 + n) for n in range(2, 30)]
    found = plan([*deep, *chain], strategy="depth", depth=3)
    assert (inputs(found), found.depth_after) == ([[1, 2]], 3)


def test_regions_that_share_a_wide_reference_are_brought_down_together() -> None:
    references = [ref(0, 100, seq=1), ref(0, 10, seq=2), ref(90, 100, seq=3)]
    found = plan(references, strategy="depth", depth=1)
    assert (inputs(found), found.depth_after) == ([[1, 2, 3]], 1)


def test_what_a_job_makes_elsewhere_counts_where_it_reaches() -> None:
    left = [ref(0, 100, seq=1), *[ref(0, 10, seq=n) for n in range(2, 9)]]
    right = [ref(90, 100, seq=n) for n in range(11, 18)]
    found = plan([*left, *right], strategy="depth", depth=4)
    assert (inputs(found)[0][:1], found.depth, found.depth_after) == ([1], 8, 4)


# ---------------------------------------------------------------- full


def test_full_brings_everything_that_overlaps_into_one_run() -> None:
    references = [ref(0, 10, seq=1), ref(5, 15, seq=2), ref(20, 30, seq=3), ref(25, 28, seq=4)]
    assert inputs(plan(references, strategy="full")) == [[1, 2], [3, 4]]


def test_full_joins_small_islands_in_the_same_plan() -> None:
    references = [ref(0, 10, 5, seq=1), ref(5, 15, 5, seq=2), ref(20, 30, 5, seq=3), ref(25, 28, 5, seq=4)]
    assert inputs(plan(references, strategy="full")) == [[1, 2, 3, 4]]


# ---------------------------------------------------------------- bounds


def test_many_loads_become_jobs_of_as_many_as_one_may_take() -> None:
    found = plan(wide(*[50] * 10), strategy="full", max_inputs=4)
    assert sorted(inputs(found)) == [[1, 2], [3, 4, 5, 6], [7, 8, 9, 10]]


def test_runs_that_are_too_large_for_a_job_are_cut_by_key() -> None:
    def run(seq: int) -> list[Reference]:
        starts = [10 * n + seq for n in range(40)]
        return [ref(low, low + 10, 100, seq=seq, oldest=seq - 1) for low in starts]

    found = plan([r for seq in (2, 4, 6, 8) for r in run(seq)], max_bytes=4000)
    assert found.depth == 4
    assert [job.size for job in found.jobs] == [4000] * 4
    assert [job.depth for job in found.jobs] == [4] * 4
    assert found.depth_after == 2


def test_two_references_larger_than_a_job_are_merged_all_the_same() -> None:
    assert inputs(plan(wide(5000, 5000), strategy="full", max_bytes=10)) == [[1, 2]]


# ---------------------------------------------------------------- time_window


def windowed(references: list[Reference], **changes: Any) -> list[tuple[list[int], str]]:
    found = plan(references, strategy="time_window", **changes)
    return [(sorted(r.seq for r in job.inputs), job.why) for job in found.jobs]


def at(hour: float, *, seq: int, hours: float = 0.5, **more: Any) -> Reference:
    return ref(BEGIN + int(hour * HOUR), BEGIN + int((hour + hours) * HOUR), seq=seq, **more)


def test_a_window_that_has_ended_becomes_one_run_once() -> None:
    loads = [at(3.0, seq=1), at(3.2, seq=2)]
    assert windowed(loads) == [([1, 2], "its window has ended")]
    merged = at(3.0, seq=2, oldest=1, hours=0.9, made=BEGIN + 6 * HOUR)
    assert windowed([merged]) == []
    assert windowed([merged, at(3.1, seq=8)]) == []


def test_a_run_made_while_the_window_was_open_does_not_count() -> None:
    early = at(3.0, seq=2, oldest=1, made=BEGIN + 3 * HOUR)
    assert windowed([early, at(3.1, seq=8)]) == [([2, 8], "its window has ended")]


def test_stragglers_gather_until_they_are_too_deep() -> None:
    merged = at(3.0, seq=2, oldest=1, hours=0.9, made=BEGIN + 6 * HOUR)
    late = [at(3.1, seq=n) for n in range(10, 13)]
    assert windowed([merged, *late], depth=4) == []
    assert windowed([merged, *late], depth=3) == [([2, 10, 11, 12], "its window has ended")]


def test_a_window_is_closed_when_another_has_passed() -> None:
    loads = [at(3.0, seq=1), at(3.2, seq=2)]
    assert windowed(loads, now=BEGIN + 5 * HOUR - 1) == []
    assert windowed(loads, now=BEGIN + 5 * HOUR) != []


def test_small_neighbours_are_joined_within_a_window_open_or_closed() -> None:
    merged = at(3.0, seq=2, oldest=1, hours=0.5, size=90, made=BEGIN + 6 * HOUR)
    late = [at(3.5 + n / 10, seq=10 + n, hours=0.11, size=2) for n in range(4)]
    recent = [at(99.0 + n / 4, seq=20 + n, hours=0.2, size=2) for n in range(8)]
    assert windowed([merged, *late, *recent]) == [
        ([10, 11, 12, 13], "small neighbours"),
        ([20, 21, 22, 23], "small neighbours"),
        ([24, 25, 26, 27], "small neighbours"),
    ]


def test_small_objects_of_a_closed_window_are_joined() -> None:
    loads = [ref(BEGIN + 60 * n, BEGIN + 60 * n + 50, 10, seq=n + 1) for n in range(5)]
    assert windowed(loads) == [([1, 2, 3, 4, 5], "its window has ended")]


def test_open_windows_and_what_spans_several_follow_the_size_ratio() -> None:
    spanning = [at(3.0, seq=n, hours=2.0) for n in range(1, 5)]
    assert windowed(spanning) == [([1, 2, 3, 4], "4 runs of like sizes")]


@pytest.mark.parametrize(
    ("make", "key"),
    [
        (lambda s: s, "k"),
        (lambda s: float(s), "k"),
        (lambda s: Instant((0x08, s, 0)), "k"),
        (lambda s: s, "k:desc"),
        (lambda s: Instant((0x09, s, 5)), "k:desc"),
    ],
)
def test_a_key_that_is_a_time_in_any_form(make: Any, key: str) -> None:
    bounds = [make(BEGIN + minutes * 60) for minutes in (1, 20, 10, 40)]
    loads = [ref(*bounds[:2], seq=1, key=key), ref(*bounds[2:], seq=2, key=key)]
    assert windowed(loads, key=key) == [([1, 2], "its window has ended")]


def test_windows_of_a_key_of_dates_are_counted_in_seconds() -> None:
    first = dt.date(2023, 11, 6)
    loads = [ref(first, first + dt.timedelta(days=n), seq=n) for n in (1, 2)]
    assert windowed(loads, window=86400.0) == []
    assert windowed(loads, window=7 * 86400.0) == [([1, 2], "its window has ended")]


@pytest.mark.parametrize(
    ("value", "what"), [("a", "string"), (b"a", "bytes"), (True, "bool"), (Instant((0x0A, 5, 0)), "time")]
)
def test_a_key_that_is_no_time_is_refused(value: Any, what: str) -> None:
    reference = ref(value, value, seq=1)
    with pytest.raises(
        InvalidInput, match=f"time_window needs .*; the key field 'k' is a .*{what}.*use another"
    ):
        plan([reference], strategy="time_window")


# ---------------------------------------------------------------- aggregate pools


def test_aggregate_pools_merge_what_is_between_in_age_too() -> None:
    loads = [at(3.0, seq=1), at(1.0, seq=2, hours=6.0), at(3.1, seq=3), at(3.2, seq=9, hours=4.0)]
    assert windowed(loads) == [([1, 3], "its window has ended")]
    assert windowed(loads, kind="aggregate") == [([1, 2, 3], "its window has ended")]


def test_where_nothing_is_combined_nothing_else_must_be_taken() -> None:
    loads = [at(3.0, seq=1), at(2.5, seq=2, hours=0.6), at(3.2, seq=3)]
    assert windowed(loads, kind="aggregate") == [([1, 3], "its window has ended")]


def test_what_another_job_holds_is_waited_for() -> None:
    loads = [at(hour, seq=seq) for hour in (3.0, 5.0) for seq in (1, 3)]
    spanning = at(2.0, seq=2, hours=6.0)
    assert windowed([*loads, spanning], kind="aggregate") == [([1, 2, 3], "its window has ended")]


def test_half_is_taken_where_all_that_is_between_does_not_fit() -> None:
    loads = [at(3.0 + seq / 20, seq=seq) for seq in (1, 3, 5, 7)]
    spanning = [at(2.0, seq=seq, hours=6.0) for seq in (2, 4, 6)]
    found = windowed([*loads, *spanning], kind="aggregate", max_inputs=4)
    assert sorted(job for job, _ in found) == [[1, 2, 3], [5, 6, 7]]


def test_what_is_older_or_newer_than_the_inputs_may_stay() -> None:
    references = [ref(5, 20, 900, seq=1), *[ref(0, 10, seq=n) for n in range(2, 6)], ref(5, 20, 900, seq=7)]
    assert inputs(plan(references, kind="aggregate", depth=4, strategy="depth")) == [[2, 3, 4]]


# ---------------------------------------------------------------- policies


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"strategy": "leveled"}, f"strategy 'leveled': use {choices(names())}"),
        ({"max_inputs": 1}, "max_inputs must be at least 2 \\(got 1"),
        ({"depth": 0}, "depth must be at least 1 \\(got 0"),
        ({"ratio": 1.0}, "ratio must be greater than 1 \\(got 1"),
        ({"ratio": float("nan")}, "ratio must be greater than 1 \\(got nan"),
        ({"window": 0.0}, "window must be greater than 0 s \\(got 0"),
        ({"target_size": 0}, "target_size must be at least 1 \\(got 0"),
        ({"max_bytes": 0}, "max_bytes must be at least 1 \\(got 0"),
    ],
)
def test_a_bad_policy_says_what_is_wrong(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        plan([], **changes)


def test_the_settings_of_a_pool_are_a_policy() -> None:
    assert policy_of(Settings({"compact.strategy": "depth", "compact.depth": "3"})) == CompactionPolicy(
        strategy="depth",
        target_size=128 << 20,
        max_inputs=64,
        max_bytes=4 << 30,
        depth=3,
        ratio=2.0,
        window=86400.0,
    )


def test_inlined_references_are_written_out_alone_where_another_job_has_what_lies_between_them() -> None:
    """In an aggregate pool a job takes all that lies between its inputs in age; one input needs nothing else."""
    old, between, new = (ref(0, 10, seq=seq) for seq in (1, 2, 3))
    old, new = (msgspec.structs.replace(one, data=bytes(one.size)) for one in (old, new))
    references = sorted((old, between, new), key=lambda r: r.order)
    policy = policy_of(Settings({}))
    planner = Planner(references, policy, key=PoolKey.parse("k"), now=NOW, ages=Ages(references))
    planner.claimed[between.object, between.low] = 0
    planner.write_out("small loads")
    assert [job.inputs for job in planner.jobs] == [(old,), (new,)]
