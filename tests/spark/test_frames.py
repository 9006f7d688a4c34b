"""`pyspark_lake.write`, `delete`, `merge` and `get`: one transaction each, from any thread; what is refused."""

from __future__ import annotations

import datetime as dt
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

import pyspark_lake
from lake_core.errors import Conflict, InvalidInput, NotFound
from log_lake.lake import Lake
from log_lake.texts.nametext import text_of
from spark_apps.frames.write import SMALL_BYTES, SMALL_RECORDS
from tests.spark.conftest import Landing
from tests.spark.test_writer import VALUES, plain

pytestmark = pytest.mark.spark


def numbers(spark: Any, *expressions: str, count: int = 100, tasks: int = 4) -> Any:
    """Rows with `id` from 0, the expressions, on so many tasks."""
    return spark.range(0, count, 1, tasks).selectExpr(*(expressions or ("id as k",)))


def rows(landing: Landing, pool: str = "p") -> list[Any]:
    return [tuple(row.values()) for row in landing.lake.pool(pool).at().to_table().to_pylist()]


# --- write


def test_values_of_every_type_are_written_as_the_data_source_writes_them(
    spark: Any, landing: Landing
) -> None:
    df = numbers(spark, "id as k", *(f"if(id < 3, {v}, null) as `{n}`" for n, v in VALUES.items()), count=4)
    for pool in ("p", "q"):
        landing.pool(pool)
    result = pyspark_lake.write(df, "p", lake=landing.uri, message="by hand", metadata={"Run": "7"})
    df.write.format("lake").option("lake", landing.uri).mode("append").save("q")
    ours, theirs = (landing.lake.pool(pool).at() for pool in ("p", "q"))
    assert ours.schema == theirs.schema
    assert ours.to_table().to_pylist() == theirs.to_table().to_pylist()
    assert [plain(row.asDict(recursive=True)) for row in df.collect()] == [
        plain(row.asDict(recursive=True))
        for row in pyspark_lake.read(spark, "p", lake=landing.uri).orderBy("k").collect()
    ]
    assert (result.version, result.records, result.objects) == (1, 4, 4)
    ((_, transaction),) = landing.lake.pool("p").log()
    assert (transaction.message, transaction.metadata["Run"]) == ("by hand", "7")


def test_a_small_frame_of_plain_values_is_written_by_the_driver_as_tasks_write_it(
    spark: Any, landing: Landing
) -> None:
    flat = [n for n in VALUES if n not in ("a.b", "map", "of kinds", "inside", "nothing")]
    df = numbers(spark, "id as k", *(f"if(id < 3, {VALUES[n]}, null) as `{n}`" for n in flat), count=4)
    for pool in ("p", "q"):
        landing.pool(pool)
    assert pyspark_lake.write(df, "p", lake=landing.uri).objects == 1, "and not one of each task"
    df.write.format("lake").option("lake", landing.uri).mode("append").save("q")
    ours, theirs = (landing.lake.pool(pool).at() for pool in ("p", "q"))
    assert ours.schema == theirs.schema
    assert ours.to_table().to_pylist() == theirs.to_table().to_pylist()


@pytest.mark.parametrize("count", [SMALL_RECORDS + 1, SMALL_BYTES // 8 + 1], ids=["records", "bytes"])
def test_a_larger_frame_is_written_by_tasks(spark: Any, landing: Landing, count: int) -> None:
    landing.pool()
    result = pyspark_lake.write(numbers(spark, count=count), "p", lake=landing.uri)
    assert (result.objects, result.records) == (4, count)


def test_where_the_order_of_records_counts_tasks_write_them(spark: Any, landing: Landing) -> None:
    landing.lake.create_pool("p", key="k", kind="upsert")
    assert pyspark_lake.write(numbers(spark), "p", lake=landing.uri).objects == 4


def test_a_token_is_written_once_and_other_data_under_it_are_refused(spark: Any, landing: Landing) -> None:
    landing.pool()
    first = pyspark_lake.write(numbers(spark), "p", lake=landing.uri, token="t")
    again = pyspark_lake.write(numbers(spark), "p", lake=landing.uri, token="t")
    assert (first.repeated, again.repeated, again.version) == (False, True, first.version)
    assert landing.held("p") == landing.data("p"), "the second wrote no object"
    with pytest.raises(InvalidInput, match="token 't' stands for version 1, which brought 100 records"):
        pyspark_lake.write(numbers(spark, count=99), "p", lake=landing.uri, token="t")
    assert landing.keys("p") == list(range(100))


def test_overwrite_replaces_what_the_options_name(spark: Any, landing: Landing) -> None:
    landing.pool()
    pyspark_lake.write(numbers(spark, "id as k", "0 as v", count=10), "p", lake=landing.uri)
    newer = numbers(spark, "id + 3 as k", "1 as v", count=2)
    pyspark_lake.write(newer, "p", lake=landing.uri, mode="overwrite", from_="3", to="6")
    assert rows(landing) == [(k, int(k in (3, 4))) for k in range(10) if k != 5]
    assert landing.transactions("p") == 2
    with pytest.raises(InvalidInput, match="outside the range"):
        pyspark_lake.write(newer, "p", lake=landing.uri, mode="overwrite", from_="7")
    with pytest.raises(InvalidInput, match="mode='ignore': use append or overwrite"):
        pyspark_lake.write(newer, "p", lake=landing.uri, mode="ignore")


def test_threads_write_at_the_same_time_without_a_word_about_sessions(spark: Any, landing: Landing) -> None:
    landing.pool()
    frames = [numbers(spark, f"id + {n * 10} as k", count=10, tasks=2) for n in range(4)]
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda df: pyspark_lake.write(df, "p", lake=landing.uri), frames))
    assert landing.keys("p") == list(range(40))
    assert landing.transactions("p") == 4


def test_a_task_that_dies_leaves_orphans_only_and_its_records_are_written_once(
    spark: Any, landing: Landing, tmp_path: Any
) -> None:
    landing.pool()
    marker = str(tmp_path / "died")

    def once(batches: Any) -> Any:
        import os
        from pathlib import Path

        from pyspark import TaskContext

        yield from batches
        context = TaskContext.get()
        if context is not None and context.partitionId() == 1 and not Path(marker).exists():
            Path(marker).touch()
            os._exit(1)

    df = numbers(spark).mapInArrow(once, "k long")
    assert pyspark_lake.write(df, "p", lake=landing.uri).records == 100
    assert landing.keys("p") == list(range(100))


def test_a_bad_value_is_named_and_nothing_is_committed(spark: Any, landing: Landing) -> None:
    landing.pool()
    bad = numbers(spark, "id as k", "if(id = 70, date '+10000-01-01', date '2026-01-01') as d")
    with pytest.raises(InvalidInput, match=r"column 'd': .*10000-01-01.* is outside of the years 1 to 9999"):
        pyspark_lake.write(bad, "p", lake=landing.uri)
    with pytest.raises(InvalidInput, match="pool 'p' has it as 'k'"):
        pyspark_lake.write(numbers(spark, "id as K"), "p", lake=landing.uri)
    with pytest.raises(InvalidInput, match="unknown option 'tokn'"):
        pyspark_lake.write(numbers(spark), "p", lake=landing.uri, tokn="t")
    with pytest.raises(NotFound):
        pyspark_lake.write(numbers(spark), "absent", lake=landing.uri)
    assert landing.transactions("p") == 0


def test_a_write_in_which_no_record_has_the_key_is_refused_as_a_file_is(spark: Any, landing: Landing) -> None:
    landing.pool("p")
    landing.lake.create_pool("q", key="k", settings={"nokey": "accept"})
    for frame, why in (
        (numbers(spark, "id as n"), "it has 'n'"),
        (numbers(spark, "cast(null as bigint) as k", "id as n", count=20_000), "it is null in every record"),
        (numbers(spark, "cast(null as bigint) as k", "id as n", count=5), "it is null in every record"),
    ):
        with pytest.raises(InvalidInput, match=f"no record has the key field 'k'; {why}; .*nokey=accept"):
            pyspark_lake.write(frame, "p", lake=landing.uri)
        assert pyspark_lake.write(frame, "q", lake=landing.uri).nokey == frame.count()
    assert landing.transactions("p") == 0
    some = pyspark_lake.write(numbers(spark, "if(id = 1, id, null) as k", count=5), "p", lake=landing.uri)
    assert (some.records, some.nokey) == (1, 4)


def test_names_of_metadata_are_kept_as_they_are(spark: Any, landing: Landing) -> None:
    landing.pool("p")
    pyspark_lake.write(
        numbers(spark), "p", lake=landing.uri, metadata={"Run": "1", "run": "2", "\u00dc": "3"}
    )
    ((_, transaction),) = landing.lake.pool("p").log()
    assert {"Run": "1", "run": "2", "\u00dc": "3"}.items() <= transaction.metadata.items()


def test_fields_of_records_that_differ_in_case_only_are_refused_in_writes_merges_and_schemas(
    spark: Any, landing: Landing
) -> None:
    landing.pool("p")
    pyspark_lake.write(numbers(spark, "id as k", "named_struct('a', id) as s"), "p", lake=landing.uri)
    other = numbers(spark, "id as k", "named_struct('A', id) as s")
    said = "column 's.A': pool 'p' has it as 's.a'"
    with pytest.raises(InvalidInput, match=said):
        pyspark_lake.write(other, "p", lake=landing.uri)
    with pytest.raises(InvalidInput, match=said):
        pyspark_lake.merge(spark, "p", other, lake=landing.uri)
    source = spark.read.format("lake").option("lake", landing.uri)
    with pytest.raises(Exception, match=said):
        source.schema("k long, s struct<A:bigint>").load("p").collect()
    assert landing.transactions("p") == 1


# --- statements


def test_a_statement_that_spark_refuses_is_run_by_the_lake(landing: Landing) -> None:
    pool = landing.lake.create_pool("p", key="k")
    pool.branch().append(pa.table({"k": [1, 2], "v": [0, 0]}))
    sql = "UPDATE p SET v = v + 1 WHERE k = 2"
    assert pyspark_lake.execute(sql, lake=landing.uri, dry_run=True).version is None
    done = pyspark_lake.execute(sql, lake=landing.uri, token="t", message="asked for")
    assert (done.verb, done.records, done.repeated) == ("updated", 1, False)
    assert pyspark_lake.execute(sql, lake=landing.uri, token="t").repeated
    assert pool.at().to_table()["v"].to_pylist() == [0, 1]
    merge = "MERGE INTO p USING (SELECT 2 AS k) AS q ON p.k = q.k WHEN MATCHED THEN DELETE"
    assert pyspark_lake.execute(merge, lake=landing.uri).verb == "merged"
    assert pool.at().to_table()["k"].to_pylist() == [1]
    with pytest.raises(InvalidInput, match="RETURNING"):
        pyspark_lake.execute(f"{merge} RETURNING k", lake=landing.uri)


# --- delete and merge


@pytest.mark.parametrize("kind", ["append", "upsert", "aggregate"])
def test_the_keys_of_a_frame_are_deleted_and_its_records_merged_in_one_transaction_each(
    spark: Any, landing: Landing, kind: str
) -> None:
    pool = landing.lake.create_pool("p", key="k,day", kind=kind)
    day = "date '2026-01-01'"
    pyspark_lake.write(
        numbers(spark, "id as k", f"{day} as day", "id * 10 as v", count=6), "p", lake=landing.uri
    )
    keys = numbers(spark, f"{day} as day", "id * 3 as k", "'not read' as other", count=2)
    deleted = pyspark_lake.delete(spark, "p", keys.union(keys), lake=landing.uri, message="asked for")
    changes = spark.sql(
        f"select k, {day} as day, v, gone from values (1L, -1L, false), (2L, 0L, true), (4L, -4L, null), "
        "(9L, -9L, false) as t(k, v, gone)"
    )
    merged = pyspark_lake.merge(spark, "p", changes, deleted="gone", lake=landing.uri, token="m")
    again = pyspark_lake.merge(spark, "p", changes, deleted="gone", lake=landing.uri, token="m")
    assert [(k, v) for k, _, v in rows(landing)] == [(1, -1), (4, -4), (5, 50), (9, -9)]
    assert (deleted.version, merged.version, again.version, again.repeated) == (2, 3, 3, True)
    assert [t.message for _, t in pool.log()] == ["", "asked for", ""]
    read = pyspark_lake.read(spark, "p", lake=landing.uri).orderBy("k").collect()
    assert [(row.k, row.v) for row in read] == [(1, -1), (4, -4), (5, 50), (9, -9)]


@pytest.mark.parametrize("kind", ["append", "upsert"])
def test_values_of_every_type_are_merged_as_they_are_written(spark: Any, landing: Landing, kind: str) -> None:
    df = numbers(spark, "id as k", *(f"if(id < 3, {v}, null) as `{n}`" for n, v in VALUES.items()), count=4)
    for pool in ("p", "q"):
        landing.lake.create_pool(pool, key="k", kind=kind)
    pyspark_lake.write(df, "q", lake=landing.uri)
    pyspark_lake.write(numbers(spark, count=4), "p", lake=landing.uri)
    pyspark_lake.merge(spark, "p", df, lake=landing.uri)
    ours, theirs = (landing.lake.pool(pool).at() for pool in ("p", "q"))
    assert set(ours.schema) == set(theirs.schema)
    assert ours.to_table(columns=theirs.schema.names).to_pylist() == theirs.to_table().to_pylist()


def test_a_frame_is_written_merged_and_refused_in_the_declared_types(spark: Any, landing: Landing) -> None:
    landing.lake.create_pool("p", key="k", settings={"type.day": "date", "type.n": "int8"})
    frame = numbers(spark, "id as k", "'2026-01-0' || (1 + id) as day", "id as n", count=3)
    pyspark_lake.write(frame, "p", lake=landing.uri)
    pyspark_lake.merge(spark, "p", frame.where("k = 1"), lake=landing.uri)
    pyspark_lake.write(frame.where("k = 2"), "p", lake=landing.uri, mode="overwrite", where="k = 2")
    days = [dt.date(2026, 1, day) for day in (1, 2, 3)]
    assert rows(landing) == [(0, days[0], 0), (1, days[1], 1), (2, days[2], 2)]
    assert landing.lake.pool("p").at().schema.field("n").type == pa.int8()
    for wrong in ("'soon' as day", "300 as n", "'one' as n"):
        refused = numbers(spark, "id as k", wrong, count=1)
        with pytest.raises(InvalidInput, match="the data frame: field '"):
            pyspark_lake.write(refused, "p", lake=landing.uri)
        with pytest.raises(InvalidInput, match="the records: field '"):
            pyspark_lake.merge(spark, "p", refused, lake=landing.uri)
    assert landing.transactions("p") == 3


def test_an_upsert_pool_merges_more_keys_than_a_condition_can_name(spark: Any, landing: Landing) -> None:
    landing.lake.create_pool("p", key="k", kind="upsert")
    landing.lake.create_pool("q", key="k")
    many = numbers(spark, "id as k", "id % 2 = 0 as gone", count=20_001)
    for pool in ("p", "q"):
        pyspark_lake.write(many.selectExpr("k", "1 as v"), pool, lake=landing.uri)
    pyspark_lake.merge(spark, "p", many.selectExpr("k", "2 as v", "gone"), deleted="gone", lake=landing.uri)
    table = landing.lake.pool("p").at().to_table()
    assert table == pa.table({"k": range(1, 20_001, 2), "v": pa.array([2] * 10_000, pa.int32())})
    for refused in (pyspark_lake.delete, pyspark_lake.merge):
        with pytest.raises(InvalidInput, match=r"more than 10,000 keys; .* upsert pool"):
            refused(spark, "q", many.select("k"), lake=landing.uri)
    assert landing.transactions("q") == 1


def test_keys_of_another_type_leave_the_type_of_an_upsert_pool(spark: Any, landing: Landing) -> None:
    landing.lake.create_pool("p", key="k", kind="upsert")
    keys = numbers(spark, "cast(id as double) / 2 as k", count=5)
    assert pyspark_lake.delete(spark, "p", keys, lake=landing.uri).version is None
    pyspark_lake.write(numbers(spark, "cast(id as int) as k", count=4), "p", lake=landing.uri)
    pyspark_lake.delete(spark, "p", keys, lake=landing.uri)
    table = landing.lake.pool("p").at().to_table()
    assert (table["k"].to_pylist(), table["k"].type) == ([3], pa.int32())


@pytest.mark.parametrize("kind", ["append", "upsert"])
def test_a_frame_without_the_key_is_refused(spark: Any, landing: Landing, kind: str) -> None:
    landing.lake.create_pool("p", key="k", kind=kind)
    pyspark_lake.write(numbers(spark), "p", lake=landing.uri)
    for refused in (pyspark_lake.delete, pyspark_lake.merge):
        with pytest.raises(InvalidInput, match="no column 'k'; there are: x"):
            refused(spark, "p", numbers(spark, "id as x"), lake=landing.uri)
        with pytest.raises(InvalidInput, match=r"1 key without 'k' \(null\)"):
            refused(spark, "p", numbers(spark, "if(id = 3, null, id) as k"), lake=landing.uri)
    with pytest.raises(InvalidInput, match="deleted='k': the data frame has no boolean column"):
        pyspark_lake.merge(spark, "p", numbers(spark), deleted="k", lake=landing.uri)
    assert landing.transactions("p") == 1


@pytest.mark.parametrize("refused", [pyspark_lake.delete, pyspark_lake.merge])
def test_keys_in_columns_that_differ_in_case_only_are_refused_before_spark_is_asked(
    landing: Landing, refused: Any
) -> None:
    landing.pool()
    frame = SimpleNamespace(schema=StructType().add("k", "long").add("K", "long"))
    with pytest.raises(InvalidInput, match="columns 'k' and 'K' of the data frame differ in case only"):
        refused(None, "p", frame, lake=landing.uri)


def test_a_merge_that_another_overtakes_fails_and_changes_nothing(
    spark: Any, landing: Landing, monkeypatch: pytest.MonkeyPatch
) -> None:
    landing.pool()
    pyspark_lake.write(numbers(spark, "id as k", "0 as v", count=3), "p", lake=landing.uri)
    branch = landing.lake.pool("p").branch()
    begun = branch.begin_replace(where="k = 1")
    pyspark_lake.merge(spark, "p", numbers(spark, "id as k", "1 as v", count=2), lake=landing.uri)
    with pytest.raises(Conflict):
        branch.commit(begun.load, objects=[], schemas=[], replaced=begun.spec)  # type: ignore[union-attr]
    assert rows(landing) == [(0, 1), (1, 1), (2, 0)]


# --- get


def test_one_record_is_read_without_a_job_as_spark_would_read_it(spark: Any, landing: Landing) -> None:
    landing.lake.create_pool("p", key="k,n")
    df = numbers(
        spark, "id % 3 as k", "id as n", *(f"{v} as `{name}`" for name, v in VALUES.items()), count=9
    )
    pyspark_lake.write(df, "p", lake=landing.uri)
    pyspark_lake.delete(spark, "p", spark.sql("select 1L as k, 4L as n"), lake=landing.uri)
    jobs = spark.sparkContext.statusTracker().getJobIdsForGroup(None)
    one = pyspark_lake.get(spark, "p", [1, 7], lake=landing.uri)
    some = pyspark_lake.get(spark, "p", 1, lake=landing.uri, columns=["n", "text"])
    older = pyspark_lake.get(spark, "p", [1, 4], lake=landing.uri, at=1, columns="n")
    none = pyspark_lake.get(spark, "p", [1, 4], lake=landing.uri)
    assert spark.sparkContext.statusTracker().getJobIdsForGroup(None) == jobs, "no job was run"
    source = spark.read.format("lake").option("lake", landing.uri).load("p").where("k = 1 and n = 7")
    (expected,) = source.collect()
    (found,) = one
    assert [plain(row.asDict(recursive=True)) for row in (found,)] == [plain(expected.asDict(recursive=True))]
    assert [tuple(row) for row in some] == [(1, "\u00e9"), (7, "\u00e9")]
    assert ([row.n for row in older], none) == ([4], [])
    with pytest.raises(InvalidInput, match="column 'absent' does not exist"):
        pyspark_lake.get(spark, "p", 1, lake=landing.uri, columns="absent")


def test_a_read_names_one_revision_of_a_pool_and_a_look_up_no_other_table(
    spark: Any, landing: Landing
) -> None:
    landing.lake.create_pool("p", key="k").branch().append(
        pa.table({"k": [1], "a": [1], "b": [2], "a,b": [3], "[c]": [4]})
    )
    for call in (pyspark_lake.read, pyspark_lake.summary, lambda s, p, **o: pyspark_lake.get(s, p, 1, **o)):
        with pytest.raises(InvalidInput, match="'p@1' with at=99: two revisions are named"):
            call(spark, "p@1", lake=landing.uri, at=99)
        with pytest.raises(InvalidInput, match="the option at is empty"):
            call(spark, "p", lake=landing.uri, at="")
    stream = spark.readStream.format("lake").options(lake=landing.uri, startingTransaction="")
    with pytest.raises(Exception, match="the option startingtransaction is empty"):
        stream.load("p")
    for name in ("p:typed", "p:values", "p:log", "lake:pools"):
        with pytest.raises(InvalidInput, match=f"a get of '{name}': it is of a pool"):
            pyspark_lake.get(spark, name, 1, lake=landing.uri)
        with pytest.raises(InvalidInput, match=f"a summary of '{name}': it is of a pool"):
            pyspark_lake.summary(spark, name, lake=landing.uri)
    for columns in (["a,b"], ["[c]"], ["a", "b"], ("a,b", "b")):
        for frame in (
            pyspark_lake.read(spark, "p", lake=landing.uri, columns=columns),
            spark.read.format("lake").options(lake=landing.uri, columns=text_of(columns)).load("p"),
        ):
            assert frame.columns == list(columns)
    with pytest.raises(InvalidInput, match="onMissing=x: use fail or warn"):
        pyspark_lake.read(spark, "p", lake=landing.uri, onMissing="x")
    with pytest.raises(InvalidInput, match="has 1 value; there is no key"):
        pyspark_lake.get(spark, "p.$nokey", 1, lake=landing.uri)


def test_the_lake_of_the_environment_is_used_if_none_is_named(
    spark: Any, landing: Landing, monkeypatch: pytest.MonkeyPatch
) -> None:
    landing.pool()
    monkeypatch.setenv("LAKE", landing.uri)
    pyspark_lake.write(numbers(spark, count=3), "p")
    assert pyspark_lake.get(spark, "p", 2)[0].k == 2
    assert Lake.open(landing.uri).pool("p").at().records == 3
