"""Plans cover everything exactly once, in order, within their bounds."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from lake_core.commits import Reference
from lake_core.keys import KeyRange
from lake_core.keys.encoding import encode_value
from lake_core.planning.batches import BatchPolicy, plan_batches
from lake_core.planning.ranges import split_range
from lake_core.planning.units import Part, plan_units, split_row_groups
from lake_core.records.landed import LandedFile

NOW = 1000.0
FILES = st.dictionaries(
    st.text("abc/", min_size=1, max_size=4),
    st.tuples(st.integers(1, 50), st.floats(0, NOW + 10)),
    max_size=20,
).map(lambda found: [LandedFile(name, size, "e", modified) for name, (size, modified) in found.items()])
POLICIES = st.builds(BatchPolicy, st.integers(1, 6), st.integers(1, 120), st.sampled_from([0.0, 60.0, 1e9]))
SIZES = st.lists(st.integers(0, 100), max_size=30)


@given(FILES, POLICIES)
def test_batches_hold_every_file_once_but_those_that_wait(
    files: list[LandedFile], policy: BatchPolicy
) -> None:
    batches = plan_batches(files, policy, now=NOW)
    ordered = sorted(files, key=lambda f: f.uri)
    planned = [f for batch in batches for f in batch.files]
    assert planned == ordered[: len(planned)]
    waiting = ordered[len(planned) :]
    for batch in batches:
        assert 1 <= len(batch.files) <= policy.most_files
        assert batch.size <= policy.most_bytes or len(batch.files) == 1
    if waiting:
        assert policy.age > 0
        assert all(NOW - f.modified < policy.age for f in waiting)
        assert len(waiting) < policy.most_files
        assert sum(f.size for f in waiting) < policy.most_bytes
    assert len({b.token("main") for b in batches}) == len(batches)


@given(FILES.flatmap(lambda files: st.tuples(st.just(files), st.permutations(files))), POLICIES)
def test_batches_do_not_depend_on_the_order_of_a_listing(
    listings: tuple[list[LandedFile], list[LandedFile]], policy: BatchPolicy
) -> None:
    one, other = (plan_batches(files, policy, now=NOW) for files in listings)
    assert one == other


@given(SIZES, st.integers(1, 10), st.integers(1, 300))
def test_units_hold_every_part_once_in_order_and_are_neither_too_many_nor_too_small(
    sizes: list[int], parallelism: int, smallest: int
) -> None:
    parts = [Part(str(i), size) for i, size in enumerate(sizes)]
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


REFERENCES = st.lists(
    st.tuples(st.integers(0, 8), st.integers(1, 6), st.integers(1, 1000)).map(
        lambda r: Reference("o", encode_value(r[0]), encode_value(r[0] + r[1]), 1, 0, 1, r[2], "s")
    ),
    max_size=20,
)
BOUNDS = st.one_of(st.none(), st.integers(0, 12))


@given(REFERENCES, BOUNDS, BOUNDS, st.integers(1, 8))
def test_pieces_of_a_range_follow_each_other_and_cover_it(
    references: list[Reference], low: int | None, high: int | None, pieces: int
) -> None:
    span = KeyRange(b"" if low is None else encode_value(low), None if high is None else encode_value(high))
    if span.empty:
        return
    found = split_range([r for r in references if r.span.overlaps(span)], span, pieces=pieces)
    assert 1 <= len(found) <= pieces
    assert (found[0].low, found[-1].high) == (span.low, span.high)
    assert all(a.high == b.low for a, b in itertools.pairwise(found))
    assert not any(piece.empty for piece in found)
