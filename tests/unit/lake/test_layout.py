"""The setting `layout`: how many records the row groups of a pool's objects have (decision 393)."""

from __future__ import annotations

import pyarrow as pa
import pytest

from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.objects.read import DataObject
from log_lake.rewriting.compaction import compact


def group_rows(pool: Pool) -> list[int]:
    """The records of each row group of the pool's objects."""
    rows = []
    for reference in pool.at().references:
        with DataObject.at(pool.store, reference, pool_id=pool.config.id) as data:
            rows += data.group_rows
    return rows


@pytest.mark.parametrize(
    ("layout", "loaded", "compacted"),
    [("point", [10_240, 4_760] * 2, [10_240, 10_240, 9_520]), ("scan", [15_000] * 2, [30_000])],
)
def test_loads_and_compactions_write_row_groups_of_the_layout(
    layout: str, loaded: list[int], compacted: list[int]
) -> None:
    pool = Lake.create(f"memory://layout-{layout}").create_pool("p", key="k", settings={"layout": layout})
    for begin in (0, 1):
        pool.branch().append(pa.table({"k": list(range(begin, 30_000, 2))}))
    assert group_rows(pool) == loaded
    compact(pool.branch(), pool.at().references)
    assert group_rows(pool) == compacted


def test_a_change_of_the_layout_changes_later_objects_and_no_answer() -> None:
    lake = Lake.create("memory://changed")
    pool = lake.create_pool("p", key="k")
    pool.branch().append(pa.table({"k": list(range(15_000))}))
    lake.configure_pool("p", {"layout": "scan"})
    pool = lake.pool("p")
    pool.branch().append(pa.table({"k": list(range(20_000, 35_000))}))
    assert group_rows(pool) == [10_240, 4_760, 15_000]
    assert pool.at().to_table()["k"].to_pylist() == [*range(15_000), *range(20_000, 35_000)]
