"""Statistics of one field of one data object, as actions record them."""

from __future__ import annotations

import msgspec

from lake_core.errors import Corrupt


class Column(msgspec.Struct, frozen=True, omit_defaults=True):
    """Statistics of one field of one object: bounds in the encoding of keys (ascending), and the number of nulls.

    `low` is at or below every value, `high` at or above.  Long bounds are cut; None if unknown.
    """

    name: str
    nulls: int = 0
    low: bytes | None = None
    high: bytes | None = None

    def __post_init__(self) -> None:
        if self.nulls < 0:
            raise Corrupt(f"statistics of field {self.name[:80]!r}: {self.nulls} nulls")
