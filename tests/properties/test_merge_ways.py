"""Whatever way a merge takes, it gives what a plain list of Python values sorted by key and age gives.

Four ways (windows, DataFusion, a delta laid over a bulk, tiny objects at once) are forced by `ScanLimits`, windows
also with row groups that go through the spool.  Records hold all types that objects store; fields are absent from
some objects; some objects are compacted, so that they hold sequences; ranges cut anywhere, also between and beyond
the values of a type.
"""

from __future__ import annotations

import datetime as dt
import decimal
import tempfile
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lake_core.keys import KeyRange, PoolKey
from lake_core.keys.encoding import AFTER, encode_key, from_scalar
from log_lake.lake import Lake
from log_lake.objects.containers.limits import ObjectLimits
from log_lake.reading.limits import ScanLimits
from log_lake.rewriting.compaction import compact
from log_lake.stores.local import LocalStore

EARLY, LATE = dt.datetime(1969, 12, 31, 23, 59, 59), dt.datetime(2026, 1, 2, 3, 4, 5, 678901)

VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int8": (pa.int8(), [-128, 0, 1, 127]),
    "int16": (pa.int16(), [-5, 0, 300]),
    "int32": (pa.int32(), [-5, 0, 1 << 20]),
    "int64": (pa.int64(), [-(2**63), -1, 0, 2**53 + 1, 2**63 - 1]),
    "uint8": (pa.uint8(), [0, 255]),
    "uint16": (pa.uint16(), [0, 65_535]),
    "uint32": (pa.uint32(), [0, 2**32 - 1]),
    "uint64": (pa.uint64(), [0, 2**53 + 1, 2**64 - 1]),
    "float": (pa.float32(), [-1.5, -0.0, 0.0, 2.5, float("inf"), float("nan")]),
    "double": (pa.float64(), [-1.5, -0.0, 0.0, 1e300, float("-inf"), float("nan")]),
    "decimal": (pa.decimal128(12, 3), [decimal.Decimal("-1.250"), decimal.Decimal("99.999")]),
    "wide decimal": (pa.decimal128(38, 0), [decimal.Decimal(10**37), decimal.Decimal(-1)]),
    "bool": (pa.bool_(), [False, True]),
    "string": (pa.string(), ["", "a", "a\0", "ab", "é" * 40]),
    "binary": (pa.binary(), [b"", b"\0", b"\0\xff", b"x" * 70]),
    "date": (pa.date32(), [dt.date(1969, 7, 20), dt.date(2026, 2, 3)]),
    "ms": (pa.timestamp("ms"), [EARLY, LATE.replace(microsecond=678000)]),
    "us": (pa.timestamp("us"), [EARLY, LATE]),
    "ns": (pa.timestamp("ns"), [-1, 0, 10**18 + 123_456_789]),
    "us UTC": (pa.timestamp("us", "UTC"), [EARLY.replace(tzinfo=dt.UTC), LATE.replace(tzinfo=dt.UTC)]),
    "ns UTC": (pa.timestamp("ns", "UTC"), [-1, 0, 10**18 + 123_456_789]),
    "time s": (pa.time32("ms"), [dt.time(0, 0, 1), dt.time(23, 59, 59)]),
    "time ns": (pa.time64("ns"), [0, 1, 86_399_999_999_999]),
    "duration": (pa.duration("us"), [dt.timedelta(-1), dt.timedelta(0, 1)]),
    "null": (pa.null(), []),
    "list": (pa.list_(pa.int64()), [[], [1, None, 2]]),
    "list of lists": (pa.list_(pa.list_(pa.string())), [[], [None, ["x"]]]),
    "struct": (
        pa.struct([("a", pa.int64()), ("b", pa.string())]),
        [{"a": None, "b": "x"}, {"a": 1, "b": ""}],
    ),
    "map": (pa.map_(pa.string(), pa.int64()), [[], [("a", 1), ("b", None)]]),
    "deep": (
        pa.list_(pa.struct([("m", pa.map_(pa.string(), pa.list_(pa.decimal128(5, 2))))])),
        [[], [{"m": [("k", [decimal.Decimal("1.25"), None])]}, {"m": None}]],
    ),
}
NESTED = {"list", "list of lists", "struct", "map", "deep"}
KEYS = [name for name in VALUES if name not in {*NESTED, "null"}]

WAYS = {
    "windows": ScanLimits(min_datafusion_rows=1 << 60, min_bulk_ratio=1 << 60, max_tiny_bytes=0),
    "in two passes": ScanLimits(
        min_datafusion_rows=1 << 60, min_bulk_ratio=1 << 60, max_streams=1, max_group=2, max_tiny_bytes=0
    ),
    "windows and spool": ScanLimits(
        min_datafusion_rows=1 << 60,
        min_bulk_ratio=1 << 60,
        buffer_bytes=1,
        min_share_bytes=1,
        max_tiny_bytes=0,
    ),
    "tiny objects at once": ScanLimits(min_datafusion_rows=1 << 60, min_bulk_ratio=1 << 60),
    "tiny objects by runs in the spool": ScanLimits(
        min_datafusion_rows=1 << 60, min_bulk_ratio=1 << 60, buffer_bytes=1, min_share_bytes=1
    ),
    "datafusion": ScanLimits(min_datafusion_rows=0, min_bulk_ratio=1 << 60),
    "a delta over a bulk": ScanLimits(min_datafusion_rows=1 << 60, min_bulk_ratio=0, max_batch_bytes=200),
    "a delta over a bulk, by datafusion": ScanLimits(min_datafusion_rows=0, min_bulk_ratio=0),
}


@dataclass(frozen=True)
class Load:
    """Records of so many keys and values; each field is one of VALUES."""

    fields: tuple[str, ...]
    rows: list[tuple[int, ...]]


@dataclass(frozen=True)
class Case:
    """A pool of one key type, its loads, which of them are compacted together, and a range."""

    key: str
    descending: bool
    second: bool
    loads: list[Load]
    compacted: list[bool]
    low: Any
    high: Any
    row_group: int
    batch_rows: int


def scalar(name: str, choice: int) -> Any:
    """One of the values of a type, or None."""
    _, values = VALUES[name]
    return None if choice == 0 or not values else values[(choice - 1) % len(values)]


BETWEEN = [0, 2.5, -0.5, float("nan"), 2**63, decimal.Decimal("0.0001"), "a", b"\0", dt.date(2000, 1, 1)]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    key = draw(st.sampled_from(KEYS))
    fields = draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=4, unique=True))
    loads = []
    for _ in range(draw(st.integers(2, 6))):
        own = tuple(f for f in fields if draw(st.booleans()))
        row = st.tuples(st.integers(1, 9), st.integers(0, 3), *(st.integers(0, 9) for _ in own))
        loads.append(Load(own, draw(st.lists(row, min_size=1, max_size=12))))
    values = st.integers(1, 9).map(lambda n: from_scalar(pa.scalar(scalar(key, n), VALUES[key][0])))
    bound = st.one_of(st.none(), values, values, st.sampled_from(BETWEEN))
    return Case(
        key,
        draw(st.booleans()),
        draw(st.booleans()),
        loads,
        draw(st.lists(st.booleans(), min_size=len(loads), max_size=len(loads))),
        draw(bound),
        draw(bound),
        draw(st.integers(1, 9)),
        draw(st.integers(1, 9)),
    )


def table_of(case: Case, number: int) -> pa.Table:
    load = case.loads[number]
    kind, _ = VALUES[case.key]
    columns = {"k": pa.array([scalar(case.key, row[0]) for row in load.rows], kind)}
    columns["k2"] = pa.array([None if row[1] == 0 else row[1] for row in load.rows], pa.int64())
    for i, name in enumerate(load.fields):
        columns[name] = pa.array([scalar(name, row[2 + i]) for row in load.rows], VALUES[name][0])
    columns["load"] = pa.array([number] * len(load.rows))
    columns["row"] = pa.array(range(len(load.rows)))
    return pa.table(columns)


def told(records: list[pa.Table], names: list[str]) -> list[str]:
    """Records as text, so that NaN equals itself and nothing is rounded."""
    return [repr({n: row[n] for n in names}) for table in records for row in exact(table).to_pylist()]


def exact(table: pa.Table) -> pa.Table:
    """Nanoseconds as integers: Python's times do not hold them."""
    for i, field in enumerate(table.schema):
        if pa.types.is_temporal(field.type) and getattr(field.type, "unit", "") == "ns":
            table = table.set_column(i, field.name, table.column(i).cast(pa.int64()))
    return table


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=60)
@given(cases())
def test_a_merge_gives_the_sorted_list_whatever_way_it_takes(way: str, case: Case) -> None:
    limits = replace(
        WAYS[way], max_batch_rows=case.batch_rows, objects=ObjectLimits(row_group=case.row_group)
    )
    key = PoolKey.parse(("k:desc" if case.descending else "k") + (",k2" if case.second else ""))
    with tempfile.TemporaryDirectory() as folder:
        pool = Lake.create_on(LocalStore(folder), limits=limits).create_pool("p", key=key)
        tables = [table_of(case, n) for n in range(len(case.loads))]
        for table in tables:
            pool.branch().append(table)
        by_age = sorted(pool.at().references, key=lambda r: r.seq)
        chosen = [r for r, wanted in zip(by_age, case.compacted, strict=True) if wanted]
        if chosen:
            compact(pool.branch(), chosen, outputs=2)

        view = pool.at()
        span = KeyRange(
            b"" if case.low is None else encode_key([case.low], key),
            None if case.high is None else encode_key([case.high], key) + AFTER,
        )
        if span.empty:
            return
        names = view.schema.names
        rows: list[tuple[bytes, str]] = []
        for table in tables:
            plain = exact(table).to_pylist()
            for i, row in enumerate(plain):
                held = [from_scalar(table["k"][i]), *([row["k2"]] if case.second else [])]
                rows.append((encode_key(held, key), repr({n: row.get(n) for n in names})))
        expected = [text for at, text in sorted(rows, key=lambda r: r[0]) if span.contains(at)]
        assert told(list(view.scan(key_range=span)), names) == expected
        compact(pool.branch(), view.references)
        assert told(list(pool.at().scan(key_range=span)), names) == expected
