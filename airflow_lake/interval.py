"""Finds the interval of time that a run of a DAG is for, and refuses an interval that the run did not ask for;
pure.

If a person, a program or another DAG starts a run, Airflow gives it an interval too: the last one of the
schedule that ended before the run's date.  So a run of today has yesterday's interval, but today's `{{ ds }}`.
A replace would then remove yesterday's records, because today's folder is empty.  A run of a schedule or a
backfill is for its interval.  A run that assets start has none.  With `by_hand`, other runs may work on the
interval that Airflow gives them.

Called by the operators that replace or delete and the erasure agent (`refuse_given`), and by the intervals
agent (`interval_of`).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from typing import Any

from airflow_lake import given

Interval = tuple[dt.datetime, dt.datetime]

WITH_INTERVAL = ("scheduled", "backfill")
"""The types of runs that are for an interval."""
MARK = "data_interval"
"""The common prefix of Airflow's names for the interval's values in a template."""


def interval_of(dag_run: Any, *, by_hand: bool = False) -> Interval | None:
    """Returns the interval of a run; None if the run has none.  With `by_hand`, it also returns the interval that
    Airflow gives any other run."""
    return _given(dag_run) if by_hand or dag_run.run_type in WITH_INTERVAL else None


def zone_of(dag: Any) -> Any:
    """Returns the zone of a DAG's schedule, as its name or an object of pendulum; UTC if the schedule has
    none."""
    if dag is None:
        return "UTC"
    timetable = getattr(dag.timetable, "timetable", dag.timetable)  # of a schedule by assets or time
    several = getattr(timetable, "timetables", ())  # by several cron lines, which have one zone
    zones = (getattr(one, "timezone", None) for one in (timetable, *several))
    return next(filter(None, zones), dag.timezone)


def in_zone(interval: Interval, zone: Any) -> Interval:
    """Returns the same interval, in times of that zone; Airflow gives times in UTC."""
    import pendulum

    texts = [pendulum.instance(moment).in_timezone(zone).isoformat() for moment in interval]
    begin, end = map(dt.datetime.fromisoformat, texts)  # pendulum's own have another arithmetic
    return begin, end


def refuse_given(
    dag_run: Any, *, asked: Iterable[Any], interval: Interval | None, by_hand: bool, task: str
) -> None:
    """Raises InvalidInput if a task would work on an interval that Airflow gave the run and that does not fit
    the run's date.

    `asked`: the bounds and files in the DAG file, before templates are rendered; `interval`: the bounds, if they
    are times.
    """
    from lake_core.errors import InvalidInput

    if by_hand or dag_run is None or dag_run.run_type in WITH_INTERVAL:
        return
    of_run = _given(dag_run)
    if of_run is None or not (interval == of_run or any(map(_reads_interval, asked))):
        return
    begin, end = (moment.isoformat() for moment in of_run)
    raise InvalidInput(
        f"{task}: this run was started by hand, or by another DAG: its interval, {begin} to {end}, is the last one "
        "before its date. Nothing was changed. Start a backfill of the interval that you mean; or say by_hand=True "
        "in the DAG: then such runs work on the interval that Airflow gives them"
    )


def _given(dag_run: Any) -> Interval | None:
    begin, end = dag_run.data_interval_start, dag_run.data_interval_end
    return None if begin is None or end is None else (begin, end)


def _reads_interval(value: Any) -> bool:
    """Whether a template in the value reads an interval of a run."""
    if isinstance(value, str):
        return MARK in value and given.is_template(value)
    return isinstance(value, list | tuple | set | frozenset) and any(map(_reads_interval, value))
