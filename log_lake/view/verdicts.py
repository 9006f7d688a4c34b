"""The doctor's answer for the page. All open pages together cause at most one examination in `FRESH_SECONDS`.

The view writes nothing, so the doctor tries no writes here, and remembers no pool.  It uses what `lake doctor`,
or Airflow's sensor, remembers on the store.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import msgspec

from lake_core.errors import without_secrets
from log_lake.doctor.examine import examine
from log_lake.doctor.health_finding import HealthFinding, LakeHealth
from log_lake.lake import Lake

FRESH_SECONDS = 30.0
"""For how many seconds an answer is given again, because looking at a pool costs about seven requests."""
MAX_FINDINGS = 1_000
"""The most findings that are shown, the worst ones."""


class ShownFinding(msgspec.Struct, frozen=True):
    """A finding of the doctor, as the page shows it; `since` is in seconds since 1970."""

    severity: str
    kind: str
    pool: str
    says: str
    command: str
    since: float | None


class ShownHealth(msgspec.Struct, frozen=True):
    """The verdict of a lake, the number of pools with each verdict, and the findings, worst first. `total` also
    counts findings that are not shown.

    `now` is the time of the look, in seconds since 1970.
    """

    verdict: str
    counts: dict[str, int]
    findings: list[ShownFinding]
    total: int
    now: float


class Verdicts:
    """The health of one lake, for several threads; one of them looks.  `clock` is in seconds, from any origin."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._looking = threading.Lock()
        self._shown: ShownHealth | None = None
        self._seen_at = 0.0

    def shown(self, lake: Lake) -> ShownHealth:
        """Returns the health of the lake.  Raises what `examine` raises."""
        with self._looking:
            if self._shown is None or self._clock() - self._seen_at >= FRESH_SECONDS:
                self._shown, self._seen_at = shown_of(examine(lake, writes=False)), self._clock()
            return self._shown


def shown_of(health: LakeHealth) -> ShownHealth:
    """Returns the health as the page gets it."""
    findings = health.all_findings
    return ShownHealth(
        health.verdict.word,
        {verdict.word: count for verdict, count in health.counts().items()},
        [_shown(one) for one in findings[:MAX_FINDINGS]],
        len(findings),
        health.now,
    )


def _shown(one: HealthFinding) -> ShownFinding:
    return ShownFinding(
        one.severity.name.lower(), one.kind, one.pool, without_secrets(one.says), one.command, one.since
    )
