"""Shares of parallel tasks: together they are the whole range, and none straddles a split point beside a part of
another range."""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from lake_core.history import Reference
from lake_core.keys import KeyRange, PoolKey
from lake_core.keys.ranges import parts_within, united
from log_lake.reading.plan import ScanPlan
from log_lake.reading.ranges import WeightedSample, split_range
from log_lake.reading.tasks import shares


def reference(low: bytes, high: bytes, *, size: int) -> Reference:
    return Reference("o", low, high, 1, 0, 1, size, "s")


KEYS = st.integers(0, 250).map(lambda n: bytes([n]))


def spans(points: list[bytes]) -> list[KeyRange]:
    return [KeyRange(low, high) for low, high in zip([b"", *points], [*points, None], strict=True)]


def holds(span: KeyRange, references: list[Reference]) -> bool:
    return any(span.overlaps(reference.key_range) for reference in references)


@settings(max_examples=100)
@given(
    st.lists(st.tuples(st.integers(0, 250), st.integers(1, 5), st.integers(1, 1000)), max_size=12),
    st.sets(KEYS.filter(bool), max_size=8).map(sorted),
    st.integers(1, 9),
    KEYS,
    st.one_of(st.none(), KEYS),
)
def test_shares_are_whole_ranges_or_parts_of_one(
    held: list[tuple[int, int, int]], points: list[bytes], pieces: int, low: bytes, high: bytes | None
) -> None:
    asked = KeyRange(b"" if low == b"\0" else low, high)
    if asked.empty:
        return
    references = [reference(bytes([at]), bytes([at + width]), size=size) for at, width, size in held]
    samples = [WeightedSample.of_bounds(r.low, r.high, weight=r.size) for r in references]
    found = shares(
        references,
        points,
        asked,
        pieces=pieces,
        split=lambda part, count: split_range(samples, part, pieces=max(1, count)),
    )
    assert (found[0].low, found[-1].high) == (asked.low, asked.high)
    assert all(one.high == other.low for one, other in pairwise(found))
    if pieces == 1:
        return
    for share in found:
        across = [p for p in points if share.low < p and (share.high is None or p < share.high)]
        held_in = [span for span in spans(points) if span.overlaps(share) and holds(span, references)]
        if across and len(held_in) > 1:
            inner = [KeyRange(max(s.low, asked.low), s.high).intersect(asked) for s in held_in]
            assert all(share.low <= s.low and (share.high is None or s.high is not None) for s in inner)
            assert all(share.high is None or s.high is None or s.high <= share.high for s in inner)


SPANS = st.tuples(st.integers(0, 240), st.integers(1, 10))


@settings(max_examples=100)
@given(
    st.lists(SPANS, max_size=12).map(sorted),
    st.sets(KEYS.filter(bool), max_size=8).map(sorted),
    st.lists(SPANS, max_size=4),
    st.tuples(st.integers(0, 100), st.integers(1, 150)),
)
def test_parts_of_a_plan_hold_the_references_of_their_keys(
    held: list[tuple[int, int]],
    points: list[bytes],
    wanted: list[tuple[int, int]],
    around: tuple[int, int],
) -> None:
    def span(one: tuple[int, int]) -> KeyRange:
        return KeyRange(bytes([one[0]]), bytes([sum(one)]))

    whole = span(around)
    ranges = parts_within(united(map(span, wanted)), whole)
    references = [
        reference(one.low, one.high or b"", size=1) for one in map(span, held) if one.overlaps(whole)
    ]
    key, fields = PoolKey.parse("k"), pa.schema([("k", pa.int64())])
    plan = ScanPlan(tuple(references), whole, key, fields, ("k",), depth=1, ranges=ranges)
    cuts = [p for p in points if whole.low < p and whole.contains(p)]
    expected = []
    for low, high in zip([whole.low, *cuts], [*cuts, whole.high], strict=True):
        part = KeyRange(low, high)
        read = parts_within(ranges, part) if ranges else (part,)
        in_part = tuple(r for r in references if any(r.key_range.overlaps(one) for one in read))
        if in_part:
            expected.append((part, read if ranges else (), in_part))
    assert [(p.key_range, p.ranges, p.references) for p in plan.parts(cuts)] == expected
