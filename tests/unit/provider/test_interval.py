"""Which runs of a DAG are of an interval."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

import pytest

from airflow_lake.interval import interval_of

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
