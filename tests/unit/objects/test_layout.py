"""The layout of Parquet objects (decision 124), and that objects of the layout before it are read beside them."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lake_core.store import Store
from log_lake.lake.pool import Pool
from log_lake.objects.containers.limits import OBJECT_LIMITS, ObjectLimits
from log_lake.reading.limits import ScanLimits
from log_lake.rewriting.compaction import compact
from log_lake.stores.local import LocalStore
from log_lake.stores.memory import MemoryStore
from tests.support.layout import layout_before
from tests.support.pools import a_pool


def files(pool: Pool) -> list[pq.ParquetFile]:
    view = pool.at()
    return [
        pq.ParquetFile(pa.BufferReader(view.store.get(view.object_name(reference)) or b""))
        for reference in sorted(view.references, key=lambda r: r.seq)
    ]


def physical(file: pq.ParquetFile) -> dict[str, str]:
    return {(column := file.schema.column(n)).path: column.physical_type for n in range(len(file.schema))}


def test_decimals_of_up_to_18_digits_are_stored_as_integers() -> None:
    digits = [1, 9, 10, 18, 19, 38]
    greatest = {f"d{n}": Decimal((0, (9,) * n, -1)) for n in digits}
    table = pa.table(
        {
            "k": [1, 2, 3],
            **{
                name: pa.array([value, value.copy_negate(), None], pa.decimal128(int(name[1:]), 1))
                for name, value in greatest.items()
            },
            "l": pa.array([[Decimal("1.25"), None], [], None], pa.list_(pa.decimal128(9, 2))),
            "r": pa.array(
                [{"x": Decimal("-1.25")}, {"x": None}, None], pa.struct([("x", pa.decimal128(18, 2))])
            ),
        }
    )
    pool = a_pool(table)
    (file,) = files(pool)
    assert physical(file) == {
        "k": "INT64", "d1": "INT32", "d9": "INT32", "d10": "INT64", "d18": "INT64",
        "d19": "FIXED_LEN_BYTE_ARRAY", "d38": "FIXED_LEN_BYTE_ARRAY",
        "l.list.element": "INT32", "r.x": "INT64",
    }  # fmt: skip
    found = pool.at().to_table()
    assert found.to_pylist() == table.to_pylist()
    assert found.schema.types == table.schema.types
    for number, (name, value) in enumerate(greatest.items(), 1):
        bounds = file.metadata.row_group(0).column(number).statistics
        assert (bounds.min, bounds.max) == (value.copy_negate(), value), name


def test_a_row_group_has_10_240_records_in_parquet_and_8_192_in_the_typed_formats() -> None:
    assert [OBJECT_LIMITS.group_records(format) for format in ("parquet", "zng", "zst")] == [
        10_240,
        8_192,
        8_192,
    ]
    assert ObjectLimits(row_group=7).group_records("zst") == 7
    (file,) = files(a_pool(pa.table({"k": range(25_000)})))
    assert [file.metadata.row_group(n).num_rows for n in range(3)] == [10_240, 10_240, 4_520]


def prices(first: int, count: int, step: int) -> pa.Table:
    keys = range(first, first + count * step, step)
    return pa.table(
        {
            "k": pa.array([Decimal(k) / 100 for k in keys], pa.decimal128(12, 2)),
            "v": pa.array([Decimal(k) / -10 for k in keys], pa.decimal128(7, 1)),
            **{name: [f"{name} {k}" for k in keys] for name in "abc"},
        }
    )


@pytest.mark.parametrize("on_disk", [False, True], ids=["windows", "datafusion"])
def test_objects_of_the_layout_before_are_read_merged_and_compacted_with_new_ones(
    tmp_path: Path, on_disk: bool
) -> None:
    store: Store = LocalStore(tmp_path) if on_disk else MemoryStore()
    tables = [prices(0, 20_000, 2), prices(1, 20_000, 2)]
    limits = ScanLimits(objects=ObjectLimits(row_group=8_192), min_datafusion_rows=1)
    with layout_before():
        pool = a_pool(tables[0], store=store, limits=limits)
    pool.branch().append(tables[1])
    old, new = files(pool)
    assert (physical(old)["k"], physical(new)["k"]) == ("FIXED_LEN_BYTE_ARRAY", "INT64")
    expected = pa.concat_tables(tables).sort_by("k")
    view = pool.at()
    assert view.to_table().equals(expected)
    assert view.get(Decimal("200.06")).to_pylist() == expected.slice(20_006, 1).to_pylist()
    assert view.get(Decimal("200.07")).to_pylist() == expected.slice(20_007, 1).to_pylist()
    assert view.to_table(where="v <= -3999.8").to_pylist() == expected.slice(39_998).to_pylist()
    compact(pool.branch(), view.references)
    (file,) = files(pool)
    assert physical(file)["k"] == "INT64"
    assert pool.at().to_table().equals(expected)


@pytest.mark.parametrize(
    ("key", "paths"),
    [("k", ["k"]), ("id.orig_h", ["id:orig_h"]), ("id.orig_h:desc,k", ["id:orig_h", "k"])],
)
def test_the_footer_says_by_which_columns_the_file_is_sorted(key: str, paths: list[str]) -> None:
    """By the column chunks, of which a record before the key has several."""
    table = pa.table({"r": [{"a": 1, "b": [2]}], "id.orig_h": ["x"], "k": [5]})
    (file,) = files(a_pool(table, key=key))
    sorting = file.metadata.row_group(0).sorting_columns
    assert [file.schema.column(one.column_index).path for one in sorting] == paths
    assert [one.descending for one in sorting] == ["desc" in part for part in key.split(",")]
