"""Age-off: what is too old is not seen, compaction drops it, and objects that hold nothing else go."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

from lake_core.errors import InvalidInput
from lake_core.ids import IdSource
from log_lake.agents.tombstones import run as tombstones
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.rewriting.compaction import compact
from log_lake.stores.memory import MemoryStore
from tests.support.clocks import DAY, Clock

NOW = 1_800_000_000.0


def instant(day: float) -> dt.datetime:
    return dt.datetime.fromtimestamp(NOW + day * DAY, dt.UTC)


KINDS: dict[str, Any] = {
    "timestamp": (instant, pa.timestamp("us", "UTC")),
    "without zone": (lambda day: instant(day).replace(tzinfo=None), pa.timestamp("ns")),
    "date": (lambda day: instant(day).date(), pa.date32()),
    "seconds": (lambda day: NOW + day * DAY, pa.float64()),
}


def pool_of(clock: Clock, kind: str = "append", **settings: str) -> Pool:
    ids = IdSource(clock=clock, entropy=IdSource().entropy)
    lake = Lake.create_on(MemoryStore(clock=clock), ids=ids)
    return lake.create_pool("p", key="ts,k", kind=kind, settings={"age_off": "ts:10d", **settings})


def seen(pool: Pool) -> list[int]:
    return [r["k"] for r in pool.at().to_table().to_pylist()]


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("kind", ["append", "upsert", "aggregate"])
def test_records_go_as_time_passes(name: str, kind: str) -> None:
    value, arrow = KINDS[name]
    clock = Clock(NOW)
    pool = pool_of(clock, kind)
    days = [-9, -5, -1]
    for day in days:
        pool.branch().append(pa.table({"ts": pa.array([value(day)], arrow), "k": [day]}))
    assert seen(pool) == days
    clock.now = NOW + 3 * DAY
    assert seen(pool) == [-5, -1]
    compact(pool.branch(), pool.at().references, outputs=1)
    assert seen(pool) == [-5, -1]
    assert pool.at().records == 2
    fates = {v.fate for v in pool.at().explain(pool.at().key_range())}
    assert fates == {"combined" if kind == "aggregate" else "visible"}
    clock.now = NOW + 20 * DAY
    assert seen(pool) == []


def test_null_has_no_age_and_without_the_field_nothing_has() -> None:
    clock = Clock(NOW)
    pool = pool_of(clock, age_off="seen:10d")
    pool.branch().append(pa.table({"ts": [1], "k": [1]}))
    assert seen(pool) == [1]
    pool.branch().append(pa.table({"ts": [2, 3], "k": [2, 3], "seen": pa.array([None, NOW], pa.float64())}))
    clock.now = NOW + 30 * DAY
    assert seen(pool) == [1, 2]


def test_the_agent_takes_objects_that_hold_nothing_else() -> None:
    clock = Clock(NOW)
    pool = pool_of(clock)
    for day in (-9.0, -1.0):
        times = [
            int(NOW + day * DAY),
            int(NOW + (day + 5) * DAY),
        ]  # a double could be NaN, which is never old
        pool.branch().append(pa.table({"ts": times, "k": [1, 2]}))
    clock.now = NOW + 7 * DAY
    did = tombstones.apply(pool.branch(), now=clock())
    assert (did.searched, did.rewritten, did.left) == (0, 1, 0)
    assert len(pool.at().references) == 1
    assert tombstones.plan(pool.branch(), now=clock()).idle


@pytest.mark.parametrize("text", ["ts", "ts:", ":10d", "ts:10", "ts:ten days"])
def test_a_setting_that_is_none_is_said(text: str) -> None:
    with pytest.raises(InvalidInput, match="age_off="):
        pool_of(Clock(NOW), age_off=text)


def test_in_an_aggregate_pool_the_field_must_be_of_the_key() -> None:
    with pytest.raises(InvalidInput, match=r"must name a field of the key \(ts,k\)"):
        pool_of(Clock(NOW), "aggregate", age_off="seen:10d")


def test_a_record_whose_field_is_no_time_does_not_age() -> None:
    clock = Clock(NOW)
    pool = pool_of(clock, age_off="s:10d")
    pool.branch().append(pa.table({"ts": [1], "k": [1], "s": ["x"]}))
    pool.branch().append(
        pa.table({"ts": [1], "k": [2], "s": pa.array([instant(0)], pa.timestamp("us", "UTC"))})
    )
    pool.branch().append(pa.table({"ts": [1], "k": [3], "s": [NOW]}))
    clock.now = NOW + 20 * DAY
    assert pool.at().to_table(columns=["k"]).to_pydict() == {"k": [1]}
