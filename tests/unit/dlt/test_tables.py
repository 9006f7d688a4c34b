"""The pool that a table of dlt gets: its key, its kind, or why it cannot have one."""

from __future__ import annotations

import pytest

from lake_core.errors import InvalidInput
from lake_core.keys import PoolKey
from log_lake.dlt.tables import PipelineTable, PoolShape, check_merge, check_shape, shape_of

ROOT = PipelineTable("t", "append", row_id="_dlt_id", load_id="_dlt_load_id")
NESTED = PipelineTable(
    "t__l", "append", is_nested=True, row_id="_dlt_id", parent_id="_dlt_parent_id", position="_dlt_list_idx"
)
MERGED = PipelineTable("t", "merge", primary_key=("id", "day"), row_id="_dlt_id")


def shape(table: PipelineTable, **more: object) -> str:
    found = shape_of(PipelineTable(**{**vars(table), **more}), str.lower)  # type: ignore[arg-type]
    return f"{found.kind} {found.key}"


def test_a_key_comes_from_the_user_then_from_hints_then_from_the_load() -> None:
    assert shape(ROOT, key="TS:desc,ID", primary_key=("id",)) == "append ts:desc,id"
    assert shape(ROOT, sorted_by=("ts",), primary_key=("id",)) == "append ts"
    assert shape(ROOT, primary_key=("id",)) == "append id"
    assert shape(ROOT) == "append _dlt_load_id"
    assert shape(PipelineTable("arrow", "replace", required=("a", "b"))) == "append a"
    with pytest.raises(
        InvalidInput, match="no column is a primary key or never null; give one with lake_adapter"
    ):
        shape(PipelineTable("arrow", "append"))


def test_nested_records_lie_beside_those_of_the_same_root() -> None:
    assert shape(NESTED) == "append _dlt_parent_id,_dlt_list_idx"
    assert shape(NESTED, root_id="_dlt_root_id") == "append _dlt_root_id,_dlt_parent_id,_dlt_list_idx"
    assert shape(NESTED, disposition="merge", root_id="_dlt_root_id") == "upsert _dlt_root_id,_dlt_id"
    with pytest.raises(InvalidInput, match="root_key=True"):
        shape(NESTED, disposition="merge")


def test_a_merged_table_has_its_primary_key_in_any_order() -> None:
    assert shape(MERGED) == "upsert id,day"
    assert shape(MERGED, key="day,id:desc") == "upsert day,id:desc"
    assert shape(MERGED, sorted_by=("ts",)) == "upsert id,day"
    with pytest.raises(InvalidInput, match="other fields than id, day"):
        shape(MERGED, key="day")
    with pytest.raises(InvalidInput, match="needs a primary_key"):
        shape(MERGED, primary_key=())


def test_a_hint_without_effect_is_refused() -> None:
    check_merge(MERGED)
    check_merge(PipelineTable("t", "append", dedup_sort="ts"))
    with pytest.raises(InvalidInput, match="dedup_sort on 'ts' is not supported"):
        check_merge(PipelineTable("t", "merge", dedup_sort="ts"))


@pytest.mark.parametrize(
    ("table", "kind", "key", "has_nested", "why"),
    [
        (ROOT, "append", "x", True, ""),
        (ROOT, "aggregate", "x", False, ""),
        (ROOT, "upsert", "x", False, "keeps one record of each key"),
        (MERGED, "upsert", "day,id", True, ""),
        (MERGED, "append", "id,day", False, "is merged by id, day, which needs an upsert pool"),
        (MERGED, "upsert", "id", False, "is merged by id, day, which needs an upsert pool"),
        (PipelineTable("t", "replace"), "upsert", "id", False, ""),
        (PipelineTable("t", "replace"), "upsert", "id", True, "refresh='drop_resources'"),
        (
            PipelineTable("t", "merge", primary_key=("id",), columns=("id", "_deleted")),
            "upsert",
            "id",
            False,
            "hard_",
        ),
        (
            PipelineTable("t", "merge", primary_key=("id",), columns=("_deleted",), hard_delete="_deleted"),
            "upsert",
            "id",
            False,
            "",
        ),
    ],
)
def test_a_pool_that_is_there_takes_what_its_kind_can_hold(
    table: PipelineTable, kind: str, key: str, has_nested: bool, why: str
) -> None:
    there = PoolShape(PoolKey.parse(key), kind)
    if not why:
        check_shape(table, there, pool="p", has_nested=has_nested)
        return
    with pytest.raises(InvalidInput, match=why):
        check_shape(table, there, pool="p", has_nested=has_nested)
