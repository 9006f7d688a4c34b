"""The checklist of branches: what a user of versioned data expects, each as one short story on one pool.

Deeper tests: `test_branches`, `test_merges`, `test_reverts`, `test_tags`, and the oracle in
`tests/properties/test_branches.py`.
"""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

from lake_core.errors import NotFound
from lake_core.keys.encoding import encode_value
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.stores.memory import MemoryStore
from log_lake.system_tables import query
from tests.unit.lake.test_branches import checkpointed, keys, load, new_pool
from tests.unit.lake.test_merges import compact_all


def test_commit_and_log_with_author_message_and_metadata() -> None:
    store = MemoryStore()
    Lake.create_on(store).create_pool("p", key="k")
    pool = Lake.open_on(store, author="vera", metadata={"ticket": "17"}).pool("p")
    pool.branch().append(pa.table({"k": [1]}), message="first light")
    ((version, t),) = pool.log()
    assert (version, t.author, t.message, t.metadata) == (1, "vera", "first light", {"ticket": "17"})


def test_delete_then_revert_then_revert_of_the_revert() -> None:
    pool = new_pool()
    load(pool, 1, 2)
    pool.branch().delete(where="k = 1")
    pool.branch().revert("2")
    assert keys(pool) == [1, 2]
    pool.branch().revert("3")
    assert keys(pool) == [2]


def test_time_travel_by_number_id_branch_tag_and_time() -> None:
    pool = new_pool()
    load(pool, 1)
    ((_, first),) = pool.log()
    pool.create_branch("dev")
    pool.tag("t")
    load(pool, 2)
    moment = dt.datetime.fromtimestamp(first.time / 1e6, dt.UTC).isoformat()
    for revision in ("1", first.id, "dev", "t", f"main@{moment}"):
        assert keys(checkpointed(pool), revision) == [1], revision


def test_every_system_table_of_an_older_revision() -> None:
    pool = new_pool()
    load(pool, 1)
    load(pool, 2)
    pool.create_branch("dev")
    lake = Lake.open_on(pool.store)
    for kind, rows in {
        "branches": 1,
        "log": 1,
        "objects": 1,
        "references": 1,
        "tombstones": 0,
        "tags": 0,
    }.items():
        found = query(lake, f'select * from "p@1:{kind}"').read_all()
        assert found.num_rows == rows, kind


def test_merge_and_merge_again() -> None:
    pool = new_pool()
    pool.create_branch("dev")
    load(pool, 1, branch="dev")
    assert pool.branch().merge("dev").writes == 1
    assert pool.branch().merge("dev").version is None
    load(pool, 2, branch="dev")
    assert pool.branch().merge("dev").writes == 1
    assert keys(pool) == [1, 2]


def test_merge_with_deletes_and_replaces_on_both_sides() -> None:
    pool = new_pool()
    load(pool, 1, 2, 3, 4)
    pool.create_branch("dev")
    pool.branch("dev").delete(where="k = 1")
    pool.branch().delete(where="k = 2")
    ranges = pool.at().key_range
    pool.branch("dev").replace_with(pa.table({"k": [3, 3]}), key_range=ranges(low=3, high=4))
    pool.branch().replace_with(pa.table({"k": [4, 4]}), key_range=ranges(low=4))
    pool.branch().merge("dev")
    assert keys(checkpointed(pool)) == [3, 3, 4, 4]


@pytest.mark.parametrize("kind", ["append", "upsert", "aggregate"])
def test_merge_of_a_branch_that_was_compacted(kind: str) -> None:
    pool = new_pool(kind)
    load(pool, 1)
    pool.create_branch("dev")
    for _ in range(3):
        load(pool, 1, 2, branch="dev")
    compact_all(pool, "dev")
    pool.branch().merge("dev")
    compact_all(pool, "main")
    expected = {"append": [1] * 4 + [2] * 3, "upsert": [1, 2], "aggregate": [1, 2]}[kind]
    assert keys(checkpointed(pool)) == expected


def test_an_aggregate_pool_sums_once_what_a_merge_brings() -> None:
    lake = Lake.create_on(MemoryStore())
    pool = lake.create_pool("p", key="k", kind="aggregate", aggregates={"v": "sum", "end": "last"})

    def add(branch: str, value: int) -> None:
        pool.branch(branch).append(pa.table({"k": [1], "v": [value], "end": [str(value)]}))

    add("main", 1)
    pool.create_branch("dev")
    add("dev", 10)
    add("dev", 100)
    add("main", 1000)
    compact_all(pool, "dev")
    pool.branch().merge("dev")
    row = {"k": 1, "v": 1111, "end": "100"}
    assert pool.at().to_table().to_pylist() == [row]
    compact_all(pool, "main")
    assert checkpointed(pool).at().to_table().to_pylist() == [row]
    pool.branch("dev").append(pa.table({"k": [1], "v": [5], "end": ["5"]}))
    pool.branch().merge("dev")
    assert checkpointed(pool).at().to_table().to_pylist() == [row | {"v": 1116, "end": "5"}]


def test_equal_null_and_missing_keys_are_merged() -> None:
    pool = new_pool()
    pool.create_branch("dev")
    pool.branch("dev").append(pa.table({"k": [1, 1, None], "v": [1, 2, 3]}))
    pool.branch("dev").append(pa.table({"v": [4]}))
    compact_all(pool, "dev")
    pool.branch().merge("dev")
    assert keys(checkpointed(pool)) == [1, 1]
    without = Lake.open_on(pool.store).pool("p.$nokey")
    assert [row["v"] for row in without.at().to_table().to_pylist()] == [3, 4]


@pytest.mark.parametrize("key", ["ip", "id.orig"])
def test_keys_that_are_addresses_or_have_dotted_names(key: str) -> None:
    pool = Lake.create_on(MemoryStore()).create_pool("p", key=key)
    pool.branch().append(pa.table({key: ["10.0.0.2"]}))
    pool.create_branch("dev")
    pool.branch("dev").append(pa.table({key: ["10.0.0.1"]}))
    pool.branch().merge("dev")
    assert [row[key] for row in checkpointed(pool).at().to_table().to_pylist()] == ["10.0.0.1", "10.0.0.2"]
    assert encode_value("10.0.0.1") < encode_value("10.0.0.2")


def test_cross_pool_join_of_branches_and_a_pool_that_does_not_exist() -> None:
    lake = Lake.create_on(MemoryStore())
    for name in ("a", "b"):
        pool: Pool = lake.create_pool(name, key="k")
        pool.create_branch("dev")
        pool.branch("dev").append(pa.table({"k": [1], name: [name]}))
    joined = query(lake, 'select a, b from "a@dev" join "b@dev" using (k)').read_all().to_pylist()
    assert joined == [{"a": "a", "b": "b"}]
    with pytest.raises(NotFound, match="nothing"):
        query(lake, 'select * from "nothing@dev"')


def test_a_dropped_pool_takes_its_branches_along_and_a_renamed_one_keeps_them() -> None:
    lake = Lake.create_on(MemoryStore())
    pool = lake.create_pool("p", key="k")
    load(pool, 1)
    pool.create_branch("dev")
    lake.catalog.rename("p", "q")
    assert keys(lake.pool("q"), "dev") == [1]
    lake.drop_pool("q")
    for work in (lambda: pool.create_branch("x"), lambda: pool.tag("t"), lambda: pool.branch("dev")):
        with pytest.raises(NotFound, match="dropped"):
            work()
