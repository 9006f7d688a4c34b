"""`"lake:health"` in SQL."""

from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
import pytest

from lake_core.errors import NotFound
from log_lake.lake import Lake
from log_lake.system_tables.names import system_schema
from log_lake.system_tables.sql import query


def test_a_row_says_the_verdict_of_each_pool_and_of_the_lake() -> None:
    lake = Lake.create("memory://health-in-sql")
    lake.create_pool("well", key="k")
    lake.create_pool("fights", key="k", settings={"compact.max_bytes": "10MiB"})
    rows = query(lake, 'SELECT pool, verdict, kind, command FROM "lake:health"').read_all().to_pylist()
    assert rows == [
        {"pool": None, "verdict": "well", "kind": None, "command": None},
        {"pool": "fights", "verdict": "attention", "kind": "fight", "command": "lake show fights"},
        {"pool": "well", "verdict": "well", "kind": None, "command": None},
    ]
    ill = query(lake, """SELECT count(*) AS n FROM "lake:health" WHERE verdict <> 'well'""").read_all()
    assert ill.to_pylist() == [{"n": 1}]
    assert system_schema("lake:health").names == query(lake, 'FROM "lake:health"').schema.names


def test_a_table_that_there_is_not_names_those_that_there_are() -> None:
    lake = Lake.create("memory://health-names")
    with pytest.raises(NotFound, match=r'and there are "lake:pools", "lake:transactions" and "lake:health"'):
        query(lake, 'FROM "lake:helth"')


def test_the_package_offers_the_table_without_arrow() -> None:
    code = "import sys, log_lake; print('pyarrow' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_its_times_have_a_zone() -> None:
    assert system_schema("lake:health").field("since").type == pa.timestamp("us", "UTC")
