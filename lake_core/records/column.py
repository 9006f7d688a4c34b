"""Statistics of one field of one data object, as actions record them."""

from __future__ import annotations

import msgspec

from lake_core.errors import Corrupt
from lake_core.records.decoding import MAX_INTEGER, check_counts


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

    def __post_init__(self) -> None:
        if 0 <= self.nulls <= MAX_INTEGER and self.low != b"" and self.high != b"":
            return  # a pool has millions of them, so a text is made only for an error
        what = f"statistics of field {self.name[:80]!r}"
        check_counts(what, nulls=self.nulls)
        if b"" in (self.low, self.high):
            raise Corrupt(f"{what}: a bound without bytes, which it cannot be")
