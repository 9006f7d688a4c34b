"""A pool whose key leads into records is published: the copy of the key has a name of its own in the table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyiceberg")

from pyiceberg.table import StaticTable

from lake_core.errors import Corrupt, InvalidInput
from lake_core.keys import PoolKey
from log_lake.lake.pool import Pool
from log_lake.objects import read
from log_lake.objects.containers import parquet_sink
from log_lake.objects.containers.stored_names import fields_of_columns, stored_names
from log_lake.publish import names
from log_lake.publish.run import UNCHANGED, publish_iceberg
from log_lake.rewriting.compaction import compact
from tests.support.iceberg import a_local_pool, read_table, values


def load(pool: Pool, folder: Path, *records: dict[str, Any]) -> None:
    file = folder / "in.ndjson"
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    pool.branch().load([str(file)])


def load_as_earlier(
    monkeypatch: pytest.MonkeyPatch, pool: Pool, folder: Path, *records: dict[str, Any]
) -> None:
    """As the program did before objects named a field of the key otherwise."""
    with monkeypatch.context() as earlier:
        earlier.setattr(parquet_sink, "stored_names", lambda fields, key: {})
        load(pool, folder, *records)


def publish_as_earlier(monkeypatch: pytest.MonkeyPatch, pool: Pool) -> None:
    """As that program published a pool: its name mapping has the fields' own names."""
    with monkeypatch.context() as earlier:
        earlier.setattr(names, "stored_names", lambda fields, key: {})
        publish_iceberg(pool)


def mapped_names(location: str) -> dict[int, list[str]]:
    """The names of columns in the table's name mapping, by id."""
    mapping = StaticTable.from_metadata(location).metadata.name_mapping()
    assert mapping is not None
    return {one.field_id: one.names for one in mapping if one.field_id is not None}


def in_table(pool: Pool, **columns: str) -> list[str]:
    """What the lake gives, with the names of the table."""
    renamed = {field.replace("__", "."): column for field, column in columns.items()}
    return values(
        {renamed.get(name, name): value for name, value in row.items()}
        for table in pool.at().scan()
        for row in table.to_pylist()
    )


def test_a_key_inside_of_records_is_published_with_the_record(tmp_path: Path) -> None:
    pool = a_local_pool(tmp_path, key="user.id")
    load(pool, tmp_path, {"user": {"id": 5, "name": "a"}, "v": 1}, {"user": {"id": 3}, "v": 2})
    load(pool, tmp_path, {"user": {"id": 9}, "v": 3})
    done = publish_iceberg(pool)
    assert values(read_table(done.location).to_pylist()) == in_table(pool, user__id="user_id")
    assert read_table(done.location, row_filter="user_id >= 5").column("v").to_pylist() == [1, 3]
    assert read_table(done.location, row_filter="user.id = 3").column("v").to_pylist() == [2]
    table = StaticTable.from_metadata(done.location)
    (order,) = table.sort_order().fields
    assert table.schema().find_column_name(order.source_id) == "user_id"
    (task,) = table.scan(row_filter="user_id > 6").plan_files()
    assert task.file.record_count == 1, "its bounds are those of the key"
    pool.branch().delete(where='"user.id" = 5')
    compact(pool.branch(), pool.at().references)
    load(pool, tmp_path, {"user": {"id": 1}})
    again = publish_iceberg(pool)
    assert values(read_table(again.location).to_pylist()) == in_table(pool, user__id="user_id")
    assert publish_iceberg(pool).outcome == UNCHANGED


def test_every_part_of_a_key_of_several_paths_has_a_name(tmp_path: Path) -> None:
    pool = a_local_pool(tmp_path, key="a.b.c:desc,a.b")
    load(pool, tmp_path, {"a": {"b": {"c": 1}}, "a.b": "x", "a_b": 7}, {"a": {"b": {"c": 2}}, "a.b": "y"})
    done = publish_iceberg(pool)
    assert values(read_table(done.location).to_pylist()) == in_table(pool, a__b__c="a_b_c", a__b="a_b_")
    without = publish_iceberg(pool, without=["a.b"])
    assert read_table(without.location).schema.names == ["a", "a_b", "a_b_c"]


def test_a_key_with_dots_and_no_such_record_keeps_its_name(tmp_path: Path) -> None:
    pool = a_local_pool(tmp_path, {"id.orig_h": [2, 1]}, key="id.orig_h")
    done = publish_iceberg(pool)
    assert values(read_table(done.location).to_pylist()) == in_table(pool)
    load(pool, tmp_path, {"id": {"orig_h": 3}})
    again = publish_iceberg(pool)
    assert values(read_table(again.location).to_pylist()) == in_table(pool, id__orig_h="id_orig_h")


def test_a_column_that_is_the_key_in_one_object_and_another_field_in_another_is_refused(
    tmp_path: Path,
) -> None:
    pool = a_local_pool(tmp_path, {"a.b": [1]}, key="a.b")
    load(pool, tmp_path, {"a.b": 2, "a:b": "x"})
    assert sorted(in_table(pool)) == sorted(values([{"a.b": 1}, {"a.b": 2, "a:b": "x"}]))
    with pytest.raises(InvalidInput, match=r"fields 'a\.b' and 'a:b' as a column 'a:b'"):
        publish_iceberg(pool)


def test_objects_whose_columns_readers_take_for_one_another_are_refused_until_a_compaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = a_local_pool(tmp_path, key="user.id")
    load_as_earlier(monkeypatch, pool, tmp_path, {"user": {"id": 5}}, {"user": {"id": 3}})
    with pytest.raises(
        InvalidInput, match=r"an earlier program wrote objects .*lake compact p --strategy full"
    ):
        publish_iceberg(pool)
    assert not pool.tags
    compact(pool.branch(), pool.at().references)
    done = publish_iceberg(pool)
    assert values(read_table(done.location).to_pylist()) == in_table(pool, user__id="user_id")


@pytest.mark.parametrize("published", [False, True])
def test_objects_of_an_earlier_program_whose_key_is_no_path_are_published_beside_new_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, published: bool
) -> None:
    pool = a_local_pool(tmp_path, key="id.orig_h")
    load_as_earlier(monkeypatch, pool, tmp_path, {"id.orig_h": 1, "v": 1}, {"id.orig_h": 2, "v": 2})
    load_as_earlier(monkeypatch, pool, tmp_path, {"id.orig_h": 7, "v": 3})
    if published:
        publish_as_earlier(monkeypatch, pool)
    load(pool, tmp_path, {"id.orig_h": 3, "v": 4})
    pool.branch().delete(where='"id.orig_h" = 2')
    done = publish_iceberg(pool)
    assert values(read_table(done.location).to_pylist()) == in_table(pool)
    assert done.added == (1 if published else 3)
    assert read_table(done.location, row_filter="v >= 3").num_rows == 2
    key_id = StaticTable.from_metadata(done.location).schema().find_field("id.orig_h").field_id
    assert mapped_names(done.location)[key_id] == ["id:orig_h", "id.orig_h"]
    without = publish_iceberg(pool, without=["id.orig_h"])
    assert sorted(read_table(without.location).column("v").to_pylist()) == [1, 3, 4]
    assert ["id:orig_h", "id.orig_h"] in mapped_names(without.location).values()


@pytest.mark.parametrize("published", [False, True])
def test_a_record_with_that_path_in_another_object_refuses_them_until_a_compaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, published: bool
) -> None:
    pool = a_local_pool(tmp_path, key="id.orig_h")
    load_as_earlier(monkeypatch, pool, tmp_path, {"id.orig_h": 1}, {"id.orig_h": 2})
    if published:
        publish_as_earlier(monkeypatch, pool)
    load(pool, tmp_path, {"id": {"orig_h": 3}})
    with pytest.raises(InvalidInput, match=r"objects with a column 'id\.orig_h', .*lake compact p"):
        publish_iceberg(pool)
    compact(pool.branch(), pool.at().references)
    done = publish_iceberg(pool)
    assert values(read_table(done.location).to_pylist()) == in_table(pool, id__orig_h="id_orig_h")
    load(pool, tmp_path, {"id": {"orig_h": 4}})
    assert publish_iceberg(pool).added == 1, "the others are carried over"


def test_a_column_never_has_the_name_of_a_field() -> None:
    key = PoolKey.parse("a.b,c.d,e")
    fields = ["a.b", "a:b", "a:b:", "e", "x.y"]
    assert stored_names(fields, key) == {"a.b": "a:b::"}


@pytest.mark.parametrize("stored_as", [{"user.id": "id"}, {"v": "user"}, {"user": "v", "user.id": "user:id"}])
def test_a_footer_whose_names_are_not_those_of_the_file_is_damaged(stored_as: dict[str, str]) -> None:
    columns = ["user", "v", "user:id"]
    with pytest.raises(Corrupt, match=r"o: the footer is damaged: its names of columns"):
        fields_of_columns(columns, stored_as, name="o")


def test_an_object_gives_its_key_under_its_own_name(tmp_path: Path) -> None:
    pool = a_local_pool(tmp_path, key="user.id")
    load(pool, tmp_path, {"user": {"id": 5}, "v": 1})
    (reference,) = pool.at().references
    with read.DataObject(pool.store, pool_id=pool.config.id, object_id=reference.object) as opened:
        assert opened.schema.names == opened.written_schema.names == ["user", "v", "user.id"]
        assert opened.metadata.version == 2, (
            "an older program says that it is older, and not that it is damaged"
        )
        batches = list(opened.batches(reference.key_range, key=PoolKey.parse("user.id"), columns=["user.id"]))
        assert pa.Table.from_batches(batches).to_pydict() == {"user.id": [5]}
        assert opened.column_sizes(["user.id"])["user.id"] > 0
