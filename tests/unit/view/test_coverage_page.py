"""The calendar of a pool: rows, columns, and what it says of each interval."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from log_lake.coverage.coverage import Coverage, IntervalCoverage
from log_lake.coverage.settings import EVERY, CoveragePolicy
from log_lake.lake import Lake
from log_lake.stores.memory import MemoryStore
from log_lake.view.coverage import MAX_CELLS, coverage_page, shown_of

DAY = dt.timedelta(days=1)


def days(number: int, *, lacking: tuple[int, ...] = (), state: str = "gap") -> Coverage:
    """So many days from 30 January 2026 on."""
    first = dt.datetime(2026, 1, 30, tzinfo=dt.UTC)
    return Coverage(
        CoveragePolicy(late=None if state == "gap" else DAY),
        tuple(
            IntervalCoverage(first + at * DAY, first + (at + 1) * DAY, state if at in lacking else "held")
            for at in range(number)
        ),
    )


def test_a_row_is_a_month_and_a_column_its_day() -> None:
    shown = shown_of(days(4, lacking=(1,)))
    assert [(row.name, [(cell.column, cell.state) for cell in row.cells]) for row in shown.rows] == [
        ("2026-01", [(29, "held"), (30, "gap")]),
        ("2026-02", [(0, "held"), (1, "held")]),
    ]
    assert (shown.total, shown.gaps, shown.late, shown.complete) == (4, 1, 0, "2026-01-31")
    assert shown.late_set is False


def test_late_days_are_counted_and_their_backfills_named() -> None:
    shown = shown_of(days(9, lacking=(0, 2, 3, 8), state="late"))
    assert (shown.gaps, shown.late, shown.complete, shown.backfills_in_all) == (4, 4, "", 3)
    assert (
        "--from-date 2026-02-01T00:00:00+00:00 --to-date 2026-02-02T23:59:59+00:00"
        in shown.backfills[1].command
    )
    assert (shown.backfills[1].first, shown.dag) == ("2026-02-01T00:00:00+00:00", "lake_intervals")


def test_only_the_newest_are_shown_and_all_are_counted() -> None:
    shown = shown_of(days(MAX_CELLS + 5, lacking=(0,)))
    assert sum(len(row.cells) for row in shown.rows) == MAX_CELLS
    assert (shown.total, shown.gaps) == (MAX_CELLS + 5, 1)


def test_a_cut_coverage_says_so() -> None:
    assert shown_of(days(4)).cut_before == ""
    assert shown_of(replace(days(4), is_cut=True)).cut_before == "2026-01-30"


@pytest.mark.parametrize("every", EVERY)
def test_every_interval_has_a_column_of_its_row(every: str) -> None:
    zone = ZoneInfo("Europe/Berlin")
    begins = [dt.datetime(2026, 10, 25, tzinfo=dt.UTC) + dt.timedelta(hours=hour) for hour in range(24)]
    intervals = tuple(IntervalCoverage(at.astimezone(zone), at.astimezone(zone), "held") for at in begins)
    shown = shown_of(Coverage(CoveragePolicy(every, zone), intervals))
    most = {"hour": 24, "day": 31, "week": 53, "month": 12}[every]
    assert all(0 <= cell.column < most for row in shown.rows for cell in row.cells)
    assert shown.zone == "Europe/Berlin"


def test_a_pool_whose_key_is_no_time_has_no_calendar() -> None:
    lake = Lake.create_on(MemoryStore())
    lake.create_pool("p", key="k").branch().append(pa.table({"k": [1]}))
    assert coverage_page(lake, "p").told is False
    lake.configure_pool("p", {"intervals.since": "2026-01-01"})
    assert coverage_page(lake, "p").gaps > 0
