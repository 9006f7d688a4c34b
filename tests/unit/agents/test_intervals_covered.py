"""Empty intervals by the intervals agent: the first load of one says that it is held, others commit nothing."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

from log_lake.agents.load_files import load_files
from log_lake.coverage.coverage import coverage_of
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.lake.results import LoadResult
from log_lake.stores.memory import MemoryStore
from log_lake.workers import Here

DAY = dt.timedelta(days=1)
FIRST = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def load_empty(lake: Lake, number: int) -> LoadResult:
    begin = FIRST + number * DAY
    workers = Here.of(lake.context)
    return load_files(workers, lake, pool_name="p", files=[], consume=False, interval=(begin, begin + DAY))


def states(pool: Pool) -> list[str]:
    return [one.state for one in coverage_of(pool.at(), since=FIRST, until=FIRST + 3 * DAY).intervals]


@pytest.mark.parametrize("key", ["t", "t:desc"])
@pytest.mark.parametrize(
    "record", [FIRST, FIRST.replace(tzinfo=None), FIRST.date(), 1_767_225_600, "2026-01-01"], ids=repr
)
def test_an_empty_interval_is_held_before_and_after_the_first_record(key: str, record: object) -> None:
    lake = Lake.create_on(MemoryStore())
    pool = lake.create_pool("p", key=key, settings={"intervals.source": "/in/%Y-%m-%d"})
    first = load_empty(lake, 1)
    assert (first.version, first.records) == (1, 0)
    assert states(pool) == ["gap", "held", "gap"]
    assert load_empty(lake, 1).version is None
    pool.branch().append(pa.table({"t": [record]}))
    assert states(pool) == ["gap", "held", "gap"]
    assert load_empty(lake, 2).version == 3
    assert load_empty(lake, 0).version == 4, "it removes the record"
    assert states(pool) == ["held", "held", "held"]
    assert pool.at().to_table().num_rows == 0
    assert load_empty(lake, 0).version is None
    pool.branch().revert("1")
    assert states(pool) == ["held", "gap", "held"]
