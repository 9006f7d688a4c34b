"""Half-open ranges of encoded keys: [low, high), with open ends.

`low` of b"" is open (no key is smaller); `high` of None is open.
"""

from __future__ import annotations

import msgspec


class KeyRange(msgspec.Struct, frozen=True):
    """All keys k with low <= k < high."""

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
        """The keys in both ranges; may be empty."""
        highs = [h for h in (self.high, other.high) if h is not None]
        return KeyRange(max(self.low, other.low), min(highs) if highs else None)


EVERYTHING = KeyRange()
