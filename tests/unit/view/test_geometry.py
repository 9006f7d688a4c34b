"""Bars and bins over the keys: nothing is lost when references are binned."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import msgspec
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from lake_core.history import Reference
from lake_core.history.snapshot.reference import to_rows
from lake_core.history.tombstone import Tombstone
from lake_core.keys import PoolKey
from lake_core.keys.encoding import encode_key
from lake_core.records.transactions import sequence
from log_lake.reading.plan import overlap_depth
from log_lake.view.geometry import COLUMNS, MAX_LABEL, MAX_TOMBSTONES, bars, bins, depth_of

KEY = PoolKey.parse("k")


def bound(value: Any) -> bytes:
    return encode_key([value], KEY)


def reference(low: Any, high: Any, *, version: int = 1, name: int = 0, records: int = 10) -> Reference:
    return Reference(
        object=f"{name:027d}",
        low=bound(low),
        high=bound(high),
        seq=sequence(version),
        ordinal=name,
        records=records,
        size=100 * records,
        schema="s",
    )


def tombstone(low: bytes = b"", high: bytes | None = None, *, version: int = 9, **more: Any) -> Tombstone:
    return Tombstone(
        id=f"t{version}",
        version=version,
        seq=sequence(version),
        read_version=version - 1,
        transaction_id="",
        time=0,
        low=low,
        high=high,
        **more,
    )


def table(references: list[Reference]) -> pa.Table:
    return to_rows(references).select(COLUMNS)


@st.composite
def many_references(draw: st.DrawFn) -> list[Reference]:
    spans = draw(
        st.lists(
            st.tuples(st.integers(0, 60), st.integers(1, 30), st.integers(1, 12), st.integers(1, 99)),
            min_size=1,
            max_size=60,
        )
    )
    return [
        reference(low, low + width, version=version, name=number, records=records)
        for number, (low, width, version, records) in enumerate(spans)
    ]


@settings(deadline=None)
@given(many_references(), st.integers(1, 70))
def test_bins_keep_the_totals_of_the_pool(references: list[Reference], count: int) -> None:
    binned = bins(table(references), [], KEY, count=count)
    assert len(binned.begins) <= count
    assert len(binned.edges) == len(binned.begins) + 1
    assert sum(binned.begins) == len(references)
    assert sum(binned.records) == sum(r.records for r in references)
    assert sum(binned.size) == sum(r.size for r in references)


@settings(deadline=None)
@given(many_references(), st.integers(1, 70))
def test_the_deepest_bin_is_as_deep_as_the_pool(references: list[Reference], count: int) -> None:
    binned = bins(table(references), [], KEY, count=count)
    assert max(binned.depth) == overlap_depth(references) == depth_of(table(references))


@settings(deadline=None)
@given(many_references())
def test_with_a_bin_for_each_rank_the_cover_of_all_ages_is_the_depth(references: list[Reference]) -> None:
    binned = bins(table(references), [], KEY, count=1_000)
    assert [sum(cover[i] for cover in binned.cover) for i in range(len(binned.depth))] == binned.depth


@settings(deadline=None)
@given(many_references())
def test_every_version_is_in_one_class_of_age(references: list[Reference]) -> None:
    binned = bins(table(references), [], KEY)
    flat = [version for first_and_last in binned.ages for version in first_and_last]
    assert flat == sorted(flat)
    assert (flat[0], flat[-1]) == (
        min(r.seq for r in references) // sequence(1),
        max(r.seq for r in references) // sequence(1),
    )


@settings(deadline=None)
@given(many_references())
def test_bars_of_one_layer_share_no_key_and_every_reference_has_one(references: list[Reference]) -> None:
    drawn = bars(references, [], KEY)
    assert sorted(bar.object for bar in drawn.bars) == sorted(r.object for r in references)
    assert sum(bar.records for bar in drawn.bars) == sum(r.records for r in references)
    for layer in range(drawn.layers):
        row = sorted((bar.low, bar.high) for bar in drawn.bars if bar.layer == layer)
        assert all(high <= low for (_, high), (low, _) in pairwise(row))


def test_an_older_reference_lies_below_a_newer_one_that_overlaps_it() -> None:
    drawn = bars([reference(0, 9, version=2, name=2), reference(3, 5, version=1, name=1)], [], KEY)
    assert [(bar.object[-1], bar.layer) for bar in drawn.bars] == [("1", 0), ("2", 1)]
    assert drawn.edges == ["0", "3", "5", "9"]
    assert [(bar.low, bar.high) for bar in drawn.bars] == [(1, 2), (0, 3)]


def test_a_tombstone_has_the_ranks_of_its_bounds_and_an_open_one_covers_all() -> None:
    marks = [tombstone(bound(4), bound(6), version=8), tombstone(reason="all of it")]
    drawn = bars([reference(0, 9)], marks, KEY)
    assert [(m.low, m.high, m.version) for m in drawn.tombstones] == [(1, 2, 8), (0, 3, 9)]
    assert drawn.tombstones[1].reason == "all of it"


def test_a_tombstone_of_a_binned_pool_has_ranks_in_numbers_of_bins() -> None:
    references = [reference(i, i + 1, name=i) for i in range(100)]
    binned = bins(table(references), [tombstone(bound(50), bound(75))], KEY, count=10)
    (mark,) = binned.tombstones
    assert (mark.low, mark.high) == (5.0, 7.5)


def test_only_the_newest_tombstones_are_drawn() -> None:
    marks = [tombstone(bound(0), bound(i), version=i) for i in range(1, MAX_TOMBSTONES + 50)]
    drawn = bars([reference(0, 9)], marks, KEY)
    assert [m.version for m in drawn.tombstones] == list(range(50, MAX_TOMBSTONES + 50))


def test_a_pool_without_references_has_no_bars() -> None:
    drawn = bars([], [tombstone()], KEY)
    assert (drawn.bars, drawn.edges, drawn.layers) == ([], [], 0)
    assert [(m.low, m.high) for m in drawn.tombstones] == [(0, 0)]
    assert depth_of(table([])) == 0


def test_a_long_bound_is_cut() -> None:
    drawn = bars([reference("a" * 500, "b")], [], KEY)
    assert [len(edge) for edge in drawn.edges] == [MAX_LABEL, 1]


def test_the_page_tells_bars_from_bins_by_their_kind() -> None:
    references = [reference(0, 9)]
    kinds = [bars(references, [], KEY), bins(table(references), [], KEY)]
    assert [msgspec.json.decode(msgspec.json.encode(one))["kind"] for one in kinds] == ["bars", "bins"]


def test_a_tombstone_hides_what_is_older_and_a_self_only_one_its_own_version() -> None:
    marks = [
        tombstone(version=5),
        tombstone(version=7, self_only=True),
        tombstone(version=9, only=(sequence(3), sequence(4))),
    ]
    drawn = bars([reference(0, 9)], marks, KEY)
    assert [(m.since, m.until) for m in drawn.tombstones] == [(0, 4), (7, 7), (3, 4)]


def test_a_bar_says_which_tombstones_were_applied_to_it() -> None:
    drawn = bars([msgspec.structs.replace(reference(0, 9), applied=6)], [], KEY)
    assert [bar.applied for bar in drawn.bars] == [6]
