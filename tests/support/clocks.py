"""A clock that a test moves."""

from __future__ import annotations

from dataclasses import dataclass

DAY = 86_400.0


@dataclass
class Clock:
    """Seconds since 1970, which stand still until a test moves them."""

    now: float = 2_000_000_000.0

    def __call__(self) -> float:
        return self.now
