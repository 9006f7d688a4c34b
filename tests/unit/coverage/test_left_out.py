"""Coverage of more intervals than one answer has: what is left out is said."""

from __future__ import annotations

import datetime as dt

import pytest

from log_lake.coverage.coverage import coverage_of
from log_lake.coverage.key_ranges import interval_range
from log_lake.coverage.schedule import MAX_INTERVALS
from log_lake.coverage.table import LEFT_OUT, coverage_table
from log_lake.lake import Lake
from log_lake.stores.memory import MemoryStore


@pytest.mark.parametrize("years", [1, 20])
def test_the_first_row_says_what_is_left_out(years: int) -> None:
    """Of twenty years by the hour the first ones are left out."""
    settings = {"type.at": "timestamp", "intervals.every": "hour"}
    pool = Lake.create_on(MemoryStore()).create_pool("hours", key="at", settings=settings)
    now = dt.datetime.now(dt.UTC).replace(minute=0, second=0, microsecond=0)
    first = now - dt.timedelta(days=365 * years)
    span = interval_range(first, now, key=pool.config.key, key_class="timestamp with zone")
    pool.branch().replace([], key_range=span)
    view = pool.at()
    rows = coverage_table(view).to_pylist()
    cut = coverage_of(view).cut_before
    if years == 1:
        assert cut is None
        assert (rows[0]["begin"], rows[0]["state"]) == (first, "held")
        return
    assert len(rows) <= MAX_INTERVALS + 1
    assert (rows[0]["begin"], rows[0]["end"], rows[0]["state"]) == (None, cut, LEFT_OUT)
    assert rows[1]["begin"] == cut
