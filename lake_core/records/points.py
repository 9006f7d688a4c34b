"""Actions that cut the keys of a pool into ranges (format version 3).

A *split point* is an encoded key.  What lies between two neighbouring points is a *range*.  Points are layout: no
answer depends on them, loads need not obey them, and they belong to no branch (decision 301).
"""

from __future__ import annotations

from itertools import pairwise

import msgspec

from lake_core.errors import Corrupt

MAX_POINTS = 100_000
"""The most split points of a pool.  Every state and checkpoint holds them all: at 100 bytes each, 10 MB."""


class Split(msgspec.Struct, frozen=True, tag="split"):
    """Adds split points that the pool does not have.  Guarantees: at least one; ascending, distinct, none empty."""

    points: tuple[bytes, ...]

    def __post_init__(self) -> None:
        _check(self.points, "split")


class Join(msgspec.Struct, frozen=True, tag="join"):
    """Removes split points that the pool has.  Guarantees: those of `split`."""

    points: tuple[bytes, ...]

    def __post_init__(self) -> None:
        _check(self.points, "join")


def _check(points: tuple[bytes, ...], action: str) -> None:
    if not points or any(low >= high for low, high in pairwise((b"", *points))):
        raise Corrupt(f"{action}: needs points that are ascending, distinct and not empty")
