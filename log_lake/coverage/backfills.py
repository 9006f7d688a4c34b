"""The backfills of Airflow that load exactly the gaps of a coverage; pure."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from log_lake.coverage.coverage import Coverage
from log_lake.coverage.schedule import utc

_JUST_BEFORE = dt.timedelta(seconds=1)


@dataclass(frozen=True)
class Backfill:
    """A backfill for gaps that follow one another: its first and last date, both inclusive."""

    first: dt.datetime
    last: dt.datetime

    def command(self, dag_id: str) -> list[str]:
        """Returns the words of the command that starts the backfill."""
        return [
            *("airflow", "backfill", "create", "--dag-id", dag_id),
            *("--from-date", self.first.isoformat()),
            *("--to-date", self.last.isoformat()),
            *("--reprocess-behavior", "completed"),
        ]


def backfills_of(coverage: Coverage) -> list[Backfill]:
    """Returns a backfill for each run of gaps that follow one another, in order.

    Both dates of a backfill are begins of intervals, and inclusive.  So the last is just before the end of the
    gap: the schedule of the DAG may cut time finer than the coverage does.  A gap may have had a run already;
    so the backfill also repeats runs that have ended.
    """
    spans: list[tuple[dt.datetime, dt.datetime]] = []
    for gap in coverage.gaps:
        if spans and utc(spans[-1][1]) == utc(gap.begin):
            spans[-1] = spans[-1][0], gap.end
        else:
            spans.append((gap.begin, gap.end))
    return [Backfill(begin, (utc(end) - _JUST_BEFORE).astimezone(end.tzinfo)) for begin, end in spans]
