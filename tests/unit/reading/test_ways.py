"""Cases in which one way of merging once failed; that all ways agree is tests/properties/test_merge_ways.py."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from log_lake.reading.limits import ScanLimits
from log_lake.rewriting.compaction import compact
from log_lake.stores.local import LocalStore
from tests.support.pools import a_pool, compact_all

BY_DATAFUSION = ScanLimits(min_datafusion_rows=0)
OVERLAID = ScanLimits(min_bulk_ratio=2)


@pytest.mark.parametrize(
    "values",
    [
        pa.array([[1], None], pa.list_(pa.int64())),
        pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64())),
        pa.array([[{"a": [1]}], None], pa.list_(pa.struct([("a", pa.list_(pa.int8()))]))),
    ],
    ids=["list", "map", "list of records"],
)
def test_datafusion_merges_an_object_that_lacks_a_nested_field(tmp_path: Path, values: pa.Array) -> None:
    pool = a_pool(
        pa.table({"k": [1, 2], "v": values}),
        pa.table({"k": [1, 3]}),
        store=LocalStore(tmp_path),
        limits=BY_DATAFUSION,
    )
    expected = [values[0].as_py(), None, None, None]
    assert pool.at().to_table()["v"].to_pylist() == expected
    compact_all(pool)
    assert pool.at().to_table()["v"].to_pylist() == expected


@pytest.mark.parametrize(
    ("where", "keys"),
    [("k > 2.5", [3, 3, 4]), ("k <= 2.5", [1, 2]), ("k >= 3.0", [3, 3, 4]), ("k < 1e300", [1, 2, 3, 3, 4])],
)
def test_datafusion_scans_integer_keys_by_a_condition_that_is_no_integer(
    tmp_path: Path, where: str, keys: list[int]
) -> None:
    pool = a_pool(
        pa.table({"k": [1, 3]}), pa.table({"k": [2, 3, 4]}), store=LocalStore(tmp_path), limits=BY_DATAFUSION
    )
    assert pool.at().to_table(where=where)["k"].to_pylist() == keys


@pytest.mark.parametrize(
    ("kind", "delta", "found"),
    [
        ("append", ([5, 50], [5, 60], [5, 70]), [0, 1, 2, 3]),
        ("upsert", ([5, 50], [5, 60], [5, 70]), [3]),
        ("aggregate", ([3, 5], [5, 60], [50, 70]), [2]),
    ],
)
def test_a_delta_whose_records_say_their_age_lies_over_a_bulk(
    tmp_path: Path, kind: str, delta: tuple[list[int], ...], found: list[int]
) -> None:
    """The compaction of the first and the third load leaves the second between their records."""
    loads = enumerate([range(100), *delta])
    tables = [pa.table({"k": list(keys), "load": [number] * len(keys)}) for number, keys in loads]
    pool = a_pool(*tables, store=LocalStore(tmp_path), kind=kind, limits=OVERLAID)
    before = pool.at().to_table()
    _, first, _, third = sorted(pool.at().references, key=lambda r: r.seq)
    compact(pool.branch(), [first, third])
    assert pool.at().to_table() == before
    assert [r["load"] for r in pool.at().to_table().to_pylist() if r["k"] == 5] == found
