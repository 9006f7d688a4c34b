"""Plans cover everything exactly once, in order, within their bounds."""

from __future__ import annotations

import itertools
from bisect import bisect_left
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from lake_core.keys import KeyRange
from lake_core.keys.encoding import encode_value
from log_lake.agents.ingest.plan import FilePart, plan_batches, plan_units, split_row_groups
from log_lake.agents.ingest.policy import BatchPolicy
from log_lake.loading.source_files import SourceFile
from log_lake.reading.ranges import WeightedSample, blunt, split_range

NOW = 1000.0
FILES = st.dictionaries(
    st.text("abc/", min_size=1, max_size=4),
    st.tuples(st.integers(1, 50), st.floats(0, NOW + 10)),
    max_size=20,
).map(lambda found: [SourceFile(name, size, "e", modified) for name, (size, modified) in found.items()])
POLICIES = st.builds(BatchPolicy, st.integers(1, 6), st.integers(1, 120), st.sampled_from([0.0, 60.0, 1e9]))
SIZES = st.lists(st.integers(0, 100), max_size=30)


@given(FILES, POLICIES)
def test_batches_hold_every_file_once_but_those_that_wait(
    files: list[SourceFile], policy: BatchPolicy
) -> None:
    batches = plan_batches(files, policy, now=NOW)
    ordered = sorted(files, key=lambda f: f.uri)
    planned = [f for batch in batches for f in batch.files]
    assert planned == ordered[: len(planned)]
    waiting = ordered[len(planned) :]
    for batch in batches:
        assert 1 <= len(batch.files) <= policy.max_files
        assert batch.size <= policy.max_bytes or len(batch.files) == 1
    if waiting:
        assert policy.age > 0
        assert all(NOW - f.modified < policy.age for f in waiting)
        assert len(waiting) < policy.max_files
        assert sum(f.size for f in waiting) < policy.max_bytes
    assert len({b.token("main") for b in batches}) == len(batches)


@given(FILES.flatmap(lambda files: st.tuples(st.just(files), st.permutations(files))), POLICIES)
def test_batches_do_not_depend_on_the_order_of_a_listing(
    listings: tuple[list[SourceFile], list[SourceFile]], policy: BatchPolicy
) -> None:
    one, other = (plan_batches(files, policy, now=NOW) for files in listings)
    assert one == other


@given(SIZES, st.integers(1, 10), st.integers(1, 300))
def test_units_hold_every_part_once_in_order_and_are_neither_too_many_nor_too_small(
    sizes: list[int], parallelism: int, smallest: int
) -> None:
    parts = [FilePart(str(i), size) for i, size in enumerate(sizes)]
    units = plan_units(parts, parallelism=parallelism, smallest=smallest)
    assert [p for unit in units for p in unit.parts] == parts
    assert [unit.number for unit in units] == list(range(len(units)))
    assert len(units) <= parallelism
    assert all(unit.parts for unit in units)
    assert len(units) <= 1 or min(unit.size for unit in units) >= smallest


@given(st.lists(st.integers(1, 100), max_size=30), st.integers(1, 300))
def test_row_groups_are_cut_into_parts_that_follow_each_other(sizes: list[int], target: int) -> None:
    parts = split_row_groups("f", sizes, target=target)
    groups = [range(*p.row_groups) for p in parts if p.row_groups is not None]
    assert [g for run in groups for g in run] == list(range(len(sizes)))
    for part, run in zip(parts, groups, strict=True):
        assert part.size == sum(sizes[g] for g in run)
        assert len(run) == 1 or part.size <= 1.5 * target + max(sizes) / 2


RUNS = st.lists(st.lists(st.integers(0, 400), min_size=1, max_size=300).map(sorted), min_size=1, max_size=6)
BOUNDS = st.one_of(st.none(), st.integers(0, 400))


def sample_ranks(records: int) -> list[int]:
    """Of up to 64 evenly spaced records, first and last among them."""
    count = min(64, records)
    return [rank * (records - 1) // max(1, count - 1) for rank in range(count)]


def sample(run: list[int], *, sampled: bool) -> WeightedSample:
    """What is known of a run: up to 64 of its keys, as in a footer, or its bounds."""
    high = encode_value(run[-1]) + b"\0"
    if not sampled:
        return WeightedSample.of_bounds(encode_value(run[0]), high, weight=len(run))
    keys = [(rank, encode_value(run[rank])) for rank in sample_ranks(len(run))]
    return WeightedSample.of_ranks(keys, high=high, records=len(run), weight=len(run))


def records_in(runs: list[list[int]], piece: KeyRange) -> int:
    """Keys are encoded in their order, so a run need not be encoded whole."""

    def before(run: list[int], bound: bytes | None) -> int:
        return len(run) if bound is None else bisect_left(run, bound, key=encode_value)

    return sum(before(run, piece.high) - before(run, piece.low) for run in runs)


@given(RUNS, st.lists(st.booleans(), min_size=6, max_size=6), BOUNDS, BOUNDS, st.integers(1, 12))
def test_pieces_of_a_range_follow_each_other_and_cover_it(
    runs: list[list[int]], sampled: list[bool], low: int | None, high: int | None, pieces: int
) -> None:
    span = KeyRange(b"" if low is None else encode_value(low), None if high is None else encode_value(high))
    if span.empty:
        return
    samples = [sample(run, sampled=known) for run, known in zip(runs, sampled, strict=False)]
    found = split_range(samples, span, pieces=pieces)
    assert 1 <= len(found) <= pieces
    assert (found[0].low, found[-1].high) == (span.low, span.high)
    assert all(a.high == b.low for a, b in itertools.pairwise(found))
    assert not any(piece.empty for piece in found)


@given(RUNS, st.integers(1, 12))
def test_no_piece_weighs_more_than_its_share_but_for_what_the_samples_do_not_tell(
    runs: list[list[int]], pieces: int
) -> None:
    found = split_range([sample(run, sampled=True) for run in runs], KeyRange(), pieces=pieces)
    mean = sum(map(len, runs)) / pieces
    gaps = [
        max(itertools.pairwise([*sample_ranks(len(run)), len(run)]), key=lambda g: g[1] - g[0])
        for run in runs
    ]
    hidden = sum(last - first for first, last in gaps)
    alike = max(sum(run.count(record) for run in runs) for record in {r for run in runs for r in run})
    assert max(records_in(runs, piece) for piece in found) <= mean + 3 * hidden + alike


@given(st.integers(1, 8), st.integers(1, 10), st.integers(0, 2**32))
def test_large_runs_are_cut_into_pieces_within_half_of_the_mean(count: int, pieces: int, seed: int) -> None:
    random = Random(seed)
    runs = [sorted(random.sample(range(10**6), 1000)) for _ in range(count)]
    found = split_range([sample(run, sampled=True) for run in runs], KeyRange(), pieces=pieces)
    assert len(found) == pieces
    weights = [records_in(runs, piece) for piece in found]
    assert max(weights) <= 1.5 * sum(weights) / pieces


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=40), st.integers(2, 12))
def test_where_no_bounds_are_blunt_no_piece_weighs_more_than_half_above_the_mean(
    weights: list[int], pieces: int
) -> None:
    keys = [encode_value(n) for n in range(len(weights) + 1)]
    runs = [
        WeightedSample.of_bounds(low, high, weight=weight)
        for (low, high), weight in zip(itertools.pairwise(keys), weights, strict=True)
    ]
    mean = sum(weights) / pieces
    assert blunt(runs, KeyRange(), pieces=pieces) == sorted(
        (n for n, weight in enumerate(weights) if weight > mean / 2), key=lambda n: (-weights[n], n)
    )
    for piece in split_range(runs, KeyRange(), pieces=pieces):
        held = [weight for low, weight in zip(keys, weights, strict=False) if piece.contains(low)]
        assert 0 < sum(held) <= mean + max(weights)
