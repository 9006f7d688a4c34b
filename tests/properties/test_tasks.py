"""Shares of parallel tasks: together they are the whole range, and none straddles a split point beside a part of
another range."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from lake_core.history import Reference
from lake_core.keys import KeyRange
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
