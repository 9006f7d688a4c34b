"""Which interval of time a run of a DAG is of, if any; pure."""

from __future__ import annotations

import datetime as dt
from typing import Any

WITH_INTERVAL = ("scheduled", "backfill")
"""The types of runs that are of an interval.  To others, which a person, a DAG or an asset started, Airflow may
give the last interval before them, which the user did not ask to replace."""


def interval_of(dag_run: Any) -> tuple[dt.datetime, dt.datetime] | None:
    """The interval of a run; None if it has none."""
    if dag_run.run_type not in WITH_INTERVAL:
        return None
    begin, end = dag_run.data_interval_start, dag_run.data_interval_end
    return None if begin is None or end is None else (begin, end)
