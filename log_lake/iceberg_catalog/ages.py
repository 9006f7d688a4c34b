"""When a table was last published because its records had aged: `age_off` hides more records with time, without a
new version of the pool."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

SECONDS = 300.0
"""A table with `age_off` is published again after this time, even without a new version.  Each such publication is
two transactions and often a new table, so a client that asks each second must not cause one each time.  Ages
are hours or more, and a query may itself run for minutes with a table that it has."""


@dataclass
class PublicationAges:
    """What this process published: safe to use from several threads."""

    shown: dict[tuple[str, str], tuple[int, str, float]] = field(default_factory=dict)
    changing: threading.Lock = field(default_factory=threading.Lock)

    def are_shown(self, pool: str, ref: str, *, version: int, policy: str, now: float) -> bool:
        """Whether this version was published with this value of `age_off` (`policy`) less than `SECONDS` before
        now."""
        with self.changing:
            last_version, last_policy, time = self.shown.get((pool, ref), (-1, "", 0.0))
        return (last_version, last_policy) == (version, policy) and 0 <= now - time < SECONDS

    def note(self, pool: str, ref: str, *, version: int, policy: str, now: float) -> None:
        """Notes that the version was published without the records that had aged off at `now`."""
        with self.changing:
            self.shown[pool, ref] = version, policy, now
