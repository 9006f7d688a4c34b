"""Half-open ranges of encoded keys, from `low` (inclusive) to `high` (exclusive), with open ends.

A `low` of b"" is open, because no key is smaller; a `high` of None is open.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence

import msgspec


class KeyRange(msgspec.Struct, frozen=True):
    """The keys from `low` (inclusive) to `high` (exclusive), as encoded bytes."""

    low: bytes = b""
    high: bytes | None = None

    @property
    def empty(self) -> bool:
        """Whether no key can lie in the range."""
        return self.high is not None and self.low >= self.high

    def overlaps(self, other: KeyRange) -> bool:
        """Whether a key may lie in both ranges."""
        return (self.high is None or other.low < self.high) and (other.high is None or self.low < other.high)

    def contains(self, key: bytes) -> bool:
        """Whether the key lies in the range."""
        return self.low <= key and (self.high is None or key < self.high)

    def intersect(self, other: KeyRange) -> KeyRange:
        """Returns the range of the keys that lie in both ranges; it may be empty."""
        highs = [h for h in (self.high, other.high) if h is not None]
        return KeyRange(max(self.low, other.low), min(highs) if highs else None)


EVERYTHING = KeyRange()


def united(ranges: Iterable[KeyRange]) -> tuple[KeyRange, ...]:
    """Returns ranges that together have the same keys and neither overlap nor touch, ascending; empty ranges are
    left out."""
    spans: list[KeyRange] = []
    for span in sorted((span for span in ranges if not span.empty), key=lambda span: span.low):
        last = spans[-1] if spans else None
        if last is None or (last.high is not None and last.high < span.low):
            spans.append(span)
        elif last.high is not None and (span.high is None or span.high > last.high):
            spans[-1] = KeyRange(last.low, span.high)
    return tuple(spans)


def parts_within(ranges: Sequence[KeyRange], key_range: KeyRange) -> tuple[KeyRange, ...]:
    """Returns the parts of united ranges that lie in a range."""
    begin = max(0, bisect_right(ranges, key_range.low, key=lambda span: span.low) - 1)
    end = len(ranges)
    if key_range.high is not None:
        end = bisect_left(ranges, key_range.high, key=lambda span: span.low)
    parts = (span.intersect(key_range) for span in ranges[begin:end])
    return tuple(part for part in parts if not part.empty)
