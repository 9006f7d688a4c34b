"""Coverage of more intervals than one answer has: what is left out is said."""

from __future__ import annotations

import datetime as dt

import pytest

from log_lake.coverage import schedule
from log_lake.coverage.coverage import coverage_of
from log_lake.coverage.key_ranges import interval_range
from log_lake.coverage.table import LEFT_OUT, coverage_table
from log_lake.lake import Lake
from log_lake.stores.memory import MemoryStore

FIRST = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


@pytest.mark.parametrize("most", [5, 100_000])
def test_the_first_row_says_what_is_left_out(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(schedule, "MAX_INTERVALS", most)
    pool = Lake.create_on(MemoryStore()).create_pool("days", key="at", settings={"type.at": "timestamp"})
    span = interval_range(
        FIRST, FIRST + dt.timedelta(days=9), key=pool.config.key, key_class="timestamp with zone"
    )
    pool.branch().replace([], key_range=span)
    view = pool.at()
    rows = coverage_table(view).to_pylist()
    cut = coverage_of(view).cut_before
    if most > 5:
        assert cut is None
        assert (rows[0]["begin"], rows[0]["state"]) == (FIRST, "held")
        return
    assert len(rows) <= most + 1
    assert (rows[0]["begin"], rows[0]["end"], rows[0]["state"]) == (None, cut, LEFT_OUT)
    assert rows[1]["begin"] == cut
