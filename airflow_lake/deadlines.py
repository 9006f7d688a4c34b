"""The callback for a missed deadline of a DAG: it reports which intervals a pool lacks.

DeadlineAlert(
    reference=DeadlineReference.DAGRUN_QUEUED_AT,
    interval=timedelta(hours=6),
    callback=AsyncCallback(warn_of_gaps, kwargs={"pool": "visits"}),
)

Airflow's notifiers (mail, Slack) are callbacks too; this one needs none of their connections.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

from lake_core.naming import MAIN

log = logging.getLogger(__name__)

SHOWN = 5
"""How many gaps, from the first on, the warning names."""


async def warn_of_gaps(
    context: Mapping[str, Any] | None = None, *, pool: str, lake: str = "", branch: str = MAIN
) -> str:
    """Logs in the triggerer which intervals the pool lacks, as a warning, and returns that text; `context` is
    Airflow's, with the run.

    Reads the pool in a thread, because the triggerer has only one event loop.  Raises what opening the pool
    raises.
    """
    run = (context or {}).get("dag_run") or {}
    where = "/".join(
        str(run[name]) for name in ("dag_id", "run_id") if isinstance(run, Mapping) and run.get(name)
    )
    says = await asyncio.to_thread(_gaps, pool, lake, branch)
    text = f"a deadline has passed{f' of {where}' if where else ''}; {says}"
    log.warning("%s", text)
    return text


def _gaps(pool: str, lake: str, branch: str) -> str:
    """Returns which intervals the pool lacks, in words."""
    from airflow_lake.reach import lake_name, open_lake
    from lake_core.phrases import counted
    from log_lake.coverage.coverage import coverage_of

    coverage = coverage_of(open_lake(lake_name(lake)).pool(pool).at(branch))
    if not coverage.intervals:
        return f"{pool} holds no interval"
    if not coverage.gaps:
        return f"{pool} holds all of {counted(len(coverage.intervals), 'interval')}"
    first = ", ".join(gap.begin.isoformat() for gap in coverage.gaps[:SHOWN])
    lacks = f"{pool} lacks {len(coverage.gaps):,} of {counted(len(coverage.intervals), 'interval')}"
    cut = f" (those before {cut.isoformat()} are left out)" if (cut := coverage.cut_before) else ""
    return f"{lacks}, the first: {first}{cut}. lake coverage {pool} --backfill prints what loads them"
