"""Statistics of one field of one data object, as actions record them."""

from __future__ import annotations

import msgspec

from lake_core.errors import Corrupt
from lake_core.records.decoding import MAX_INTEGER, check_counts

MOST_BUCKETS = 1 << 16


class Bucket(msgspec.Struct, frozen=True, gc=False):
    """The hash of every value of a field is `number`, modulo `of`; null counts as 0.  `path` leads to a field
    inside of records (docs/clusters.md)."""

    of: int
    number: int
    path: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 0 <= self.number < self.of <= MOST_BUCKETS:
            raise Corrupt(f"bucket {self.number} of {self.of}, which it cannot be")


class Column(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Statistics of one field of one object: bounds in the encoding of keys (ascending), and the number of nulls.

    `low` is at or below every value, `high` at or above.  Long bounds are shortened; None if unknown.
    Guarantees: a bound has at least the byte that names its class.

    No value in it can be part of a cycle, so the garbage collector does not visit it: a large pool has
    millions.
    """

    name: str
    nulls: int = 0
    low: bytes | None = None
    high: bytes | None = None
    bucket: Bucket | None = None

    def __post_init__(self) -> None:
        if 0 <= self.nulls <= MAX_INTEGER and self.low != b"" and self.high != b"":
            return  # a pool has millions of them, so a text is made only for an error
        what = f"statistics of field {self.name[:80]!r}"
        check_counts(what, nulls=self.nulls)
        if b"" in (self.low, self.high):
            raise Corrupt(f"{what}: a bound without bytes, which it cannot be")
