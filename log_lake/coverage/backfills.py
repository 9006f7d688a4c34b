"""The backfills that load exactly the gaps of a coverage, as commands of Airflow; pure."""

from __future__ import annotations

import datetime as dt

from log_lake.coverage.coverage import Coverage
from log_lake.coverage.schedule import utc

_JUST_BEFORE = dt.timedelta(seconds=1)


def backfills_of(coverage: Coverage, *, dag_id: str) -> list[list[str]]:
    """The words of a command for each run of gaps that follow one another, in order.

    Both dates of a backfill are begins of intervals, and inclusive.  So the last is just before the end of the gap:
    the schedule of the DAG may cut time finer than the coverage does.  A gap may have had a run, so that ended
    runs are run again.
    """
    spans: list[tuple[dt.datetime, dt.datetime]] = []
    for gap in coverage.gaps:
        if spans and utc(spans[-1][1]) == utc(gap.begin):
            spans[-1] = spans[-1][0], gap.end
        else:
            spans.append((gap.begin, gap.end))
    return [
        [
            *("airflow", "backfill", "create", "--dag-id", dag_id),
            *("--from-date", begin.isoformat()),
            *("--to-date", (utc(end) - _JUST_BEFORE).astimezone(end.tzinfo).isoformat()),
            *("--reprocess-behavior", "completed"),
        ]
        for begin, end in spans
    ]
