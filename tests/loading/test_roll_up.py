"""roll_up: every way of loading stores times rounded down, and a value that is no time is refused in one line."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lake_core.errors import InvalidInput
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.loading.roll_up import rolled
from log_lake.sql_writes import execute
from log_lake.stores.memory import MemoryStore

TIME = dt.datetime(2026, 1, 31, 10, 40, 12, 345678, tzinfo=dt.UTC)
HOUR = dt.datetime(2026, 1, 31, 10, tzinfo=dt.UTC)


@pytest.fixture
def fresh() -> Lake:
    return Lake.create_on(MemoryStore())


def pool_in(lake: Lake, kind: str = "append", *, roll_up: str = "ts:1h", **settings: str) -> Pool:
    return lake.create_pool(
        "p",
        key="ts,k",
        kind=kind,
        aggregates={"n": "sum", "c": "count"} if kind == "aggregate" else None,
        settings={"roll_up": roll_up, "type.ts": "timestamp", **settings},
    )


def records(*times: dt.datetime | None, n: int = 1) -> pa.Table:
    column = pa.array(times, pa.timestamp("us", "UTC"))
    return pa.table({"ts": column, "k": [1] * len(times), "n": [n] * len(times)})


def rows(pool: Pool) -> list[dict[str, Any]]:
    return pool.at().to_table().to_pylist()


@pytest.mark.parametrize(
    ("grain", "down"),
    [
        ("1s", TIME.replace(microsecond=0)),
        ("1m", TIME.replace(second=0, microsecond=0)),
        ("5m", TIME.replace(minute=40, second=0, microsecond=0)),
        ("1h", HOUR),
        ("1d", HOUR.replace(hour=0)),
    ],
)
def test_each_grain_rounds_down(fresh: Lake, grain: str, down: dt.datetime) -> None:
    pool = pool_in(fresh, roll_up=f"ts:{grain}")
    pool.branch().append(records(TIME))
    assert [row["ts"] for row in rows(pool)] == [down]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "+05:30"])
def test_times_of_every_unit_before_and_after_1970_are_rounded_down(unit: str, zone: str | None) -> None:
    times = [
        dt.datetime(1969, 12, 31, 23, 59),
        None,
        dt.datetime(1970, 1, 1, 0, 59),
        dt.datetime(1900, 1, 1, 1),
    ]
    plain = pa.timestamp(unit)
    column = pa.chunked_array([pa.array(times[:2], plain), pa.array(times[2:], plain)])
    table = pa.table({"ts": column.cast(pa.int64()).cast(pa.timestamp(unit, zone))})
    down = rolled(table, ("ts", 3600))
    assert down.schema == table.schema
    hours = [dt.datetime(1969, 12, 31, 23), None, dt.datetime(1970, 1, 1), dt.datetime(1900, 1, 1, 1)]
    assert down.column("ts").cast(pa.int64()).cast(plain).to_pylist() == hours
    assert rolled(down, ("ts", 3600)) == down


def test_null_and_dates_stay_and_without_the_field_nothing_happens() -> None:
    table = pa.table({"ts": pa.nulls(1), "day": [dt.date(2026, 1, 31)]})
    for name in ("ts", "day", "other"):
        assert rolled(table, (name, 3600)) == table


@pytest.mark.parametrize("value", ["2026-01-31T10:40:00Z", 1_800_000_000, 1.5])
def test_another_value_is_refused(fresh: Lake, value: Any) -> None:
    pool = fresh.create_pool("p", key="k", settings={"roll_up": "t:1h"})
    with pytest.raises(
        InvalidInput, match=r"field 't' is of type .* rounds timestamps; declare its type .*type\.t"
    ):
        pool.branch().append(pa.table({"k": [1], "t": [value]}))
    pool.branch().append(pa.table({"k": [1], "t": pa.nulls(1)}))


def test_nanoseconds_that_have_no_room_are_refused() -> None:
    table = pa.table({"ts": pa.array([-(2**63) + 1], pa.timestamp("ns"))})
    with pytest.raises(InvalidInput, match="load the time in microseconds"):
        rolled(table, ("ts", 3600))


def test_an_aggregate_pool_combines_what_is_rolled_up(fresh: Lake) -> None:
    pool = pool_in(fresh, "aggregate")
    pool.branch().append(records(TIME, TIME.replace(minute=1), TIME.replace(hour=11)))
    pool.branch().append(records(TIME.replace(minute=59), n=5))
    found = [(row["ts"], int(row["n"]), row["c"]) for row in rows(pool)]
    assert found == [(HOUR, 7, 3), (HOUR.replace(hour=11), 1, 1)]


def test_files_and_statements_and_inlined_loads_are_rolled_up(fresh: Lake, tmp_path: Path) -> None:
    pool = pool_in(fresh, **{"load.inline": "64KiB"})
    file = tmp_path / "a.ndjson"
    file.write_text('{"ts": "2026-01-31T10:40:00Z", "k": 1}\n')
    pool.branch().load([str(file)])
    pool.branch().load([str(file)], bulk=True)
    execute(fresh, "INSERT INTO p BY NAME SELECT TIMESTAMPTZ '2026-01-31 10:50:00Z' AS ts, 2 AS k")
    execute(fresh, "UPDATE p SET ts = TIMESTAMPTZ '2026-01-31 12:50:00Z' WHERE k = 2")
    assert [(row["ts"], row["k"]) for row in rows(pool)] == [(HOUR, 1), (HOUR, 1), (HOUR.replace(hour=12), 2)]
    assert any(reference.data for reference in pool.at().references)


@pytest.mark.parametrize("kind", ["append", "upsert"])
def test_keys_that_are_named_are_rolled_up_too(fresh: Lake, kind: str) -> None:
    pool = pool_in(fresh, kind)
    pool.branch().append(records(TIME, TIME.replace(hour=12)))
    pool.branch().replace_keys(records(TIME.replace(minute=3), n=9))
    assert [(row["ts"], row["n"]) for row in rows(pool)] == [(HOUR, 9), (HOUR.replace(hour=12), 1)]
    pool.branch().delete_keys(records(TIME).select(["ts", "k"]))
    assert [row["ts"] for row in rows(pool)] == [HOUR.replace(hour=12)]


def test_conditions_and_ranges_meet_the_rounded_time(fresh: Lake) -> None:
    pool = pool_in(fresh)
    branch, later = pool.branch(), TIME.replace(minute=50)
    branch.append(records(TIME))
    with pytest.raises(InvalidInput, match="do not fulfil the condition"):
        branch.replace_with(records(later), where="ts > '2026-01-31T10:30:00Z'")
    half = pool.at().key_range(low=HOUR.replace(minute=30), high=HOUR.replace(hour=11))
    with pytest.raises(InvalidInput, match="outside the range"):
        branch.replace_with(records(later), key_range=half)
    branch.delete(where="ts = '2026-01-31T10:00:00Z'")
    assert rows(pool) == []


@pytest.mark.parametrize("text", ["ts", "ts:", ":1h", "ts:7m", "ts:2d", "ts:0s", "ts:0.5s", "ts:hour"])
def test_a_text_that_is_no_grain_is_refused(fresh: Lake, text: str) -> None:
    with pytest.raises(InvalidInput, match=r"setting roll_up="):
        pool_in(fresh, roll_up=text)


def test_where_the_exact_time_would_stay_it_is_refused(fresh: Lake) -> None:
    with pytest.raises(InvalidInput, match="records keep their exact times; use format=parquet"):
        pool_in(fresh, format="zng")
    with pytest.raises(InvalidInput, match="is a path into records"):
        fresh.create_pool("q", key="e.ts", settings={"roll_up": "e.ts:1h"})
    pool = pool_in(fresh, "aggregate", format="zng")
    pool.branch().append(records(TIME))
    assert [row["ts"] for row in rows(pool)] == [HOUR]
