"""Reads a published table with pyiceberg, and compares it with what the lake returns."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.lake.view import View
from log_lake.publish.run import PublishResult, publish_iceberg
from log_lake.stores.local import LocalStore

TYPES = {
    "bool": pa.array([True, False, None]),
    "int8": pa.array([-128, 127, None], pa.int8()),
    "int16": pa.array([-(2**15), 2**15 - 1, None], pa.int16()),
    "int32": pa.array([-(2**31), 2**31 - 1, None], pa.int32()),
    "int64": pa.array([-(2**63), 2**63 - 1, None], pa.int64()),
    "float": pa.array([-0.0, float("nan"), None], pa.float32()),
    "double": pa.array([float("-inf"), 1e300, None]),
    "decimal": pa.array([Decimal("-1.50"), Decimal("99999999.99"), None], pa.decimal128(10, 2)),
    "long decimal": pa.array([Decimal("-1.5"), Decimal(10) ** 36, None], pa.decimal128(38, 1)),
    "text": pa.array(["", "zürich \U0001f600", None]),
    "bytes": pa.array([b"", b"\x00\xff", None]),
    "date": pa.array([dt.date(1, 1, 1), dt.date(9999, 12, 31), None]),
    "timestamp": pa.array(
        [dt.datetime(1582, 10, 10), dt.datetime(2020, 1, 1, 0, 0, 0, 1), None], pa.timestamp("us")
    ),
    "instant": pa.array([0, 1, None], pa.timestamp("us", "UTC")),
    "time": pa.array([dt.time(0), dt.time(23, 59, 59, 999999), None], pa.time64("us")),
    "record": pa.array([{"a": 1, "b": {"c": ["x", None]}}, {"a": None, "b": None}, None]),
    "list": pa.array([[1, None], [], None], pa.list_(pa.int64())),
    "list of records": pa.array(
        [[{"a": 1}, {"a": None}], [], [{"a": 2}]], pa.list_(pa.struct({"a": pa.int64()}))
    ),
    "map": pa.array([[("a", 1), ("b", None)], [], None], pa.map_(pa.string(), pa.int64())),
}
"""Three values of each type that Iceberg has."""

ODD = {
    "u8": pa.array([0, 255, None], pa.uint8()),
    "u32": pa.array([0, 2**32 - 1, None], pa.uint32()),
    "u64": pa.array([0, 2**64 - 1, None], pa.uint64()),
    "ns": pa.array([1, 1_600_000_000_123_456_789, None], pa.timestamp("ns")),
    "instant ns": pa.array([1, None, 10**18], pa.timestamp("ns", "UTC")),
    "ms": pa.array([1, 1_600_000_000_123, None], pa.timestamp("ms")),
    "time ns": pa.array([1, None, 86_399_999_999_999], pa.time64("ns")),
    "time s": pa.array([1, None, 86_399], pa.time32("s")),
    "span": pa.array([1_500_000, None, -1], pa.duration("us")),
    "record": pa.array(
        [{"u": 1, "s": "a"}, None, {"u": None, "s": ""}], pa.struct({"u": pa.uint16(), "s": pa.string()})
    ),
    "list": pa.array([[2**64 - 1], [], None], pa.list_(pa.uint64())),
}
"""Three values of each type that Iceberg does not have, and that `publish.types=text` converts."""


def a_local_pool(folder: Path, *loads: Any, key: str = "k", **options: Any) -> Pool:
    """Makes the pool `p` of a new lake in a folder, because readers of Iceberg need files. Each table is a
    load."""
    pool = Lake.create_on(LocalStore(folder / "lake")).create_pool("p", key=key, **options)
    for load in loads:
        pool.branch().append(load if isinstance(load, pa.Table) else pa.table(load))
    return pool


def read_table(location: str, **scan: Any) -> pa.Table:
    """Returns the records of the table in a folder."""
    from pyiceberg.table import StaticTable

    return StaticTable.from_metadata(location).scan(**scan).to_arrow()


def values(rows: Iterable[dict[str, Any]]) -> list[str]:
    """Returns rows as sorted texts; a null member of a record counts as missing."""
    return sorted(repr(_plain(row)) for row in rows)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return sorted((name, _plain(member)) for name, member in value.items() if member is not None)
    if isinstance(value, list | tuple):
        return [_plain(member) for member in value]
    return bytes(value) if isinstance(value, bytearray) else value


def shown(view: View, *, without: Iterable[str] = ()) -> list[str]:
    """Returns the records that the lake returns, as `values` does; leaves out some fields."""
    columns = [name for name in view.plan().shown if name not in without]
    return values(row for table in view.scan(columns=columns) for row in table.to_pylist())


def check_published(pool: Pool, branch: str = "main", **options: Any) -> PublishResult:
    """Publishes the branch, and checks that all values in the table are those of the lake."""
    done = publish_iceberg(pool, branch=branch, **options)
    table = read_table(done.location)
    assert values(table.to_pylist()) == shown(pool.at(branch), without=options.get("without") or ())
    assert not {"_seq", "_place"} & set(table.schema.names)
    return done
