"""What happened to a pool, by kinds of actions, and to the list of pools: as tables."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from lake_core.errors import InvalidInput, NotFound
from log_lake.lake import Lake
from log_lake.stores.memory import MemoryStore
from log_lake.system_tables import query


@pytest.fixture
def lake() -> Lake:
    lake = Lake.create_on(MemoryStore())
    pool = lake.create_pool("logs", key="k")
    pool.branch().append(pa.table({"k": [1, 2]}))
    pool.branch().delete(where="k = 1")
    pool.tag("kept", reason="audit")
    lake.create_pool("later", key="k")
    return lake


def rows(lake: Lake, sql: str) -> list[dict[str, Any]]:
    return query(lake, sql).read_all().to_pylist()


def test_each_action_is_a_row_of_the_newest_transaction_first(lake: Lake) -> None:
    found = rows(lake, 'SELECT version, number, action, records FROM "logs:actions"')
    assert [tuple(row.values()) for row in found] == [
        (3, 0, "set_tag", None),
        (2, 0, "add_tombstone", None),
        (1, 0, "set_schema", None),
        (1, 1, "add_object", 2),
    ]
    (tag,) = rows(lake, "SELECT author, branch, details FROM \"logs:actions\" WHERE action = 'set_tag'")
    assert json.loads(tag["details"]) == {"branch": "main", "reason": "audit", "tag": "kept", "version": 2}
    (added,) = rows(lake, 'SELECT object FROM "logs@1:actions" WHERE object IS NOT NULL')
    assert added["object"] == lake.pool("logs").at_version(1).references[0].object


def test_a_condition_or_a_key_is_in_no_row(lake: Lake) -> None:
    lake.pool("logs").branch().delete(where="k = 987654321")
    assert "987654321" not in json.dumps(rows(lake, 'SELECT * EXCLUDE (time) FROM "logs:actions"'))


def test_the_list_of_pools_is_read_as_it_was(lake: Lake) -> None:
    names = [
        [row["name"] for row in rows(lake, f'SELECT name FROM "lake:pools{at}"')] for at in ("@1", "@2", "")
    ]
    assert names == [["logs"], ["later", "logs"], ["later", "logs"]]
    with pytest.raises(NotFound, match="the newest version is 2"):
        rows(lake, 'SELECT * FROM "lake:pools@3"')
    with pytest.raises(InvalidInput, match="has versions only"):
        rows(lake, 'SELECT * FROM "lake:pools@main"')
