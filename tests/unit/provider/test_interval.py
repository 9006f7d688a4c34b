"""Which runs of a DAG are of an interval."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import MultipleCronTriggerTimetable

from airflow_lake.interval import in_zone, interval_of, refuse_given, zone_of
from lake_core.errors import InvalidInput

BEGIN, END = (dt.datetime(2026, 1, day, tzinfo=dt.UTC) for day in (1, 2))


@dataclass
class Run:
    run_type: str
    data_interval_start: dt.datetime | None = BEGIN
    data_interval_end: dt.datetime | None = END


@pytest.mark.parametrize("run_type", ["scheduled", "backfill"])
def test_a_run_of_a_schedule_or_a_backfill_is_of_its_interval(run_type: str) -> None:
    assert interval_of(Run(run_type)) == (BEGIN, END)
    assert interval_of(Run(run_type, None, None)) is None


@pytest.mark.parametrize(
    "run_type", ["manual", "operator_triggered", "asset_triggered", "asset_materialization", "of tomorrow"]
)
def test_a_run_that_something_else_started_is_of_no_interval_whatever_airflow_gives_it(run_type: str) -> None:
    assert interval_of(Run(run_type)) is None


def test_a_run_by_hand_is_of_its_interval_if_the_dag_means_it() -> None:
    assert interval_of(Run("manual"), by_hand=True) == (BEGIN, END)
    assert interval_of(Run("manual", None, None), by_hand=True) is None


def refused(run: Any, *asked: Any, interval: Any = None, by_hand: bool = False) -> bool:
    try:
        refuse_given(run, asked=asked, interval=interval, by_hand=by_hand, task="t")
    except InvalidInput as error:
        return "Nothing was changed. Start a backfill" in str(error)
    return False


START = "{{ data_interval_start }}"


@pytest.mark.parametrize(
    "asked",
    [
        START,
        "{{ data_interval_end | ds }}",
        "k >= '{{ dag_run.data_interval_start }}'",
        ["/in/{{ data_interval_start.strftime('%H') }}"],
        "{% set day = prev_data_interval_start_success %}{{ day }}",
    ],
)
def test_bounds_and_files_of_the_interval_of_a_run_by_hand_are_refused(asked: Any) -> None:
    assert refused(Run("manual"), None, asked)
    assert refused(Run("operator_triggered"), asked)
    assert not refused(Run("manual"), asked, by_hand=True)
    assert not refused(Run("manual", None, None), asked)
    assert not any(refused(Run(kind), asked) for kind in ("scheduled", "backfill"))
    assert not refused(Run("asset_triggered", None, None), asked), "Airflow gives it no interval"


def test_other_bounds_are_not_refused_unless_they_are_that_interval() -> None:
    texts = ["{{ ds }}", "{{ params.day }}", "2026-01-01", "data_interval_start", None]
    assert not refused(Run("manual"), *texts, interval=(BEGIN, END + (END - BEGIN)))
    assert refused(Run("manual"), *texts, interval=(BEGIN, END))
    assert not refused(None, START)


def test_an_interval_has_the_times_of_its_schedules_zone() -> None:
    """A day of Berlin in which the clock is put forward: its begin and its end have different offsets."""
    day = dt.datetime(2026, 3, 28, 23, tzinfo=dt.UTC), dt.datetime(2026, 3, 29, 22, tzinfo=dt.UTC)
    texts = [moment.isoformat() for moment in in_zone(day, "Europe/Berlin")]
    assert texts == ["2026-03-29T00:00:00+01:00", "2026-03-30T00:00:00+02:00"]
    assert {type(moment) for moment in in_zone(day, "Europe/Berlin")} == {dt.datetime}


def test_the_zone_is_that_of_the_timetable_otherwise_that_of_the_dag() -> None:
    tokyo, without = SimpleNamespace(timezone="Asia/Tokyo"), SimpleNamespace()
    by_assets_too, several = (
        SimpleNamespace(timetable=tokyo),
        MultipleCronTriggerTimetable(
            "@daily", "0 12 * * *", timezone="Asia/Tokyo", interval=dt.timedelta(hours=12)
        ),
    )
    timetables = (tokyo, by_assets_too, several, without)
    dags = [SimpleNamespace(timetable=one, timezone="UTC") for one in timetables]
    assert [zone_of(dag) for dag in dags] == ["Asia/Tokyo", "Asia/Tokyo", "Asia/Tokyo", "UTC"]
