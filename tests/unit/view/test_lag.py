"""Which agents lag in a pool."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from lake_core.ids import IdSource
from log_lake.lake import Lake
from log_lake.settings import Settings
from log_lake.stores.memory import MemoryStore
from log_lake.view.figures import PoolFigures
from log_lake.view.overview import FRESH_SECONDS, Overview, lag_of
from tests.support.clocks import DAY, Clock

POLICY = Settings({"compact.depth": "8", "checkpoint.entries": "100", "tombstones.apply": "1d"})
NOW = 1_800_000_000.0


def figures(**values: Any) -> PoolFigures:
    names = (
        "version",
        "records",
        "stored",
        "is_exact",
        "beside",
        "references",
        "objects",
        "depth",
        "tombstones",
        "branches",
    )
    return PoolFigures(**{**dict.fromkeys((*names, "live", "held"), 0), **values})


@pytest.mark.parametrize(
    ("values", "tail", "lag"),
    [
        ({"depth": 8, "oldest_delete": NOW - DAY}, 100, {}),
        ({"depth": 9}, 0, {"compact": "9 objects overlap; the policy allows 8"}),
        (
            {"oldest_delete": NOW - 3 * DAY},
            0,
            {"tombstones": "a delete is 3 d old; it is due after 1 d"},
        ),
        ({}, 101, {"checkpoint": "101 entries since the newest checkpoint; one is due after 100"}),
    ],
)
def test_an_agent_lags_if_the_pool_is_beyond_its_policy(
    values: dict[str, Any], tail: int, lag: dict[str, str]
) -> None:
    assert lag_of(figures(**values), POLICY, tail=tail, now=NOW) == lag


def test_settings_that_cannot_be_read_are_no_lag() -> None:
    assert lag_of(figures(depth=99), Settings({"compact.depth": "many"}), tail=0, now=NOW) == {}


def test_the_overview_tells_the_lag_of_each_pool_as_time_goes_by() -> None:
    clock = Clock(NOW)
    lake = Lake.create_on(MemoryStore(clock=clock), ids=IdSource(clock=clock))
    pool = lake.create_pool("p", key="k", settings={"compact.depth": "1", "tombstones.apply": "1d"})
    for key in (1, 2):
        pool.branch().append(pa.table({"k": [key, key + 10]}))
    pool.branch().delete(where="k = 1")
    overview = Overview(clock)
    (row,) = overview.table(lake).pools
    assert sorted(row.lag) == ["compact"]
    clock.now += DAY + FRESH_SECONDS
    (row,) = overview.table(lake).pools
    assert sorted(row.lag) == ["compact", "tombstones"]
