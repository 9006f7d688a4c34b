"""Plans: which files go together, how they are cut for tasks, how a range is cut for readers.

That every plan covers everything exactly once is tests/properties/test_plans.py.
"""

from __future__ import annotations

import pytest

from lake_core.keys import KeyRange
from lake_core.keys.encoding import encode_value
from log_lake.agents.ingest.plan import FilePart, IngestBatch, plan_batches, plan_units, split_row_groups
from log_lake.agents.ingest.policy import BatchPolicy
from log_lake.loading.source_files import SourceFile
from log_lake.reading.ranges import WeightedSample, blunt, even_cuts, split_range

NOW = 1000.0


def landed(name: str, size: int = 10, *, age: float = 0.0) -> SourceFile:
    return SourceFile(name, size, "etag", NOW - age)


def batches(
    files: list[SourceFile], *, most_files: int = 100, max_bytes: int = 100, age: float = 0.0
) -> list[list[str]]:
    planned = plan_batches(files, BatchPolicy(most_files, max_bytes, age), now=NOW)
    return [[f.uri for f in batch.files] for batch in planned]


# ---------------------------------------------------------------- batches


def test_nothing_landed_gives_no_batch() -> None:
    assert batches([]) == []


def test_files_are_taken_in_the_order_of_their_names() -> None:
    assert batches([landed("b"), landed("c"), landed("a")]) == [["a", "b", "c"]]


def test_a_batch_ends_at_most_files() -> None:
    assert batches([landed(n) for n in "abcde"], most_files=2) == [["a", "b"], ["c", "d"], ["e"]]


def test_a_batch_ends_before_the_file_that_exceeds_max_bytes() -> None:
    assert batches([landed("a", 60), landed("b", 40), landed("c", 1)]) == [["a", "b"], ["c"]]
    assert batches([landed("a", 60), landed("b", 41)]) == [["a"], ["b"]]


def test_a_file_larger_than_a_batch_is_one_alone() -> None:
    assert batches([landed("a"), landed("b", 500), landed("c")]) == [["a"], ["b"], ["c"]]


def test_a_batch_that_is_not_full_waits_for_the_age_of_its_oldest_file() -> None:
    young, old = landed("a", age=5), landed("b", age=60)
    assert batches([young], age=60) == []
    assert batches([young, old], age=60) == [["a", "b"]]


def test_a_run_that_waits_for_nothing_takes_files_that_a_clock_ahead_of_ours_has_dated() -> None:
    assert batches([landed("a", age=-5)], age=0) == [["a"]]
    assert batches([landed("a", age=-5)], age=1) == []


def test_full_batches_do_not_wait() -> None:
    assert batches([landed(n) for n in "abc"], most_files=2, age=60) == [["a", "b"]]
    assert batches([landed("a", 100)], age=60) == [["a"]]


def test_a_token_stands_for_the_files_and_the_branch() -> None:
    batch = IngestBatch((landed("a"), landed("b")))
    assert batch.token("main") == IngestBatch((landed("a", age=99), landed("b"))).token("main")
    others = [
        IngestBatch((landed("a"),)),
        IngestBatch((landed("a"), landed("b", 11))),
        IngestBatch((landed("b"), landed("a"))),
    ]
    assert len({batch.token("main"), batch.token("dev"), *(o.token("main") for o in others)}) == 5
    assert batch.token("main").startswith("ingest:main:")


# ---------------------------------------------------------------- units


def units(sizes: list[int], *, parallelism: int = 2, smallest: int = 1) -> list[list[int]]:
    parts = [FilePart(str(i), size) for i, size in enumerate(sizes)]
    planned = plan_units(parts, parallelism=parallelism, smallest=smallest)
    assert [unit.number for unit in planned] == list(range(len(planned)))
    return [[part.size for part in unit.parts] for unit in planned]


@pytest.mark.parametrize(
    ("sizes", "planned"),
    [
        ([], []),
        ([5], [[5]]),
        ([0, 0], [[0, 0]]),
        ([10, 10, 10, 10], [[10, 10], [10, 10]]),
        ([10, 12, 8], [[10], [12, 8]]),
        ([30, 1, 1], [[30], [1, 1]]),
    ],
)
def test_parts_are_cut_into_even_runs_of_neighbours(sizes: list[int], planned: list[list[int]]) -> None:
    assert units(sizes) == planned


def test_no_unit_is_made_too_small_for_the_sake_of_parallelism() -> None:
    assert units([10] * 8, parallelism=8, smallest=30) == [[10] * 3, [10] * 5]
    assert units([1, 1000, 1], parallelism=3, smallest=50) == [[1, 1000, 1]]
    assert units([5, 5], parallelism=2, smallest=100) == [[5, 5]]


def test_a_large_file_is_cut_between_its_row_groups() -> None:
    parts = split_row_groups("f", [10, 10, 10, 25, 3, 10], target=20)
    assert parts == [
        FilePart("f", 20, (0, 2)),
        FilePart("f", 10, (2, 3)),
        FilePart("f", 25, (3, 4)),
        FilePart("f", 13, (4, 6)),
    ]
    assert split_row_groups("f", [], target=20) == []
    assert split_row_groups("f", [100], target=20) == [FilePart("f", 100, (0, 1))]


# ---------------------------------------------------------------- ranges


def key(n: int) -> bytes:
    return encode_value(n)


def bounds(low: int, high: int, weight: float = 10) -> WeightedSample:
    return WeightedSample.of_bounds(key(low), key(high), weight=weight)


def test_a_range_is_cut_where_runs_begin_into_pieces_of_equal_weight() -> None:
    runs = [bounds(10 * n, 10 * n + 10) for n in range(8)]
    assert split_range(runs, KeyRange(), pieces=2) == [KeyRange(b"", key(40)), KeyRange(key(40), None)]
    heavy = [bounds(0, 10, 70), *runs[1:]]
    assert split_range(heavy, KeyRange(), pieces=2) == [KeyRange(b"", key(10)), KeyRange(key(10), None)]


def test_a_cut_lies_where_the_gap_between_two_runs_begins() -> None:
    assert even_cuts([bounds(0, 10), bounds(50, 60)], KeyRange(), pieces=2) == [key(10)]


def test_one_run_is_cut_between_the_keys_that_are_known_of_it() -> None:
    run = WeightedSample.of_ranks(
        [(n, key(n)) for n in range(0, 100, 10)], high=key(100), records=100, weight=7
    )
    assert even_cuts([run], KeyRange(), pieces=5) == [key(20), key(40), key(60), key(80)]
    assert even_cuts([run], KeyRange(key(50), key(70)), pieces=2) == [key(60)]


def test_what_a_run_weighs_between_its_keys_is_spread_over_the_keys_of_the_others() -> None:
    sampled = WeightedSample(tuple(key(n) for n in range(0, 11)), (1.0,) * 10)
    assert even_cuts([sampled, bounds(0, 10, 1000)], KeyRange(), pieces=2) == [key(5)]


def test_what_lies_at_one_key_stays_in_one_piece() -> None:
    run = WeightedSample((key(1), key(5), key(5), key(5), key(9)), (1, 40, 40, 1))
    assert even_cuts([run], KeyRange(), pieces=4) == [key(5)]


def test_what_cannot_be_cut_is_one_piece() -> None:
    span = KeyRange(key(0), key(10))
    assert split_range([], KeyRange(), pieces=4) == [KeyRange()]
    assert split_range([bounds(0, 10)] * 3, span, pieces=4) == [span]
    assert split_range([bounds(0, 10), bounds(5, 10)], span, pieces=1) == [span]


def test_of_a_gap_that_the_range_cuts_half_is_counted_and_of_the_others_none() -> None:
    run = WeightedSample((key(0), key(10), key(20), key(30)), (8, 4, 2))
    assert run.within(KeyRange(key(5), key(20))) == WeightedSample((key(5), key(10), key(20)), (4, 4))
    assert run.within(KeyRange(key(12), key(13))) == WeightedSample((key(12), key(13)), (1,))
    assert run.within(KeyRange(key(30), None)) == WeightedSample((), ())
    assert run.within(KeyRange(key(10), key(20))) == WeightedSample((key(10), key(20)), (4,))


def test_runs_that_hide_where_to_cut_are_named_heaviest_first() -> None:
    runs = [bounds(0, 10, 10), bounds(10, 20, 90), bounds(20, 30, 100)]
    assert blunt(runs, KeyRange(), pieces=3) == [2, 1]
    assert blunt(runs, KeyRange(), pieces=1) == []
    assert blunt([bounds(10 * n, 10 * n + 10) for n in range(8)], KeyRange(), pieces=2) == []
    assert blunt([bounds(0, 100)] * 8, KeyRange(), pieces=2) == list(range(8)), "many small ones that overlap"
    sampled = WeightedSample(tuple(key(n) for n in range(101)), (1.0,) * 100)
    assert blunt([sampled, bounds(0, 100, 5)], KeyRange(), pieces=4) == []
    assert blunt([sampled, bounds(0, 100, 50)], KeyRange(), pieces=4) == [1], "it lies across the cuts"
    ends = [bounds(n, 1000 + n) for n in range(20)]
    assert blunt(ends, KeyRange(), pieces=4) == list(range(20)), "though they begin at twenty keys"


def test_runs_of_which_only_bounds_are_known_are_taken_to_be_spread_as_the_others_are() -> None:
    dense = WeightedSample(tuple(key(n) for n in (0, 1, 2, 3, 4, 100)), (1.0,) * 5)
    others = [bounds(-n, 200 + n, 10) for n in range(1, 20)]
    cuts = even_cuts([dense, *others], KeyRange(), pieces=5)
    assert len(cuts) == 4
    assert cuts[0] <= key(1)
    assert cuts[-1] <= key(100)
