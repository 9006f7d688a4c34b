"""Pools in pandas and ibis, by the lines of docs/python.md: all values of all types."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import duckdb
import ibis
import pandas
import pyarrow as pa
import pytest

from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.stores.memory import MemoryStore
from log_lake.system_tables import as_dataset, register

NANOS = pa.array([1, None, 1_700_000_000_123_456_789], pa.timestamp("ns"))
VALUES = {
    "k": pa.array([1, 2, 3], pa.int64()),
    "ns": NANOS,
    "us": pa.array([dt.datetime(1500, 1, 1), None, dt.datetime(9999, 12, 31)], pa.timestamp("us")),
    "zoned": pa.array([dt.datetime(2026, 1, 1, tzinfo=dt.UTC), None, None], pa.timestamp("us", "UTC")),
    "money": pa.array([Decimal("12345678901234567890.25"), None, Decimal("-0.01")], pa.decimal128(30, 2)),
    "day": pa.array([dt.date(1, 1, 1), None, dt.date(9999, 12, 31)]),
    "time": pa.array([dt.time(23, 59, 59, 999_999), None, dt.time(0)]),
    "small": pa.array([-128, None, 127], pa.int8()),
    "unsigned": pa.array([2**64 - 1, None, 2**53 + 1], pa.uint64()),
    "large": pa.array([2**63 - 1, None, -(2**63)], pa.int64()),
    "is": [True, None, False],
    "f": [1.5, None, float("-inf")],
    "s": ["é🎈", None, ""],
    "bytes": pa.array([b"\x00\xff", None, b""]),
    "list": [[1, None], None, []],
    "record": [{"a": 1, "b": ["x", None]}, None, {"a": None, "b": None}],
    "records": [[{"x": Decimal("0.1"), "t": dt.datetime(2026, 1, 1)}], None, [None]],
}


@pytest.fixture
def lake() -> Lake:
    return Lake.create_on(MemoryStore())


@pytest.fixture
def pool(lake: Lake) -> Pool:
    """Two objects, each with all types."""
    pool = lake.create_pool("typed", key="k")
    records = pa.table(VALUES)
    for part in (records.slice(0, 2), records.slice(2)):
        pool.branch().append(part)
    return pool


def plain(table: pa.Table) -> list[list[object]]:
    """The values of each column; timestamps of nanoseconds as numbers, since Python has none."""
    return [
        (column.cast(pa.int64()) if column.type == NANOS.type else column).to_pylist()
        for column in table.columns
    ]


def test_pandas_with_types_of_arrow_has_every_value(pool: Pool) -> None:
    view = pool.at()
    frame = pa.table(view).to_pandas(types_mapper=pandas.ArrowDtype)
    assert plain(pa.Table.from_pandas(frame, schema=view.to_table().schema)) == plain(pa.table(VALUES))
    few = view.to_reader(columns=["k"], where="k > 1").read_pandas()
    assert few["k"].tolist() == [2, 3]


def test_pandas_with_types_of_its_own_rounds_integers_beside_nulls(pool: Pool) -> None:
    """docs/python.md says so: NumPy has no null among integers, and takes floats."""
    frame = pandas.api.interchange.from_dataframe(pool.at())
    assert list(frame.columns) == list(VALUES)
    assert frame["money"].tolist() == VALUES["money"].to_pylist()  # type: ignore[union-attr]
    assert frame["ns"].tolist()[2].value == 1_700_000_000_123_456_789
    assert frame["unsigned"].tolist()[2] == 2.0**53


def test_ibis_has_every_value_of_a_view_and_of_the_pools_of_a_connection(lake: Lake, pool: Pool) -> None:
    expected = plain(pa.table(VALUES))
    records = ibis.memtable(as_dataset(pool.at()))
    assert plain(records.order_by("k").to_pyarrow()) == expected
    mine = duckdb.connect()
    register(lake, mine)
    typed = ibis.duckdb.from_connection(mine).table("typed")
    assert plain(typed.order_by("k").to_pyarrow()) == expected
    assert typed.filter(typed.small < 0).select("s").to_pyarrow().to_pylist() == [{"s": "é🎈"}]
    assert typed.group_by(typed.day.isnull()).agg(n=typed.count()).n.sum().to_pyarrow().as_py() == 3
