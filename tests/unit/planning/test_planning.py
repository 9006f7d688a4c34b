"""Plans: which files go together, how they are cut for tasks, how a range is cut for readers.

That every plan covers everything exactly once is tests/properties/test_plans.py.
"""

from __future__ import annotations

import pytest

from lake_core.commits import Reference
from lake_core.keys import KeyRange
from lake_core.keys.encoding import encode_value
from lake_core.planning.batches import Batch, BatchPolicy, plan_batches
from lake_core.planning.ranges import split_range
from lake_core.planning.units import Part, plan_units, split_row_groups
from lake_core.records.landed import LandedFile

NOW = 1000.0


def landed(name: str, size: int = 10, *, age: float = 0.0) -> LandedFile:
    return LandedFile(name, size, "etag", NOW - age)


def batches(
    files: list[LandedFile], *, most_files: int = 100, most_bytes: int = 100, age: float = 0.0
) -> list[list[str]]:
    planned = plan_batches(files, BatchPolicy(most_files, most_bytes, age), now=NOW)
    return [[f.uri for f in batch.files] for batch in planned]


# ---------------------------------------------------------------- batches


def test_nothing_landed_gives_no_batch() -> None:
    assert batches([]) == []


def test_files_are_taken_in_the_order_of_their_names() -> None:
    assert batches([landed("b"), landed("c"), landed("a")]) == [["a", "b", "c"]]


def test_a_batch_ends_at_most_files() -> None:
    assert batches([landed(n) for n in "abcde"], most_files=2) == [["a", "b"], ["c", "d"], ["e"]]


def test_a_batch_ends_before_the_file_that_exceeds_most_bytes() -> None:
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
    batch = Batch((landed("a"), landed("b")))
    assert batch.token("main") == Batch((landed("a", age=99), landed("b"))).token("main")
    others = [Batch((landed("a"),)), Batch((landed("a"), landed("b", 11))), Batch((landed("b"), landed("a")))]
    assert len({batch.token("main"), batch.token("dev"), *(o.token("main") for o in others)}) == 5
    assert batch.token("main").startswith("ingest:main:")


# ---------------------------------------------------------------- units


def units(sizes: list[int], *, parallelism: int = 2, smallest: int = 1) -> list[list[int]]:
    parts = [Part(str(i), size) for i, size in enumerate(sizes)]
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
        Part("f", 20, (0, 2)),
        Part("f", 10, (2, 3)),
        Part("f", 25, (3, 4)),
        Part("f", 13, (4, 6)),
    ]
    assert split_row_groups("f", [], target=20) == []
    assert split_row_groups("f", [100], target=20) == [Part("f", 100, (0, 1))]


# ---------------------------------------------------------------- ranges


def reference(low: int, high: int, size: int = 10) -> Reference:
    return Reference(f"{low}", encode_value(low), encode_value(high), 1, 0, 1, size, "s")


def cuts(references: list[Reference], *, pieces: int, span: KeyRange | None = None) -> list[KeyRange]:
    return split_range(references, span or KeyRange(), pieces=pieces)


def test_a_range_is_cut_where_objects_begin_into_pieces_of_equal_weight() -> None:
    low = [encode_value(10 * n) for n in range(8)]
    references = [reference(10 * n, 10 * n + 10) for n in range(8)]
    assert cuts(references, pieces=2) == [KeyRange(b"", low[4]), KeyRange(low[4], None)]
    heavy = [reference(0, 10, 70), *references[1:]]
    assert cuts(heavy, pieces=2) == [KeyRange(b"", low[1]), KeyRange(low[1], None)]


def test_what_cannot_be_cut_is_one_piece() -> None:
    span = KeyRange(encode_value(0), encode_value(10))
    assert cuts([], pieces=4) == [KeyRange()]
    assert cuts([reference(0, 10)] * 3, pieces=4, span=span) == [span]
    assert cuts([reference(0, 10), reference(5, 10)], pieces=1, span=span) == [span]
