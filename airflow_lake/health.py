"""The doctor's answer in Airflow: its lines in a log, and its values between tasks.

Callers: the operator and the sensor.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lake_core.phrases import counted, human_time, listed

if TYPE_CHECKING:
    from log_lake.doctor.health_finding import HealthFinding, LakeHealth

VERDICTS = ("well", "attention", "ill")
"""The verdicts from the best to the worst."""
MAX_FINDINGS = 100
"""The most findings that a task logs and passes on, the worst first."""


def check_verdict(word: Any, name: str, allowed: Sequence[str], *, who: str) -> str:
    """Returns the verdict that a DAG names, if it is allowed.  Raises ValueError."""
    if word not in allowed:
        raise ValueError(f"{who}: {name}={word!r}: use {' or '.join(allowed)}")
    return str(word)


def values_of(health: LakeHealth) -> dict[str, Any]:
    """Returns as plain values the verdict on the lake, how many pools have which verdict, and the first
    findings."""
    findings = [_plain(one) for one in health.all_findings[:MAX_FINDINGS]]
    counts = {verdict.word: count for verdict, count in health.counts().items()}
    return {"verdict": health.verdict.word, **counts, "findings": findings}


def log_health(log: logging.Logger, health: LakeHealth) -> None:
    """Logs the findings, worst first; a finding more serious than a note is logged as a warning."""
    for one in health.all_findings[:MAX_FINDINGS]:
        level = logging.WARNING if one.severity else logging.INFO
        since = "" if one.since is None else f" (since {human_time(one.since)})"
        mend = f"; {one.command}" if one.command else ""
        log.log(
            level, "%s: %s: %s%s%s", one.pool or "the lake", one.severity.name.lower(), one.says, since, mend
        )
    log.info("%s", summary(health))


def summary(health: LakeHealth) -> str:
    """Returns a line with the verdict on the lake, and the pools that are not well."""
    bad = sorted(one.pool for one in health.pools if one.verdict)
    which = f"; not well: {listed(bad)}" if bad else ""
    return f"{health.verdict.word}: {counted(len(health.pools), 'pool')}{which}"


def _plain(one: HealthFinding) -> dict[str, Any]:
    return {**vars(one), "severity": one.severity.name.lower()}
