"""What the doctor says: findings, the verdict of a pool, and that of the lake; plain values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum


class Severity(IntEnum):
    """How bad a finding is. A `NOTE` is worth knowing, but changes no verdict."""

    NOTE = 0
    ATTENTION = 1
    ILL = 2


class Verdict(IntEnum):
    """The state of a pool or a lake; the value is the exit status of `lake doctor`."""

    WELL = 0
    ATTENTION = 1
    ILL = 2

    @property
    def word(self) -> str:
        """The verdict as people read it, in one word."""
        return self.name.lower()


@dataclass(frozen=True, kw_only=True)
class HealthFinding:
    """One thing that the doctor found.

    `kind` names a row of the tables of kinds.  `pool` is "" if it concerns the whole lake.  `since`: from when it
    holds, in seconds since 1970, None if that is not known.  `command` mends it, or shows more; "" if none does.
    """

    kind: str
    severity: Severity
    pool: str
    says: str
    since: float | None = None
    command: str = ""


def verdict_of(findings: Iterable[HealthFinding]) -> Verdict:
    """Returns the verdict that the worst of the findings gives; well without any."""
    return Verdict(max((one.severity for one in findings), default=Severity.NOTE))


@dataclass(frozen=True, kw_only=True)
class PoolHealth:
    """The findings of one pool, worst first.

    `seen`: when its journal was looked at, in seconds since 1970. That may be long ago, if nothing was written
    since.
    """

    pool: str
    findings: tuple[HealthFinding, ...]
    seen: float

    @property
    def verdict(self) -> Verdict:
        """The verdict of the pool."""
        return verdict_of(self.findings)


@dataclass(frozen=True, kw_only=True)
class LakeHealth:
    """The findings about the whole lake, and the health of the pools that were asked for, by name; `now` in
    seconds since 1970."""

    findings: tuple[HealthFinding, ...]
    pools: tuple[PoolHealth, ...]
    now: float

    @property
    def verdict(self) -> Verdict:
        """The worst of all verdicts."""
        return max([verdict_of(self.findings), *(pool.verdict for pool in self.pools)])

    @property
    def all_findings(self) -> list[HealthFinding]:
        """All findings, worst first, then by pool; those of the lake before those of pools."""
        every = [*self.findings, *(one for pool in self.pools for one in pool.findings)]
        return sorted(every, key=lambda one: -one.severity)

    def counts(self) -> dict[Verdict, int]:
        """Returns how many pools have each verdict."""
        return {verdict: sum(pool.verdict is verdict for pool in self.pools) for verdict in Verdict}
