"""A published table holds what the lake gives, as pyiceberg reads it."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyiceberg")

from pyiceberg.table import StaticTable

from lake_core.errors import InvalidInput, NotFound
from lake_core.keys.ranges import EVERYTHING
from lake_core.naming import data_object
from lake_core.records.transactions import sequence
from log_lake.lake.pool import Pool
from log_lake.objects.read import DataObject
from log_lake.publish.lag import publication
from log_lake.publish.positions import hidden_positions
from log_lake.publish.rules import ObjectRule, rules_of
from log_lake.publish.run import PUBLISHED, UNCHANGED, publish_iceberg
from log_lake.reading.age_off import newer_than_all
from log_lake.rewriting.compaction import compact
from tests.support.iceberg import TYPES, a_local_pool, check_published, read_table, values

UTC = dt.UTC


def numbers(low: int, high: int, **more: Any) -> dict[str, Any]:
    """Keys from `low` (inclusive) to `high` (exclusive)."""
    return {"k": list(range(low, high)), **{name: [value] * (high - low) for name, value in more.items()}}


def test_the_table_of_an_append_pool_has_all_its_objects_however_they_overlap(tmp_path: Path) -> None:
    pool = a_local_pool(tmp_path, numbers(0, 9, s="a"), numbers(3, 5, s="b"), numbers(0, 20, s="c"))
    done = check_published(pool)
    assert (done.outcome, done.number, done.version, done.objects, done.added) == (PUBLISHED, 1, 3, 3, 3)
    assert (done.records, done.hidden, done.delete_files) == (31, 0, 0)


def test_no_data_is_copied(tmp_path: Path) -> None:
    pool = a_local_pool(tmp_path, numbers(0, 9))
    done = check_published(pool)
    (task,) = StaticTable.from_metadata(done.location).scan().plan_files()
    (reference,) = pool.at().references
    assert task.file.file_path == f"{pool.store.uri}/{data_object(pool.config.id, reference.object)}"
    assert [p.name for p in Path(done.location).rglob("*.parquet")] == []


def test_programs_are_told_not_to_delete_the_objects_of_a_table(tmp_path: Path) -> None:
    pool = a_local_pool(tmp_path, numbers(0, 9))
    table = StaticTable.from_metadata(check_published(pool).location)
    assert table.properties["gc.enabled"] == "false", "otherwise DROP TABLE of Trino deletes them"


@pytest.mark.parametrize("name", TYPES)
def test_every_type_that_iceberg_has_is_read_as_it_is(tmp_path: Path, name: str) -> None:
    pool = a_local_pool(tmp_path, pa.table({"k": [1, 2, 3], "field.of pool": TYPES[name]}))
    check_published(pool)


@pytest.mark.parametrize(
    ("column", "why"),
    [
        (pa.array([1], pa.uint32()), "is of type uint32, which Iceberg does not have"),
        (pa.array([1], pa.uint64()), "is of type uint64, which Iceberg does not have"),
        (
            pa.array([1], pa.timestamp("ms")),
            "holds timestamps in milliseconds, which readers of Iceberg filter wrongly",
        ),
        (pa.array([1], pa.timestamp("ns")), "is of type timestamp[ns], which Iceberg does not have"),
        (pa.array([[1]], pa.list_(pa.uint32())), "is of type uint32, which Iceberg does not have"),
    ],
)
def test_a_type_that_iceberg_does_not_have_is_refused_unless_it_is_left_out(
    tmp_path: Path, column: pa.Array, why: str
) -> None:
    pool = a_local_pool(tmp_path, pa.table({"k": [1], "c": column}))
    with pytest.raises(InvalidInput) as refused:
        publish_iceberg(pool)
    text = "publish it converted (lake set p publish.types=text)"
    assert str(refused.value) == f"pool 'p': field 'c' {why}; leave it out (--without c), or {text}"
    assert not pool.tags, "nothing was written"
    check_published(pool, without=["c"])


def test_a_field_of_several_kinds_is_refused_unless_it_is_left_out(tmp_path: Path) -> None:
    pool = a_local_pool(tmp_path, numbers(0, 3, c=1), numbers(3, 6, c="a"))
    with pytest.raises(
        InvalidInput,
        match=r"field 'c' holds values of several kinds, or empty records, as JSON; leave it out",
    ):
        publish_iceberg(pool)
    check_published(pool, without=["c"])
    pool.branch().append(pa.table(numbers(6, 9, c=2)))
    assert publish_iceberg(pool).added == 1, "what is left out stays left out"


def test_a_field_to_leave_out_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="field 'level' does not exist; there are: k"):
        publish_iceberg(a_local_pool(tmp_path, numbers(0, 3)), without=["level"])


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("_pos", "has a name that Iceberg reserves"),
        ("K", "differs from 'k' in case only, which readers do not"),
    ],
)
def test_a_name_that_readers_take_for_another_is_refused(tmp_path: Path, name: str, why: str) -> None:
    with pytest.raises(InvalidInput, match=f"field '{name}' {why}"):
        publish_iceberg(a_local_pool(tmp_path, numbers(0, 3, **{name: 1})))


@pytest.mark.parametrize("without", [[], ["a.b"], ["a"]])
@pytest.mark.parametrize(
    ("records", "one", "other"),
    [
        ([{"a.b": 1, "a": {"b": 5}}], "'a.b'", "'b' in 'a'"),
        ([{"a.b": 1, "a": {"x": 5}}, {"a": {"b": 5}}], "'a.b'", "'b' in 'a'"),
        (
            [{"a.b": 1, "a": {"x": {"y.z": 1, "y": {"z": 2}}}}],
            "'y.z' in 'x' in 'a'",
            "'z' in 'y' in 'x' in 'a'",
        ),
        ([{"a": [1], "a.element": 1, "a.b": 1}], "'element' in 'a'", "'a.element'"),
        ([{"a": [{"b": 1}], "a.element": {"b": 1}, "a.b": 1}], "'element' in 'a'", "'a.element'"),
        ([{"a": {"": 1}, "a.": 1, "a.b": 1}], "'' in 'a'", "'a.'"),
    ],
)
def test_fields_whose_paths_are_one_name_are_refused_also_if_one_is_left_out(
    tmp_path: Path, records: list[dict[str, Any]], one: str, other: str, without: list[str]
) -> None:
    pool = a_local_pool(tmp_path, {"k": [1]})
    for number, record in enumerate(records):
        pool.branch().append(pa.Table.from_pylist([{"k": number, **record}]))
    with pytest.raises(InvalidInput) as refused:
        publish_iceberg(pool, without=without)
    assert f"{one} and {other} have one name" in str(refused.value) or f"{other} and {one}" in str(
        refused.value
    )
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("part", ["key", "value"])
def test_the_parts_of_a_map_have_names_too(tmp_path: Path, part: str) -> None:
    m = pa.array([[(1, 2)]], pa.map_(pa.int64(), pa.int64()))
    pool = a_local_pool(tmp_path, {"k": [1], "m": m, f"m.{part}": [1]})
    with pytest.raises(InvalidInput, match=f"'{part}' in 'm' and 'm.{part}' have one name in Iceberg"):
        publish_iceberg(pool)


def test_fields_inside_that_differ_in_case_only_are_refused_unless_left_out(tmp_path: Path) -> None:
    records = [{"k": 1, "r": [{"App": 1, "app": 2}], "A.b": 1, "a": {"b": 2}}]
    pool = a_local_pool(tmp_path, {"k": [0]})
    pool.branch().append(pa.Table.from_pylist(records))
    with pytest.raises(InvalidInput, match="field 'app' in 'element' in 'r' differs from 'App'"):
        publish_iceberg(pool)
    with pytest.raises(InvalidInput, match=r"'b' in 'a' differs from 'A.b' in case only.* \(--without a\)"):
        publish_iceberg(pool, without=["r"])
    assert publish_iceberg(pool, without=["r", "a"]).outcome == "published"
    check_published(pool, without=["r", "a"])


def test_names_with_dots_and_a_name_that_is_empty_are_published(tmp_path: Path) -> None:
    pool = a_local_pool(tmp_path, {"k": [0]})
    pool.branch().append(
        pa.Table.from_pylist([{"k": 1, "a.b": 1, "a": {"c": 2, "": 3}, "": 4, "l.element": 5}])
    )
    publish_iceberg(pool)
    check_published(pool)


@pytest.mark.parametrize(
    ("narrow", "wide"),
    [
        (pa.int8(), pa.int32()),
        (pa.int16(), pa.int64()),
        (pa.int32(), pa.int64()),
        (pa.float32(), pa.float64()),
        (pa.decimal128(5, 2), pa.decimal128(20, 2)),
        (pa.list_(pa.int32()), pa.list_(pa.int64())),
    ],
    ids=str,
)
def test_objects_with_narrower_columns_are_read_as_the_wider_ones(
    tmp_path: Path, narrow: pa.DataType, wide: pa.DataType
) -> None:
    def column(kind: pa.DataType) -> pa.Array:
        if pa.types.is_list(kind):
            return pa.array([[1], [2, None], None], kind)
        return pa.array([1, 2, None], pa.float64() if pa.types.is_floating(kind) else pa.int8()).cast(kind)

    pool = a_local_pool(tmp_path, pa.table({"k": [1, 2, 3], "c": column(narrow)}))
    check_published(pool)
    pool.branch().append(pa.table({"k": [4, 5, 6], "c": column(wide)}))
    done = check_published(pool)
    assert values(read_table(done.location, row_filter="k <= 4").to_pylist()) == values(
        pool.at().to_table(where="k <= 4").to_pylist()
    )


@pytest.mark.parametrize(
    ("first", "second", "kinds"),
    [
        ([1], [1.5], "is double, and bigint in 1 object"),
        ([Decimal("1.5")], [Decimal("1.25")], r"is decimal\(3,2\), and decimal\(2,1\) in 1 object"),
        (
            pa.array([1], pa.timestamp("ms", "UTC")),
            pa.array([1], pa.timestamp("us", "UTC")),
            r"is timestamp, and timestamp\[ms, tz=UTC\] in 1 object",
        ),
        ([None], ["x"], "is string, and null in 1 object"),
        ([{"a": [1]}], [{"a": [1.5]}], "is struct<a: list<double>>, and struct<a: list<bigint>> in 1 object"),
    ],
)
def test_types_that_only_the_lake_unites_are_refused(
    tmp_path: Path, first: list[Any], second: list[Any], kinds: str
) -> None:
    pool = a_local_pool(tmp_path, {"k": [1], "c": first}, {"k": [1], "c": second})
    with pytest.raises(
        InvalidInput, match=f"field 'c' {kinds}, which Iceberg does not read as one; a compaction unites"
    ):
        publish_iceberg(pool)
    compact(pool.branch(), pool.at().references)
    check_published(pool)


def test_fields_that_come_and_records_that_grow_are_read_by_name(tmp_path: Path) -> None:
    pool = a_local_pool(tmp_path, {"k": [1], "r": [{"a": 1}]})
    check_published(pool)
    pool.branch().append(pa.table({"new.field": ["x"], "r": [{"b": [{"c": 2}], "a": 3}], "k": [2]}))
    pool.branch().append(pa.table({"k": [3]}))
    done = check_published(pool)
    first, second = (
        StaticTable.from_metadata(f"{done.location}/metadata/v{n}.metadata.json") for n in (1, 2)
    )
    assert second.schema().find_field("k").field_id == first.schema().find_field("k").field_id
    assert second.schema().find_field("r.a").field_id == first.schema().find_field("r.a").field_id
    assert first.metadata.table_uuid == second.metadata.table_uuid


def test_a_field_whose_type_changes_gets_a_new_id(tmp_path: Path) -> None:
    pool = a_local_pool(tmp_path, {"k": [1], "c": [1]})
    check_published(pool)
    branch = pool.branch()
    branch.delete()
    branch.append(pa.table({"k": [2], "c": [1.5]}))
    done = check_published(pool)
    schema = StaticTable.from_metadata(done.location).schema()
    assert [(column.field_id, str(column.field_type)) for column in schema.fields] == [
        (1, "long"),
        (5, "double"),  # 3 and 4 are hidden columns
    ]


# --- what is hidden


def test_deletes_by_range_and_condition_are_files_of_positions(tmp_path: Path) -> None:
    pool = a_local_pool(tmp_path, numbers(0, 100, s="a"), numbers(50, 150, s="b"), numbers(200, 210, s="c"))
    pool.branch().delete(key_range=pool.at().key_range(low=40, high=60))
    pool.branch().delete(where="s = 'b' and k >= 140")
    done = check_published(pool)
    assert (done.objects, done.delete_files, done.hidden) == (3, 2, 40)
    folder = Path(done.location) / "deletes"
    (first, second) = (pq.read_table(path) for path in sorted(folder.iterdir()))
    assert sorted([first.num_rows, second.num_rows]) == [20, 20]
    assert len(set(first["file_path"].to_pylist())) == 1


def test_an_object_that_is_hidden_as_a_whole_is_not_in_the_table(tmp_path: Path) -> None:
    pool = a_local_pool(tmp_path, numbers(0, 5), numbers(5, 10))
    pool.branch().delete(key_range=pool.at().key_range(low=5))
    assert check_published(pool).objects == 1
    pool.branch().delete(where="k >= 0")
    done = check_published(pool)
    assert (done.objects, done.records) == (0, 0)


def test_records_of_one_object_with_several_sequences_are_hidden_by_their_own(tmp_path: Path) -> None:
    pool = a_local_pool(tmp_path, numbers(0, 5, v=1), numbers(0, 5, v=2), numbers(0, 5, v=3))
    compact(pool.branch(), pool.at().references)
    pool.branch().revert("2")
    done = check_published(pool)
    assert (done.objects, done.hidden) == (1, 5)


def test_records_whose_sequences_a_merge_of_branches_lifted_are_hidden_by_the_lifted_ones(
    tmp_path: Path,
) -> None:
    pool = a_local_pool(tmp_path, numbers(0, 5, v=0))
    pool.create_branch("dev")
    dev = pool.branch("dev")
    dev.append(pa.table(numbers(5, 10, v=1)))
    dev.append(pa.table(numbers(5, 10, v=2)))
    compact(dev, [r for r in pool.at("dev").references if r.seq > sequence(2)])
    pool.branch().merge("dev")
    pool.branch().delete(where="v = 1")
    pool.branch().append(pa.table(numbers(5, 10, v=1)))
    assert check_published(pool).hidden == 5
    check_published(pool, "dev")


def test_an_age_hides_records_and_hides_more_as_time_goes_on(tmp_path: Path) -> None:
    now = dt.datetime.now(UTC)
    times = [now - dt.timedelta(days=days) for days in range(10)]
    pool = a_local_pool(
        tmp_path,
        pa.table({"k": list(range(10)), "t": pa.array(times, pa.timestamp("us", "UTC"))}),
        settings={"age_off": "t:5d"},
    )
    assert check_published(pool).hidden == 5
    later = publish_iceberg(_at(pool, (now + dt.timedelta(days=2, hours=1)).timestamp()))
    assert (later.outcome, later.version, later.hidden) == (PUBLISHED, 1, 7)
    settled = _at(pool, (now + dt.timedelta(days=90)).timestamp())
    assert publish_iceberg(settled).objects == 0
    assert publish_iceberg(settled).outcome == UNCHANGED


def test_an_unchanged_table_is_told_with_its_figures_of_which_none_are_new(tmp_path: Path) -> None:
    pool = a_local_pool(tmp_path, pa.table(numbers(0, 10, v=1)))
    pool.branch().delete(where="k < 3")
    first = publish_iceberg(pool)
    assert (first.records, first.hidden, first.added, first.added_deletes) == (7, 3, 1, 1)
    again = publish_iceberg(pool)
    assert again == dataclasses.replace(first, outcome=UNCHANGED, added=0, added_deletes=0)


def _at(pool: Pool, now: float) -> Pool:
    """The pool on a machine whose clock says another time."""
    context = replace(pool.context, ids=replace(pool.context.ids, clock=lambda: now))
    return replace(pool, context=context)


def test_a_clip_of_an_object_hides_what_it_does_not_hold(tmp_path: Path) -> None:
    for key in ("k", "k:desc", "k,s"):
        pool = a_local_pool(tmp_path / key, numbers(0, 10, s="a"), key=key)
        view = pool.at()
        (reference,) = view.references
        cut = view.key_range(low=4).low
        with DataObject(view.store, pool_id=pool.config.id, object_id=reference.object) as data:
            parts = tuple(
                msgspec.structs.replace(reference, low=low, high=high)
                for low, high in ((reference.low, cut), (cut, reference.high))
            )
            whole = hidden_positions(ObjectRule(parts, ((), ()), False), data, view, view.store)
            first = hidden_positions(ObjectRule(parts[:1], ((),), False), data, view, view.store)
            delete = newer_than_all("d", EVERYTHING, None)
            second = hidden_positions(ObjectRule(parts, ((delete,), ()), False), data, view, view.store)
        assert whole.tolist() == []
        count = 5 if key == "k:desc" else 4
        assert first.tolist() + second.tolist() == [*range(count, 10), *range(count)]


# --- kinds


def test_an_upsert_pool_whose_objects_overlap_is_refused_and_published_after_a_compaction(
    tmp_path: Path,
) -> None:
    pool = a_local_pool(
        tmp_path, numbers(0, 10, v=1), numbers(5, 15, v=2), numbers(50, 60, v=3), kind="upsert"
    )
    with pytest.raises(InvalidInput) as refused:
        publish_iceberg(pool)
    assert str(refused.value) == (
        "pool 'p': 2 objects of this upsert pool overlap, and Iceberg does not combine their records; merge them "
        "first (lake compact p --strategy full)"
    )
    assert publication(pool) is None
    compact(pool.branch(), [r for r in pool.at().references if r.seq < sequence(3)])
    assert check_published(pool).records == 25


def test_a_newest_record_that_a_condition_hides_does_not_show_an_older_one(tmp_path: Path) -> None:
    pool = a_local_pool(tmp_path, {"k": [1, 2], "s": ["a", "a"]}, {"k": [1], "s": ["b"]}, kind="upsert")
    pool.branch().delete(where="s = 'b'")
    assert pool.at().to_table()["k"].to_pylist() == [2]
    with pytest.raises(InvalidInput, match="2 objects of this upsert pool overlap"):
        publish_iceberg(pool)
    compact(pool.branch(), pool.at().references)
    assert check_published(pool).records == 1


def test_delete_markers_and_deletes_of_an_upsert_pool_are_hidden(tmp_path: Path) -> None:
    pool = a_local_pool(
        tmp_path,
        {"k": [1, 2, 3, 4], "_deleted": [True, False, None, False], "s": ["a", "b", "c", "d"]},
        {"k": [10, 11], "s": ["x", "y"]},
        kind="upsert",
    )
    pool.branch().delete(where="s = 'd' or s = 'y'")
    done = check_published(pool)
    assert (done.records, done.hidden) == (3, 3)
    assert "_deleted" not in read_table(done.location).schema.names


def test_an_aggregate_pool_is_published_if_no_objects_overlap(tmp_path: Path) -> None:
    pool = a_local_pool(
        tmp_path, numbers(0, 5, n=1), numbers(0, 5, n=2), kind="aggregate", aggregates={"n": "sum"}
    )
    with pytest.raises(InvalidInput, match="2 objects of this aggregate pool overlap"):
        publish_iceberg(pool)
    compact(pool.branch(), pool.at().references)
    check_published(pool)


@pytest.mark.parametrize("key", ["k", "k:desc", "s,k:desc", "d", "t:desc"])
def test_keys_of_any_order_and_null_keys_are_published_with_their_order(tmp_path: Path, key: str) -> None:
    table = pa.table(
        {
            "k": [3, None, 1, 2],
            "s": ["b", "a", None, "a"],
            "d": [0.5, -0.0, float("nan"), None],
            "t": pa.array([1, 2, None, 3], pa.timestamp("us", "UTC")),
        }
    )
    pool = a_local_pool(tmp_path, table, table.slice(1, 2), key=key)
    done = check_published(pool)
    order = StaticTable.from_metadata(done.location).sort_order()
    assert [(f.source_id, f.direction.name, f.null_order.name) for f in order.fields] == {
        "k": [(1, "ASC", "NULLS_FIRST")],
        "k:desc": [(1, "DESC", "NULLS_FIRST")],
        "s,k:desc": [(2, "ASC", "NULLS_FIRST"), (1, "DESC", "NULLS_FIRST")],
        "d": [],  # Iceberg sorts -0.0 before 0.0
        "t:desc": [(4, "DESC", "NULLS_FIRST")],
    }[key]


def test_branches_are_tables_of_their_own(tmp_path: Path) -> None:
    pool = a_local_pool(tmp_path, numbers(0, 5))
    pool.create_branch("feature~1")
    pool.branch("feature~1").append(pa.table(numbers(5, 10)))
    main, branch = check_published(pool), check_published(pool, "feature~1")
    assert main.location != branch.location
    assert (main.records, branch.records) == (5, 10)
    assert publish_iceberg(pool).outcome == UNCHANGED


# --- statistics and properties


def test_files_tell_counts_and_bounds_of_the_lakes_statistics(tmp_path: Path) -> None:
    from pyiceberg.conversions import from_bytes

    long = "ä" * 100
    pool = a_local_pool(
        tmp_path, {"k": [1, 2, 3], "s": [long, None, long + "z"], "x": [0.0, float("nan"), 2.0]}
    )
    done = check_published(pool)
    table = StaticTable.from_metadata(done.location)
    (task,) = table.scan().plan_files()
    schema, file = table.schema(), task.file

    def bounds(name: str) -> tuple[Any, Any]:
        column = schema.find_field(name)
        kind, low, high = column.field_type, file.lower_bounds, file.upper_bounds
        return tuple(  # type: ignore[return-value]
            from_bytes(kind, side[column.field_id]) if column.field_id in side else None
            for side in (low, high)
        )

    assert bounds("k") == (1, 3)
    assert bounds("x") == (0.0, None), "Spark counts NaN as greater than any bound"
    low, high = bounds("s")
    assert long.startswith(low)
    assert low < long < long + "z" < high
    assert len(high) < 40
    assert file.record_count == 3
    assert {schema.find_column_name(id): count for id, count in file.null_value_counts.items()} == {
        "k": 0,
        "s": 1,
        "x": 0,
    }
    (path,) = (tmp_path / "lake").rglob("data/*.parquet")
    assert file.file_size_in_bytes == path.stat().st_size
    assert file.split_offsets == [4]
    assert sum(file.column_sizes.values()) < file.file_size_in_bytes


def test_a_filter_by_the_bounds_opens_only_the_objects_that_may_have_records(tmp_path: Path) -> None:
    pool = a_local_pool(tmp_path, *(numbers(i, i + 10, s=f"s{i:03}") for i in range(0, 100, 10)))
    done = check_published(pool)
    table = StaticTable.from_metadata(done.location)
    assert len(list(table.scan(row_filter="k >= 42 and k < 48").plan_files())) == 1
    assert len(list(table.scan(row_filter="s = 's050'").plan_files())) == 1


def test_the_snapshot_says_which_revision_it_shows(tmp_path: Path) -> None:
    pool = a_local_pool(tmp_path, numbers(0, 5), numbers(5, 9))
    done = check_published(pool)
    snapshot = StaticTable.from_metadata(done.location).current_snapshot()
    assert snapshot is not None
    assert snapshot.summary is not None
    assert snapshot.summary["lake.version"] == "2"
    assert snapshot.summary["lake.branch"] == "main"
    assert snapshot.summary["total-records"] == "9"
    version, transaction = next((n, t) for n, t in pool.log(branch="main"))
    assert (done.version, done.transaction_id) == (version, transaction.id)
    assert snapshot.summary["lake.transaction"] == transaction.id


# --- published again


def test_published_again_only_what_is_new_is_written(tmp_path: Path) -> None:
    pool = a_local_pool(tmp_path, *(numbers(i, i + 10, s="a") for i in range(0, 50, 10)))
    pool.branch().delete(where="k = 3 or k = 13")
    check_published(pool)
    before = _files(pool)
    pool.branch().append(pa.table(numbers(50, 60, s="b")))
    pool.branch().delete(where="k = 23")
    done = check_published(pool)
    assert (done.number, done.objects, done.added, done.delete_files, done.added_deletes) == (2, 6, 1, 3, 1)
    new = _files(pool) - before
    assert sorted(Path(name).suffix for name in new) == [".avro"] * 3 + [".json", ".parquet"]


def test_objects_that_a_compaction_replaced_are_not_in_the_next_table(tmp_path: Path) -> None:
    pool = a_local_pool(tmp_path, *(numbers(i, i + 10) for i in range(0, 50, 10)))
    pool.branch().delete(where="k = 3")
    check_published(pool)
    compact(pool.branch(), pool.at().references[:3])
    done = check_published(pool)
    assert (done.objects, done.added, done.delete_files) == (3, 1, 0)


def test_a_delete_that_is_reverted_shows_its_records_again(tmp_path: Path) -> None:
    pool = a_local_pool(tmp_path, numbers(0, 10))
    delete = pool.branch().delete(where="k = 3")
    assert check_published(pool).hidden == 1
    pool.branch().revert(str(delete.version))
    assert check_published(pool).hidden == 0


def test_many_publications_leave_few_manifests(tmp_path: Path) -> None:
    pool = a_local_pool(tmp_path, numbers(0, 1))
    for key in range(1, 40):
        pool.branch().append(pa.table(numbers(key, key + 1)))
        done = publish_iceberg(pool)
    table = StaticTable.from_metadata(done.location)
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert len(snapshot.manifests(table.io)) <= 32
    assert done.objects == 40
    assert read_table(done.location).num_rows == 40
    assert len(table.metadata.snapshots) == 1


def _files(pool: Pool) -> set[str]:
    return {info.name for info in pool.store.list(f"{pool.config.id}/published")}


def test_a_table_that_shows_the_newest_version_stays_as_it_is(tmp_path: Path) -> None:
    pool = a_local_pool(tmp_path, numbers(0, 5))
    check_published(pool)
    before, version = _files(pool), pool.at().version
    assert publish_iceberg(pool).outcome == UNCHANGED
    assert (_files(pool), pool.at().version) == (before, version)


def test_a_table_at_a_uri_of_its_own_names_the_objects_of_the_lake(tmp_path: Path) -> None:
    pool = a_local_pool(tmp_path, numbers(0, 5))
    done = check_published(pool, to=str(tmp_path / "tables" / "p"))
    assert done.location == str(tmp_path / "tables" / "p")
    assert publication(pool) is None
    lag = publication(pool, to=done.location)
    assert lag is not None
    other = a_local_pool(tmp_path / "other", numbers(0, 5))
    with pytest.raises(InvalidInput, match=r"there is the table of branch 'main' of the pool .* already"):
        publish_iceberg(other, to=done.location)


def test_what_cannot_be_published_at_all_is_said(tmp_path: Path) -> None:
    from tests.support.pools import a_pool

    with pytest.raises(InvalidInput, match=r"memory:.*: no other program reads the memory of this one"):
        publish_iceberg(a_pool(pa.table(numbers(0, 3))))
    empty = a_local_pool(tmp_path)
    with pytest.raises(InvalidInput, match="branch 'main' has no transaction yet; load records first"):
        publish_iceberg(empty)
    with pytest.raises(NotFound):
        publish_iceberg(empty, branch="dev")
    nokey = replace(empty, sub_pool="$nokey")
    with pytest.raises(InvalidInput, match="a sub-pool is not published; name the pool itself"):
        publish_iceberg(nokey)


def test_the_name_mapping_has_hidden_columns_under_ids_that_no_schema_has(tmp_path: Path) -> None:
    pool = a_local_pool(tmp_path, {"k": [1], "r": [{"a": [1]}]}, {"k": [1], "r": [{"a": [1]}]})
    compact(pool.branch(), pool.at().references)
    done = check_published(pool)
    table = StaticTable.from_metadata(done.location)
    mapping = json.loads(table.metadata.properties["schema.name-mapping.default"])
    ids = {field["names"][0]: field["field-id"] for field in mapping}
    assert [name for name, id in ids.items() if id in table.schema().field_ids] == ["k", "r"]
    assert [name for name, id in ids.items() if id not in table.schema().field_ids] == ["_seq", "_place"]
    assert max(ids.values()) <= table.metadata.last_column_id
    pool.branch().append(pa.table({"k": [2], "new": [1]}))
    check_published(pool)
    later = StaticTable.from_metadata(done.location)
    assert later.schema().find_field("new").field_id == max(ids.values()) + 1, "ids are kept"


def test_the_same_rule_has_the_same_digest_and_another_rule_another(tmp_path: Path) -> None:
    pool = a_local_pool(tmp_path, numbers(0, 10))
    digests = {next(iter(rules_of(pool.at()).values())).digest({})}
    pool.branch().delete(where="k = 3")
    for _ in range(2):
        digests.add(next(iter(rules_of(pool.at()).values())).digest({}))
    pool.branch().delete(where="k = 4")
    digests.add(next(iter(rules_of(pool.at()).values())).digest({}))
    assert len(digests) == 3


def test_a_tag_is_published_once_and_shows_its_version(tmp_path: Path) -> None:
    pool = a_local_pool(tmp_path, numbers(0, 3))
    pool.tag("v1")
    pool.branch().append(pa.table(numbers(3, 5)))
    done = check_published(pool, branch="v1")
    assert (done.version, done.records) == (1, 3)
    pool.branch().delete(where="k = 1")
    assert publish_iceberg(pool, branch="v1").outcome == UNCHANGED
    assert check_published(pool).records == 4


def test_a_snapshot_has_the_time_of_the_version_that_it_shows(tmp_path: Path) -> None:
    pool = a_local_pool(tmp_path, numbers(0, 3))
    snapshot = StaticTable.from_metadata(publish_iceberg(pool).location).current_snapshot()
    assert snapshot is not None
    ((_, transaction),) = [pair for pair in pool.log(branch="main") if pair[0] == 1]
    assert snapshot.timestamp_ms == transaction.time // 1000
