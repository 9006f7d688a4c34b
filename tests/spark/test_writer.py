"""`df.write.format("lake")`: one transaction, each record once, whatever becomes of tasks; or one clear line."""

from __future__ import annotations

import datetime as dt
import decimal
import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql.types import StructType

from lake_core.errors import Conflict, InvalidInput
from log_lake.loading.block import Block
from pyspark_lake import use_session
from spark_apps.datasource.writer import LakeWriter, WriteWork, WrittenPartition
from tests.spark.conftest import Landing

pytestmark = pytest.mark.spark


def write(df: Any, landing: Landing, pool: str = "p", mode: str = "append", **options: str) -> None:
    df.write.format("lake").option("lake", landing.uri).options(**options).mode(mode).save(pool)


def load(spark: Any, landing: Landing, name: str = "p") -> Any:
    return spark.read.format("lake").option("lake", landing.uri).load(name)


def numbers(spark: Any, *expressions: str, count: int = 100, tasks: int = 4) -> Any:
    """Rows with `id` from 0, the expressions added, on so many tasks."""
    return spark.range(0, count, 1, tasks).selectExpr(*(expressions or ("id as k",)))


# --- what is written


VALUES = {
    "instant": "timestamp '2026-03-08 02:30:00.123456 UTC'",
    "local": "timestamp_ntz '2026-03-08 02:30:00'",
    "day": "date '0001-01-01'",
    "small": "cast(7 as tinyint)",
    "exact": "cast(1.10 as decimal(10, 2))",
    "bytes": "x'00ff'",
    "float": "cast(0.5 as float)",
    "yes": "true",
    "span": "interval '1' day",
    "text": "'\u00e9'",
    "a.b": "named_struct('x.y', array(named_struct('w', 1), null))",
    "map": "map('a', 1)",
    "of kinds": "if(id = 0, parse_json('[1, {\"b\": 2.50}, null]'), parse_json('\"text\"'))",
    "inside": "named_struct('v', array(parse_json('{\"a\": 1}'), null))",
    "nothing": "null",
}


def test_values_of_every_type_come_back_as_they_were_written(spark: Any, landing: Landing) -> None:
    df = numbers(
        spark, "id as k", *(f"{value} as `{name}`" for name, value in VALUES.items()), count=2, tasks=1
    )
    nulls = numbers(
        spark, "id + 2 as k", *(f"if(id < 0, {v}, null) as `{n}`" for n, v in VALUES.items()), count=1
    )
    landing.pool()
    write(df.union(nulls), landing)
    written = [row.asDict(recursive=True) for row in df.union(nulls).collect()]
    found = [row.asDict(recursive=True) for row in load(spark, landing).collect()]
    assert [plain(row) for row in found] == [plain(row) for row in written]
    stored = landing.lake.pool("p").at().to_table().to_pylist()[0]
    assert stored["instant"] == dt.datetime(2026, 3, 8, 2, 30, 0, 123456, dt.UTC), "not a time of New York"
    assert (stored["exact"], stored["bytes"]) == (decimal.Decimal("1.10"), b"\0\xff")
    assert stored["of kinds"] == '[1,{"b":2.50},null]'


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: plain(v) for name, v in value.items()}
    if isinstance(value, list):
        return [plain(v) for v in value]
    return value.toPython() if hasattr(value, "toPython") else value


VARIANTS = [
    "double('NaN')",
    "timestamp '2026-03-08 02:30:00.123456 UTC'",
    "timestamp_ntz '1969-12-31 23:59:59.999999'",
    "date '0001-01-01'",
    "x'00ff'",
    "array(date '2026-01-01', null)",
    "12345678901234567890123456789012345.678BD",
    "named_struct('lake:date', '2026-01-01')",
    "'text'",
]


def test_variants_of_every_type_come_back_as_they_were_written(spark: Any, landing: Landing) -> None:
    landing.pool()
    for number, value in enumerate(VARIANTS):
        made = f"to_variant_object({value})" if value.startswith(("array", "named")) else f"{value}::variant"
        write(numbers(spark, f"{number} as k", f"{made} as v", count=1), landing)
    rows = (
        load(spark, landing).selectExpr("k", "schema_of_variant(v) as kind", "to_json(v) as text").collect()
    )
    written = spark.range(1).selectExpr(
        *(
            f"schema_of_variant({v}::variant) as k{n}"
            for n, v in enumerate(VARIANTS)
            if not v.startswith(("a", "n"))
        ),
        *(f"to_json({v}::variant) as t{n}" for n, v in enumerate(VARIANTS) if not v.startswith(("a", "n"))),
    )
    expected = written.first().asDict()
    for row in rows:
        if f"k{row.k}" in expected:
            assert (row.kind, row.text) == (expected[f"k{row.k}"], expected[f"t{row.k}"]), VARIANTS[row.k]
    assert [row.text for row in rows if f"k{row.k}" not in expected] == [
        '["2026-01-01",null]',
        '{"lake:date":"2026-01-01"}',
    ]


def test_a_variant_that_is_null_is_no_value(spark: Any, landing: Landing) -> None:
    landing.pool()
    write(numbers(spark, "id as k", "parse_json('null') as a", count=1), landing)
    assert landing.lake.pool("p").at().to_table().to_pylist() == [{"k": 0, "a": None}]


def test_a_variant_of_a_time_that_the_lake_has_not_is_refused(spark: Any, landing: Landing) -> None:
    landing.pool()
    with pytest.raises(
        AnalysisException, match=r"InvalidInput: column 'v': the lake cannot hold a variant: .*1 to 9999"
    ):
        write(numbers(spark, "id as k", "date '+10000-01-01'::variant as v", count=1), landing)


def test_records_are_sorted_by_key_and_equal_keys_are_in_the_order_of_the_partitions(
    spark: Any, landing: Landing
) -> None:
    landing.pool(load_memory="1kB", load_sort="parts")
    write(numbers(spark, "id % 10 as k", "id as n", count=1000, tasks=5), landing)
    table = landing.lake.pool("p").at().to_table()
    assert landing.transactions("p") == 1
    assert list(zip(table["k"].to_pylist(), table["n"].to_pylist(), strict=True)) == sorted(
        (n % 10, n) for n in range(1000)
    )


def test_records_without_the_key_go_to_nokey(spark: Any, landing: Landing) -> None:
    landing.pool()
    write(numbers(spark, "if(id % 2 = 0, id, null) as k", "id as n", count=6), landing)
    assert landing.keys("p") == [0, 2, 4]
    assert landing.keys("p.$nokey", "n") == [1, 3, 5]
    assert landing.transactions("p") == 1


def test_a_data_frame_is_written_in_the_types_that_the_pool_declares(spark: Any, landing: Landing) -> None:
    landing.lake.create_pool("p", key="k", settings={"type.k": "timestamp", "type.v": "json"})
    write(numbers(spark, "'2026-01-01T00:00:00Z' as k", "id as v", count=1), landing)
    (record,) = landing.lake.pool("p").at().to_table().to_pylist()
    assert record == {"k": dt.datetime(2026, 1, 1, tzinfo=dt.UTC), "v": "0"}
    with pytest.raises(PySparkException, match="the data frame: field 'k': 'no time' is not a timestamp"):
        write(numbers(spark, "'no time' as k", count=1), landing)


def test_the_kind_of_the_pool_decides_what_becomes_of_equal_keys(spark: Any, landing: Landing) -> None:
    landing.lake.create_pool("u", key="k", kind="upsert")
    landing.lake.create_pool("a", key="k", kind="aggregate", aggregates={"n": "sum"})
    df = numbers(spark, "id % 2 as k", "id as n", count=10, tasks=3)
    for pool in ("u", "a"):
        write(df, landing, pool)
    assert landing.lake.pool("u").at().to_table().to_pylist() == [{"k": 0, "n": 8}, {"k": 1, "n": 9}]
    assert landing.lake.pool("a").at().to_table().to_pylist() == [{"k": 0, "n": 20}, {"k": 1, "n": 25}]


def test_a_write_rolls_times_up(spark: Any, landing: Landing) -> None:
    settings = {"roll_up": "ts:1h"}
    landing.lake.create_pool("p", key="ts", kind="aggregate", aggregates={"n": "sum"}, settings=settings)
    write(numbers(spark, "timestamp_seconds(id * 60) as ts", "1L as n", count=180), landing)
    found = [
        (row["ts"].timestamp(), int(row["n"])) for row in landing.lake.pool("p").at().to_table().to_pylist()
    ]
    assert found == [(0, 60), (3600, 60), (7200, 60)]


def test_message_and_author_are_in_the_log(spark: Any, landing: Landing) -> None:
    landing.pool()
    write(numbers(spark), landing, message="by hand", branch="main")
    ((_, transaction),) = landing.lake.pool("p").log()
    assert (transaction.message, transaction.author) == ("by hand", landing.lake.context.author)


def test_an_empty_data_frame_is_no_transaction(spark: Any, landing: Landing) -> None:
    landing.pool()
    write(numbers(spark).where("k < 0"), landing)
    assert landing.transactions("p") == 0


# --- exactly once


def test_what_is_written_again_under_its_token_changes_nothing(spark: Any, landing: Landing) -> None:
    landing.pool()
    for _ in range(2):
        write(numbers(spark, count=50_000), landing, token="t")
    assert landing.keys("p") == list(range(50_000))
    assert landing.transactions("p") == 1
    assert landing.data("p") == landing.held("p"), "the second time no object was built"
    write(numbers(spark, "id + 50000 as k", count=5), landing, token="another")
    assert landing.transactions("p") == 2


def test_a_token_that_was_used_for_other_data_is_refused(spark: Any, landing: Landing) -> None:
    landing.pool()
    write(numbers(spark, "if(id % 2 = 0, id, null) as k", count=10), landing, token="t")
    said = (
        "InvalidInput: token 't' stands for version 1, which brought 10 records; these are 7, so nothing was"
    )
    with pytest.raises(AnalysisException, match=said):
        write(numbers(spark, count=7), landing, token="t")
    assert landing.transactions("p") == 1
    assert landing.data("p") == landing.held("p"), "no object was built"


def test_where_records_of_equal_keys_become_one_only_fewer_records_are_surely_other_data(
    spark: Any, landing: Landing
) -> None:
    landing.lake.create_pool("u", key="k", kind="upsert")
    for _ in range(2):
        write(numbers(spark, "id % 5 as k", count=20, tasks=1), landing, "u", token="t")
    with pytest.raises(
        AnalysisException, match="which brought 5 records; these are 4, so nothing was written"
    ):
        write(numbers(spark, count=4), landing, "u", token="t")
    assert landing.transactions("u") == 1


def test_a_write_that_changed_nothing_is_in_the_log(
    landing: Landing, caplog: pytest.LogCaptureFixture
) -> None:
    landing.pool()
    landing.lake.pool("p").branch().append(pa.table({"k": [1, 2]}), token="t")
    writer = LakeWriter(
        {"lake": landing.uri, "path": "p", "token": "t"}, StructType().add("k", "long"), overwrite=False
    )
    writer.commit([WrittenPartition(0, counted=1), WrittenPartition(1, counted=1)])
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == [
        "pool p: token 't' stands for version 1; nothing was written now"
    ]


def test_of_two_writes_under_one_token_at_once_the_later_one_is_told(
    landing: Landing, caplog: pytest.LogCaptureFixture
) -> None:
    landing.pool()
    schema = StructType().add("k", "long")
    options = {"lake": landing.uri, "path": "p", "token": "t"}
    writer = LakeWriter(options, schema, overwrite=False)
    assert isinstance(writer._work, WriteWork)
    branch = landing.lake.pool("p").branch()
    builder = branch.builder(writer._work.job)
    builder.add(Block(pa.table({"k": [1, 2]})))
    (built,) = builder.finish()
    branch.append(pa.table({"k": [1, 2, 3]}), token="t")
    message = WrittenPartition(0, writer._work.job, objects=(built.action,), schemas=(built.schema,))
    with pytest.raises(InvalidInput, match="which brought 3 records; these are 2"):
        writer.commit([message])
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == [
        "pool p: token 't' stands for version 1; nothing was written now"
    ]
    assert landing.keys("p") == [1, 2, 3]


def test_a_task_that_fails_and_is_tried_again_writes_its_records_once(spark: Any, landing: Landing) -> None:
    landing.pool(load_memory="20kB", load_sort="parts")

    def fail_once(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        yield from batches
        if context.partitionId() == 1 and context.attemptNumber() < 2:
            raise RuntimeError("after its last record")

    df = numbers(spark, count=40_000, tasks=2).mapInArrow(fail_once, "k long")
    write(df, landing)
    assert landing.keys("p") == list(range(40_000))
    assert landing.data("p") > landing.held("p"), "what the first tries wrote is the vacuum's"


def test_a_write_whose_tasks_fail_commits_nothing_and_deletes_nothing(spark: Any, landing: Landing) -> None:
    landing.pool(load_memory="20kB", load_sort="parts")

    def fail(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches
        raise RuntimeError("always")

    with pytest.raises(PySparkException, match="always"):
        write(numbers(spark, count=40_000, tasks=2).mapInArrow(fail, "k long"), landing)
    assert landing.transactions("p") == 0
    assert landing.data("p"), "the objects are left"


def test_of_two_attempts_at_a_task_only_the_one_that_spark_names_counts(spark: Any, landing: Landing) -> None:
    """As with speculation: both run to their end, in real tasks; Spark hands one message a partition to commit."""
    landing.pool()
    schema = StructType().add("k", "long")
    writer = LakeWriter({"lake": landing.uri, "path": "p"}, schema, overwrite=False)

    def attempt(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pickle

        yield pa.record_batch({"message": [pickle.dumps(writer.write(batches))]})

    import pickle

    first, second = (
        [pickle.loads(row.message) for row in numbers(spark).mapInArrow(attempt, "message binary").collect()]
        for _ in range(2)
    )
    writer.commit([first[0], second[1], first[2], second[3]])
    assert landing.keys("p") == list(range(100))
    assert len(landing.data("p")) == 8
    assert len(landing.held("p")) == 4


def test_a_pool_that_was_made_anew_meanwhile_gets_nothing(spark: Any, landing: Landing) -> None:
    landing.pool()
    writer = LakeWriter({"lake": landing.uri, "path": "p"}, StructType().add("k", "long"), overwrite=False)
    assert isinstance(writer._work, WriteWork)
    messages = [WrittenPartition(0, writer._work.job)]
    landing.lake.drop_pool("p")
    landing.pool()
    committing = LakeWriter(
        {"lake": landing.uri, "path": "p"}, StructType().add("k", "long"), overwrite=False
    )
    with pytest.raises(Conflict, match="dropped and created again"):
        committing.commit(messages)


# --- what is replaced


def keys(landing: Landing) -> list[int]:
    table = landing.lake.pool("p").at().to_table()
    return sorted(table["k"].to_pylist()) if table.num_rows else []


def test_an_overwrite_replaces_all_records_in_one_transaction(spark: Any, landing: Landing) -> None:
    landing.pool()
    write(numbers(spark), landing)
    write(numbers(spark, "id + 1000 as k", count=10), landing, mode="overwrite", token="t", message="again")
    assert keys(landing) == list(range(1000, 1010))
    assert landing.transactions("p") == 2
    assert next(t.message for _, t in landing.lake.pool("p").log()) == "again"
    write(numbers(spark, "id + 1000 as k", count=10), landing, mode="overwrite", token="t")
    assert landing.transactions("p") == 2, "under a token once"


@pytest.mark.parametrize(
    ("options", "replaced"),
    [
        ({"from": "10", "to": "20"}, set(range(10, 20))),
        ({"from": "90"}, set(range(90, 100))),
        ({"where": "day = 3"}, {k for k in range(100) if k % 7 == 3}),
        ({"where": "day = 3", "to": "50"}, {k for k in range(50) if k % 7 == 3}),
    ],
)
def test_an_overwrite_of_a_range_or_a_condition_leaves_the_other_records(
    spark: Any, landing: Landing, options: dict[str, str], replaced: set[int]
) -> None:
    landing.pool()
    write(numbers(spark, "id as k", "id % 7 as day"), landing)
    new = numbers(spark, "id as k", "id % 7 as day").where(f"k = {min(replaced)}")
    write(new, landing, mode="overwrite", **options)
    assert keys(landing) == sorted(set(range(100)) - replaced | {min(replaced)})


def test_values_of_every_type_may_be_written_in_place_of_others(spark: Any, landing: Landing) -> None:
    landing.pool()
    columns = [f"{value} as `{name}`" for name, value in VALUES.items()]
    new = numbers(
        spark, "id as k", *columns, "array(timestamp '2026-01-01 00:00:00') as inside_times", count=2
    )
    write(new, landing, mode="overwrite", **{"from": "0", "to": "10"})
    assert keys(landing) == [0, 1]


def test_an_overwrite_by_no_record_deletes(spark: Any, landing: Landing) -> None:
    landing.pool()
    write(numbers(spark), landing)
    write(numbers(spark).where("k < 0"), landing, mode="overwrite", **{"from": "50"})
    assert keys(landing) == list(range(50))


def test_a_first_overwrite_may_name_a_range_and_fields_that_only_its_records_bring(
    spark: Any, landing: Landing
) -> None:
    landing.pool()
    new = numbers(spark, "id as k", "named_struct('zone', 'a') as at", count=5)
    write(new, landing, mode="overwrite", **{"from": "0", "to": "10", "where": "at.zone = 'a'"})
    assert keys(landing) == list(range(5))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"from": "10", "to": "20"},
            "new records from key .* some lie outside the range; nothing was committed",
        ),
        ({"where": "day = 3"}, "new records do not fulfil the condition; nothing was committed"),
        ({"from": "5", "to": "5"}, "InvalidInput: .*empty"),
    ],
)
def test_records_that_would_not_be_replaced_again_are_refused(
    spark: Any, landing: Landing, options: dict[str, str], said: str
) -> None:
    landing.pool()
    write(numbers(spark, "id as k", "id % 7 as day"), landing)
    with pytest.raises(AnalysisException, match=said):
        write(numbers(spark, "id as k", "id % 7 as day"), landing, mode="overwrite", **options)
    assert keys(landing) == list(range(100))


def test_two_overwrites_of_one_range_at_once_conflict(spark: Any, landing: Landing) -> None:
    landing.pool()
    schema = StructType().add("k", "long")
    first = LakeWriter({"lake": landing.uri, "path": "p"}, schema, overwrite=True)
    write(numbers(spark, count=3), landing, mode="overwrite")
    with pytest.raises(Conflict, match="replace"):
        first.commit([])
    assert keys(landing) == [0, 1, 2]


# --- refusals


def test_bad_records_are_said_once_and_nothing_is_committed(spark: Any, landing: Landing) -> None:
    landing.pool()
    with pytest.raises(
        AnalysisException, match="InvalidInput: key field 'k': no type of 64 bits holds"
    ) as caught:
        write(numbers(spark, "parse_json(string(id)) as k"), landing)
    assert "Job aborted" not in str(caught.value), "no task failed, and none was tried again"
    assert landing.transactions("p") == 0


@pytest.mark.parametrize(
    ("pool", "options", "said"),
    [
        ("p", {"from": "1"}, "unknown option 'from'"),
        ("p", {"mode": "overwrite", "where": "nothing > 1"}, "InvalidInput: .*nothing"),
        (
            "p",
            {"mode": "overwrite", "tokn": "t"},
            "a write has lake, branch, message, token, schema, meta.NAME, from, to, where, caseSensitive",
        ),
        (
            "p",
            {"tokn": "t"},
            "unknown option 'tokn': a write has lake, branch, message, token, schema, meta.NAME, caseSensitive",
        ),
        ("p", {"columns": "k"}, "option 'columns'"),
        ("p", {"branch": "side"}, "NotFound: pool 'p': branch 'side' does not exist"),
        ("p@main", {}, "the option `branch` chooses a branch"),
        ("p:log", {}, "name a pool"),
        ("p.$nokey", {}, "read-only"),
        ("nowhere", {}, "NotFound: pool 'nowhere' does not exist"),
    ],
)
def test_what_cannot_be_written_is_refused_in_one_line_before_anything_is(
    spark: Any, landing: Landing, pool: str, options: dict[str, str], said: str
) -> None:
    landing.pool()
    with pytest.raises(AnalysisException, match=said):
        write(numbers(spark), landing, pool, **options)
    assert landing.data("p") == set()


@pytest.mark.parametrize(
    ("columns", "said"),
    [([], "has no columns"), (["id as k", "id as k"], "column 'k' occurs twice in the data frame")],
)
def test_a_data_frame_whose_columns_are_no_records_is_refused(
    spark: Any, landing: Landing, columns: list[str], said: str
) -> None:
    landing.pool()
    with pytest.raises(AnalysisException, match=said):
        write(spark.range(3).selectExpr(*columns) if columns else spark.range(3).select(), landing)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("map('a', parse_json('1'))", "column 'v': the lake has no variants inside a map"),
        ("array(map('a', array(parse_json('1'))))", "column 'v': the lake has no variants inside a map"),
        ("interval '3' month", "column 'v': the lake has no type interval month; write a number of months"),
        ("named_struct('a', array(interval '1' year))", "column 'v.a': the lake has no type interval year"),
        ("map(1, interval '1' year)", "column 'v': the lake has no type interval year"),
        ("map()", r"column 'v': the map's keys have no type \(map<void,void>\); cast it"),
        ("array(map())", "column 'v': the map's keys have no type"),
        (
            "st_geomfromwkb(x'0101000000000000000000f03f0000000000000040')",
            "column 'v': the lake has no type geom",
        ),
        ("named_struct('a', 1, 'a', 2)", "column 'v.a' occurs twice in the data frame"),
        ("named_struct('a', 1, 'A', 2)", "columns 'v.a' and 'v.A' of the data frame differ in case only"),
    ],
)
def test_a_type_that_the_lake_has_not_is_refused_when_the_write_is_planned(
    spark: Any, landing: Landing, value: str, said: str
) -> None:
    landing.pool()
    with pytest.raises(AnalysisException, match=f"InvalidInput: {said}") as caught:
        write(numbers(spark, "id as k", f"{value} as v", count=1), landing)
    assert "Failed to initialize Python data source writer" in str(caught.value), "no task began"
    assert landing.data("p") == set()


@pytest.mark.parametrize(
    "value", ["map('a', null)", "array()", "named_struct('a', null)", "cast(map() as map<int, int>)"]
)
def test_values_of_types_that_are_not_known_are_kept(spark: Any, landing: Landing, value: str) -> None:
    landing.pool()
    write(numbers(spark, "id as k", f"{value} as v", count=1), landing)
    (row,) = load(spark, landing).collect()
    assert row.asDict(recursive=True)["v"] in ({"a": None}, [], {})


@pytest.mark.parametrize(
    ("value", "column", "day"),
    [
        ("date '+10000-01-01'", "v", "10000-01-01"),
        ("date '0000-12-31'", "v", "0000-12-31"),
        ("array(date '-0044-03-15')", "v", "-0044-03-15"),
        ("named_struct('a', map('b', date '+12026-01-01'))", "v.a", "12026-01-01"),
        ("map(date '+12026-01-01', 1)", "v", "12026-01-01"),
        ("timestamp '+12000-06-01 00:00:00 UTC'", "v", "12000-06-01"),
        ("timestamp_ntz '0000-12-31 23:59:59.999999'", "v", "0000-12-31"),
    ],
)
def test_a_day_outside_of_the_years_1_to_9999_is_refused_with_its_column(
    spark: Any, landing: Landing, value: str, column: str, day: str
) -> None:
    landing.pool()
    with pytest.raises(
        AnalysisException, match=f"InvalidInput: column '{column}': {day} is outside of the years"
    ):
        write(numbers(spark, "id as k", f"{value} as v", count=1), landing)
    assert landing.transactions("p") == 0


def test_the_first_and_the_last_day_are_kept(spark: Any, landing: Landing) -> None:
    landing.pool()
    days = ["date '0001-01-01'", "date '9999-12-31'", "timestamp '0001-01-01 00:00:00 UTC'"]
    write(numbers(spark, "id as k", f"array({days[0]}, {days[1]}) as d", f"{days[2]} as t", count=1), landing)
    (row,) = landing.lake.pool("p").at().to_table().to_pylist()
    assert row["d"] == [dt.date.min, dt.date.max]
    assert row["t"] == dt.datetime(1, 1, 1, tzinfo=dt.UTC)


def test_a_time_of_day_comes_back_in_the_type_that_is_asked_for(spark: Any, landing: Landing) -> None:
    landing.pool()
    write(numbers(spark, "id as k", "time '12:34:56.123456' as t", count=1), landing)
    assert load(spark, landing).first().t == 45_296_123_456_000, "nanoseconds since midnight"
    typed = spark.read.format("lake").option("lake", landing.uri).schema("t time(6)").load("p")
    assert typed.collect()[0].t == dt.time(12, 34, 56, 123456)


# --- names in upper and lower case


def test_a_column_that_the_pool_has_in_another_case_is_refused(spark: Any, landing: Landing) -> None:
    landing.pool()
    with pytest.raises(AnalysisException, match="InvalidInput: column 'K': pool 'p' has it as 'k'"):
        write(numbers(spark, "id as K"), landing)
    write(numbers(spark, "id as k", "id as v", count=3), landing)
    with pytest.raises(AnalysisException, match="InvalidInput: column 'V': pool 'p' has it as 'v'"):
        write(numbers(spark, "id as k", "id as V"), landing)
    assert landing.keys("p") == [0, 1, 2]
    with pytest.raises(
        AnalysisException, match=r"no record has the key field 'k'; it has 'K'; .* nokey=accept"
    ):
        write(numbers(spark, "id as K", count=2), landing, caseSensitive="true")
    landing.lake.configure_pool("p", {"nokey": "accept"})
    write(numbers(spark, "id as K", count=2), landing, caseSensitive="true")
    assert landing.keys("p.$nokey", "K") == [0, 1]


@pytest.mark.parametrize(
    ("pool", "column", "name"),
    [
        ({"kind": "upsert"}, "_Deleted", "_deleted"),
        ({"kind": "aggregate", "aggregates": {"bytes": "sum"}}, "Bytes", "bytes"),
        ({"settings": {"type.when": "timestamp"}}, "WHEN", "when"),
        ({"settings": {"age_off": "ts:30d"}}, "Ts", "ts"),
        ({"settings": {"roll_up": "ts:1h"}}, "Ts", "ts"),
        ({"settings": {"keep.where": "level = 'warn'"}}, "Level", "level"),
    ],
)
def test_a_column_that_the_pool_only_speaks_of_is_refused_in_another_case_too(
    landing: Landing, pool: dict[str, Any], column: str, name: str
) -> None:
    landing.lake.create_pool("p", key="k", **pool)
    schema = StructType().add("k", "long").add(column, "long")
    with pytest.raises(InvalidInput, match=f"column '{column}': pool 'p' has it as '{name}'"):
        LakeWriter({"lake": landing.uri, "path": "p"}, schema, overwrite=False)


def test_columns_of_a_data_frame_that_differ_in_case_only_are_refused(spark: Any, landing: Landing) -> None:
    landing.pool()
    df = numbers(spark, "id as k", "id as v", "id as V", count=1)
    with pytest.raises(AnalysisException, match="columns 'v' and 'V' of the data frame differ in case only"):
        write(df, landing)
    write(df, landing, caseSensitive="true")
    assert landing.lake.pool("p").at().to_table().to_pylist() == [{"k": 0, "v": 0, "V": 0}]


# --- threads


def test_another_thread_writes_once_it_has_the_session(spark: Any, landing: Landing) -> None:
    landing.pool()
    with ThreadPoolExecutor(2, initializer=use_session, initargs=(spark,)) as threads:
        for done in [
            threads.submit(write, numbers(spark, f"id + {n} as k", count=1), landing) for n in range(4)
        ]:
            done.result()
    assert landing.keys("p") == [0, 1, 2, 3]


def test_a_batch_of_a_stream_is_written_by_foreach_batch(
    spark: Any, landing: Landing, tmp_path: Path
) -> None:
    landing.pool("p")
    landing.pool("q")
    landing.lake.pool("p").branch().append(pa.table({"k": [1, 2]}))
    stream = spark.readStream.format("lake").option("lake", landing.uri).load("p")

    def each(df: Any, batch: int) -> None:
        write(df, landing, "q", token=f"batch {batch}")

    query = (
        stream.writeStream.foreachBatch(each)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
    )
    query.start().awaitTermination(600)
    assert landing.keys("q") == [1, 2]
