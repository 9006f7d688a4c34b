"""`lake:health`: one row for each finding, and one for each pool without findings."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa

from log_lake.doctor.examine import examine
from log_lake.doctor.health_finding import HealthFinding, LakeHealth, verdict_of
from log_lake.lake import Lake

HEALTH = pa.schema(
    [
        *((name, pa.string()) for name in ("pool", "verdict", "kind", "severity", "says", "command")),
        *((name, pa.timestamp("us", "UTC")) for name in ("since", "seen")),
    ]
)
"""The columns of `lake:health`.  `pool` is null for the lake itself; `seen`: when the pool was looked at."""


def health_table(lake: Lake) -> pa.Table:
    """Returns the health of the lake now, worst first within each pool.  Raises what `examine` raises."""
    return table_of(examine(lake))


def table_of(health: LakeHealth) -> pa.Table:
    """Returns the health as a table: the lake, then its pools by name."""
    parts = [("", verdict_of(health.findings), health.findings, health.now)]
    parts += [(one.pool, one.verdict, one.findings, one.seen) for one in health.pools]
    rows = [
        {"pool": pool or None, "verdict": verdict.word, "seen": _time(seen)} | _row(one)
        for pool, verdict, findings, seen in parts
        for one in (findings or (None,))
    ]
    return pa.Table.from_pylist(rows, schema=HEALTH)


def _row(one: HealthFinding | None) -> dict[str, object]:
    if one is None:
        return {}
    return {
        "kind": one.kind,
        "severity": one.severity.name.lower(),
        "says": one.says,
        "command": one.command or None,
        "since": None if one.since is None else _time(one.since),
    }


def _time(seconds: float) -> dt.datetime:
    return dt.datetime.fromtimestamp(seconds, dt.UTC)
