"""SQL shows every stored type as the scan does, also where Arrow's own casts or DuckDB's types would not."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings

from log_lake.columns.json_text import json_lines
from log_lake.lake import Lake
from log_lake.stores.memory import MemoryStore
from log_lake.system_tables import query
from tests.properties.test_nested import arrays


def rows(lake: Lake, sql: str) -> list[Any]:
    return [json.loads(line) for line in json_lines(query(lake, sql).read_all()).to_pylist()]


@pytest.mark.parametrize("unit", ["s", "ns"])
def test_a_duration_is_shown_as_the_scan_shows_it(unit: str) -> None:
    lake = Lake.create_on(MemoryStore())
    pool = lake.create_pool("p", key="k")
    pool.branch().append(pa.table({"k": [1], "d": pa.array([10**14 + 1], pa.duration(unit))}))
    scanned = [json.loads(line) for line in json_lines(pool.at().to_table()).to_pylist()]
    assert rows(lake, 'select * from "p"') == scanned


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(arrays(), arrays())
def test_nested_records_are_shown_as_the_scan_shows_them(first: pa.Array, second: pa.Array) -> None:
    lake = Lake.create_on(MemoryStore())
    pool = lake.create_pool("p", key="k")
    for number, array in enumerate((first, second)):
        if len(array):
            keys = pa.array(range(10 * number, 10 * number + len(array)))
            pool.branch().append(pa.table([keys, pa.chunked_array([array])], names=["k", "x"]))
    scanned = [json.loads(line) for line in json_lines(pool.at().to_table()).to_pylist()]
    found = rows(lake, 'select * from "p"') if pool.at().references else []
    assert sorted(found, key=lambda r: r["k"]) == scanned
    more = rows(lake, 'select * from "p" where k >= 10') if pool.at().references else []
    assert sorted(more, key=lambda r: r["k"]) == [r for r in scanned if r["k"] >= 10]
