"""Which way the records of a pool are read, and why; what both ways give is compared with the scan of the lake."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lake_core.keys import KeyRange
from lake_core.keys.ranges import EVERYTHING
from lake_core.records.transactions import sequence
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.lake.view import View
from log_lake.reading.age_off import newer_than_all
from log_lake.reading.plan import ScanPlan
from log_lake.rewriting.compaction import compact
from log_lake.stores.memory import MemoryStore
from log_lake.where.own import OwnFilter, register
from spark_apps.native.plan import LIMITS, NativeLimits, NativePlan, alive, decide, unclear
from spark_apps.native.predicates import TRUE, columns_of, sql
from spark_apps.native.read import key_ranges
from spark_apps.native.stretches import stretches
from tests.support.spark.native_model import canonical, rows


def a_pool(
    *loads: Mapping[str, Any] | pa.Table, kind: str = "append", key: str = "k", **options: Any
) -> Pool:
    """A pool with a load of each table."""
    pool = Lake.create_on(MemoryStore()).create_pool("p", key=key, kind=kind, **options)
    for load in loads:
        pool.branch().append(load if isinstance(load, pa.Table) else pa.table(dict(load)))
    return pool


def numbers(low: int, high: int, **more: Any) -> dict[str, Any]:
    """Keys from `low` (inclusive) to `high` (exclusive)."""
    return {"k": list(range(low, high)), **{name: [value] * (high - low) for name, value in more.items()}}


def decided(
    view: View,
    *,
    limits: NativeLimits = LIMITS,
    plan: ScanPlan | None = None,
    blocked: str = "",
    **asked: Any,
) -> NativePlan:
    """The decision, of which the model gives what the lake gives."""
    key_range = asked.pop("key_range", EVERYTHING)
    plan = plan or view.plan(key_range=key_range, **asked)
    whole = key_ranges(unclear(plan), view.store, pool_id=view.config.id)
    native = decide(alive(plan), asked=key_range, whole=whole, blocked=blocked, limits=limits)
    assert canonical(rows(native, plan, view)) == canonical(list(view.run(plan)))
    return native


def ways(native: NativePlan) -> list[tuple[str, int, str]]:
    """The shares: way, references, why."""
    return [(share.way, share.references, share.why) for share in native.shares]


WHOLE = "no merge needed"


def test_all_objects_of_an_append_pool_are_one_read_without_conditions_however_they_overlap() -> None:
    native = decided(a_pool(numbers(0, 9), numbers(3, 5), numbers(0, 20)).at())
    assert ways(native) == [("parquet", 3, WHOLE)]
    assert [read.predicate for read in native.parquet] == [TRUE]
    assert native.source is None


def test_an_empty_pool_has_no_reads() -> None:
    assert decided(a_pool().at()) == NativePlan((), None, ())


def test_in_an_upsert_pool_only_keys_that_one_object_holds_go_to_sparks_reader() -> None:
    view = a_pool(numbers(0, 10, v=1), numbers(4, 6, v=2), numbers(20, 30, v=1), kind="upsert").at()
    native = decided(view)
    assert native.source is not None
    assert native.source.references is None
    assert native.source.key_ranges == (
        KeyRange(view.key_range(low=4).low, view.key_range(low=5).low + b"\0"),
    )
    assert ways(native) == [
        ("parquet", 1, f"{WHOLE}, 3 comparisons a row"),
        ("parquet", 1, WHOLE),
        ("data source", 2, "references overlap: merged"),
    ]


def test_keys_that_an_aggregate_pool_combines_come_by_the_data_source() -> None:
    pool = a_pool(numbers(0, 10, n=1), numbers(0, 10, n=2), kind="aggregate", aggregates={"n": "sum"})
    assert ways(decided(pool.at())) == [("data source", 2, "references overlap: merged")]


def test_a_sub_pool_which_has_no_key_needs_no_merge() -> None:
    pool = a_pool({"v": [1, 2]}, {"v": [3], "k": [1]}, {"v": [4]})
    view = pool.at().of_sub_pool("$nokey")
    assert view.records == 3
    assert ways(decided(view)) == [("parquet", 2, WHOLE)]  # type: ignore[arg-type]


def test_references_that_deletes_hide_as_a_whole_are_not_read() -> None:
    pool = a_pool(numbers(0, 5), numbers(5, 10))
    pool.branch().delete(key_range=pool.at().key_range(low=5))
    assert ways(decided(pool.at())) == [("parquet", 1, WHOLE)]
    pool.branch().delete()
    assert decided(pool.at()) == NativePlan((), None, ())


def test_a_delete_hides_records_by_a_condition_of_spark() -> None:
    pool = a_pool(numbers(0, 10, s="a"), numbers(100, 110, s="b"))
    pool.branch().delete(key_range=pool.at().key_range(low=5, high=50), where="s = 'a'")
    native = decided(pool.at())
    assert sorted(sql(read.predicate) for read in native.parquet) == [
        "(not coalesce((`k` >= cast('5' as bigint) and `s` = cast(X'61' as string)), false))",
        "true",
    ]


def test_records_of_one_object_with_several_sequences_are_hidden_by_their_own() -> None:
    pool = a_pool(numbers(0, 5, v=1), numbers(0, 5, v=2), numbers(0, 5, v=3))
    compact(pool.branch(), pool.at().references)
    pool.branch().revert("2")
    native = decided(pool.at())
    (read,) = native.parquet
    assert columns_of(read.predicate) == ("_seq",)
    assert "_seq" in read.columns.names


def test_records_whose_sequences_a_merge_of_branches_lifted_come_by_the_data_source() -> None:
    pool = a_pool(numbers(0, 5, v=1), numbers(0, 5, v=2), numbers(0, 5, v=3))
    compact(pool.branch(), pool.at().references)
    pool.branch().revert("2")
    plan = pool.at().plan()
    lifted = [msgspec.structs.replace(r, lifts=(7,)) for r in plan.references]
    native = decide(replace(plan, references=tuple(lifted)), asked=EVERYTHING, whole={})
    assert ways(native) == [
        ("data source", 1, "a merge of branches gave its records other sequences than they store")
    ]


def test_a_filter_is_a_condition_and_a_function_of_the_users_own_is_left_to_the_data_source() -> None:
    pool = a_pool(numbers(0, 5, v=1), settings={"keep.where": "k > 2"})
    assert [way for way, *_ in ways(decided(pool.at()))] == ["parquet"]
    register("native_k", OwnFilter(1, lambda records: pc.greater(records["k"], 2)))
    pool = a_pool(numbers(0, 5, v=1), settings={"keep.by": "native_k@1(k)", "type.k": "bigint"})
    assert ways(decided(pool.at())) == [("data source", 1, "a function of the user's own decides")]


def test_only_records_older_than_a_delete_are_hidden_by_it() -> None:
    pool = a_pool(numbers(0, 5, v=1), numbers(0, 5, v=2), numbers(0, 5, v=3))
    compact(pool.branch(), pool.at().references)
    view = pool.at()
    delete = msgspec.structs.replace(newer_than_all("d", EVERYTHING, None), seq=sequence(2))
    native = decided(view, plan=replace(view.plan(), tombstones=(delete,)))
    assert [sql(read.predicate) for read in native.parquet] == [
        f"(not coalesce(`_seq` < cast('{sequence(2)}' as bigint), false))"
    ]


def test_a_condition_of_an_upsert_pool_is_asked_of_what_is_newest() -> None:
    pool = a_pool(numbers(0, 10, v=1), numbers(0, 10, v=2), numbers(50, 60, v=1), kind="upsert")
    native = decided(pool.at(), where="v = 1")
    assert [way for way, *_ in ways(native)] == ["parquet", "data source"]


def test_an_object_whose_statistics_exclude_the_condition_is_not_read() -> None:
    pool = a_pool(numbers(0, 10, v=1), numbers(50, 60, v=2), kind="upsert")
    assert ways(decided(pool.at(), where="v = 2")) == [("parquet", 1, f"{WHOLE}, 1 comparison a row")]


def test_delete_markers_are_not_given() -> None:
    pool = a_pool({"k": [1, 2, 3], "_deleted": [True, False, None]}, kind="upsert")
    (read,) = decided(pool.at()).parquet
    assert read.columns.names == ["k", "_deleted"]


def test_columns_of_several_types_are_united_by_casts_and_absent_ones_are_null() -> None:
    pool = a_pool(
        pa.table({"k": pa.array([1], pa.int8()), "x": pa.array([1.5], pa.float32())}),
        pa.table({"k": pa.array([2], pa.int64()), "x": pa.array([1], pa.int16()), "new": ["a"]}),
    )
    assert [read.projection for read in decided(pool.at()).parquet] == [
        (
            "cast(`k` as bigint) as `k`",
            "cast(if(isnan(`x`), cast('NaN' as float), `x`) as double) as `x`",
            "cast(null as string) as `new`",
        ),
        ("`k` as `k`", "cast(`x` as double) as `x`", "`new` as `new`"),
    ]


@pytest.mark.parametrize(
    ("column", "why"),
    [
        (pa.array([1], pa.uint64()), "column 'c' is of type uint64"),
        (pa.array([1], pa.time64("us")), "column 'c' is of type time64[us]"),
        (pa.array([1], pa.duration("us")), "column 'c' is of type duration[us]"),
        (pa.array([1], pa.timestamp("ns")), "column 'c' holds nanoseconds"),
        (pa.array([[1]], pa.list_(pa.timestamp("ns"))), "column 'c' holds nanoseconds"),
        (pa.array([[None]], pa.list_(pa.null())), "column 'c' holds lists or maps of nulls"),
        (pa.array([{"a": 1, "A": 2}]), "column 'c' is a record: columns 'a' and 'A' differ in case only"),
    ],
)
def test_what_sparks_reader_does_not_give_comes_by_the_data_source_alone(column: pa.Array, why: str) -> None:
    pool = a_pool(pa.table({"k": [1], "c": column}), numbers(2, 5))
    assert ways(decided(pool.at())) == [("parquet", 1, WHOLE), ("data source", 1, why)]
    native = decided(pool.at(), columns=["k"])
    assert native.source is None, "a column that is not asked for is no reason"


def test_an_object_with_columns_that_spark_takes_for_one_comes_by_the_data_source() -> None:
    pool = a_pool(pa.table({"k": [1], "c": ["a"], "C": ["b"]}), pa.table({"k": [1], "C": ["b"]}))
    native = decided(pool.at(), columns=["k", "C"])
    assert ways(native) == [
        ("parquet", 1, WHOLE),
        ("data source", 1, "columns 'c' and 'C' differ in case only"),
    ]


def test_a_field_of_several_kinds_comes_by_the_data_source_where_an_object_has_it() -> None:
    pool = a_pool(numbers(0, 3, c=1), numbers(3, 6, c="a"), numbers(6, 9))
    why = "column 'c' holds values of several kinds in other objects"
    assert ways(decided(pool.at())) == [("parquet", 1, WHOLE), ("data source", 2, why)]


def test_a_range_is_a_condition_of_the_objects_that_it_cuts() -> None:
    pool = a_pool(numbers(0, 10), numbers(10, 20), numbers(30, 40))
    view = pool.at()
    native = decided(view, key_range=view.key_range(low=5, high=20))
    assert sorted(sql(read.predicate) for read in native.parquet) == ["`k` >= cast('5' as bigint)", "true"]


def test_a_range_of_a_key_that_spark_orders_otherwise_comes_by_the_data_source() -> None:
    pool = a_pool({"x": [0.5, 1.5, float("nan")]}, key="x")
    view = pool.at()
    assert ways(decided(view)) == [("parquet", 1, WHOLE)]
    why = "Spark does not order the key as the lake does"
    assert ways(decided(view, key_range=view.key_range(low=1.0))) == [("data source", 1, why)]


def test_a_clip_of_an_object_is_a_condition_even_if_the_reference_is_asked_for_as_a_whole() -> None:
    for key in ("k", "k,s"):
        pool = a_pool(numbers(0, 10, s="a"), key=key)
        view = pool.at()
        plan = view.plan()
        cut = msgspec.structs.replace(plan.references[0], high=view.key_range(low=4).low)
        (read,) = decided(view, plan=replace(plan, references=(cut,))).parquet
        assert sql(read.predicate) == "(`k` < cast('4' as bigint) or `k` is null)"


def test_the_extent_of_objects_is_read_from_footers_only_if_the_state_does_not_tell_it() -> None:
    assert unclear(a_pool(numbers(0, 10)).at().plan()) == []
    assert unclear(a_pool(numbers(0, 10), key="k:desc").at().plan()) == []
    assert len(unclear(a_pool(numbers(0, 10, s="a"), key="k,s").at().plan())) == 1
    plan = a_pool(numbers(0, 10, s="a"), key="k,s").at().plan()
    native = decide(plan, asked=EVERYTHING, whole={})
    assert [share.way for share in native.shares] == ["data source"]


def test_more_reads_ranges_or_comparisons_than_the_limits_come_by_the_data_source() -> None:
    pool = a_pool(*(numbers(i, i + 5, **{f"c{i}": 1}) for i in range(0, 20, 5)))
    view = pool.at()
    assert len(decided(view).parquet) == 4
    few = decided(view, limits=NativeLimits(reads=1))
    assert ways(few)[1:] == [("data source", 3, "beyond 1 read with conditions of their own")]
    pool.branch().delete(where="k in (1, 2, 3, 4, 7)")
    long = decided(pool.at(), limits=NativeLimits(comparisons=3))
    assert ("data source", 2, "its conditions have more than 3 comparisons") in ways(long)


def test_small_stretches_between_merged_ones_are_merged_with_them_if_ranges_are_many() -> None:
    base = [numbers(0, 100, v=1)]
    pool = a_pool(*base, *(numbers(i, i + 2, v=2) for i in range(5, 100, 10)), kind="upsert")
    native = decided(pool.at(), limits=NativeLimits(ranges=3))
    assert native.source is not None
    assert len(native.source.key_ranges) == 3
    assert len(decided(pool.at()).source.key_ranges) == 10  # type: ignore[union-attr]


def test_if_sparks_reader_is_blocked_the_data_source_reads_everything_and_the_reason_is_said() -> None:
    native = decided(a_pool(numbers(0, 5), numbers(5, 9)).at(), blocked="no connector")
    assert ways(native) == [("data source", 2, "no connector")]
    assert native.source is not None
    assert native.source.references is None


def test_stretches_are_cut_at_every_bound() -> None:
    pool = a_pool(numbers(0, 10), numbers(5, 15), numbers(30, 31))
    depths = [stretch.alone is not None for stretch in stretches(pool.at().references, EVERYTHING)]
    assert depths == [True, False, True, True]


def test_a_field_of_the_key_with_dots_is_read_by_the_data_source_since_objects_name_it_otherwise() -> None:
    view = a_pool({"a.b": [1, 2], "v": [3, 4]}, key="a.b").at()
    whole = decided(view)
    assert not whole.parquet
    assert {share.why for share in whole.shares} == {"objects have the key's field 'a.b' under another name"}
    assert decided(view, columns=["v"]).source is None, "columns of others lie under their own names"
