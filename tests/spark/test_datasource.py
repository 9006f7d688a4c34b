"""`spark.read.format("lake")`: the records of `lake scan`, in its order; asked for less, it reads less."""

from __future__ import annotations

import contextlib
import datetime as dt
import decimal
import gzip
import json
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import functions as f
from pyspark.sql.types import LongType, StructField, StructType

from lake_core.errors import InvalidInput
from local.flights import KEY, NULL, RECORDS, by_day, read_flights
from log_lake.columns.json_text import json_lines
from log_lake.lake import Lake
from log_lake.lake.view import View
from log_lake.loading.sources import find_files
from log_lake.system_tables.names import system_table
from spark_apps.datasource import LakeDataSource
from spark_apps.datasource import options as opts
from spark_apps.datasource.part import Part
from spark_apps.datasource.system_tables import SystemTableReader
from spark_apps.load import load_files
from tests.spark.conftest import Landing
from tests.support.repository import ZEEK
from tests.support.spark.answers import assert_same, read

pytestmark = pytest.mark.spark


def load(spark: Any, landing: Landing, name: str = "p", **options: str) -> Any:
    """The pool as a data frame."""
    return spark.read.format("lake").option("lake", landing.uri).options(**options).load(name)


def keys(df: Any, field: str = "k") -> list[Any]:
    """The key of every row, in the order of the rows."""
    return df.toArrow()[field].to_pylist()


@pytest.fixture
def numbers(landing: Landing) -> Landing:
    """A pool of the numbers 0 to 99 in four objects that follow each other, each in a transaction."""
    landing.pool()
    branch = landing.lake.pool("p").branch()
    for low in range(0, 100, 25):
        branch.append(pa.table({"k": range(low, low + 25), "s": [f"s{n}" for n in range(low, low + 25)]}))
    return landing


# --- real records


@pytest.fixture(scope="module")
def zeek(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[pa.Table, pa.Table]:
    """All 23 Zeek logs, taken by Spark into one pool keyed by `ts`: as Spark and as the lake give them."""
    if not ZEEK.is_dir():
        pytest.skip(f"no Zeek logs in {ZEEK}")
    lake = Lake.create(str(tmp_path_factory.mktemp("zeek") / "lake"))
    lake.create_pool("logs", key="ts")
    load_files(spark, lake, pool_name="logs", files=find_files([str(ZEEK)]))
    df = spark.read.format("lake").option("lake", lake.store.uri).option("tasks", 3).load("logs")
    return read(df), lake.pool("logs").at().to_table()


def test_the_zeek_logs_come_back_as_lake_scan_gives_them(zeek: tuple[pa.Table, pa.Table]) -> None:
    found, expected = zeek
    assert_same(found, expected)
    times = found["ts"].to_pylist()
    assert times == sorted(times)


def test_the_zeek_logs_come_back_as_they_were_written(zeek: tuple[pa.Table, pa.Table]) -> None:
    """From Spark, record by record, against the files."""
    written = [
        json.loads(line)
        for path in sorted(ZEEK.iterdir())
        for line in gzip.decompress(path.read_bytes()).splitlines()
    ]
    table, expected = zeek
    marked = [table.schema.field(ours.name).with_metadata(ours.metadata) for ours in expected.schema]
    typed = pa.table(table.columns, schema=pa.schema(marked))
    found = [json.loads(line) for line in json_lines(typed).to_pylist()]
    assert len(found) == len(written)
    assert sorted(map(canonical, found)) == sorted(map(canonical, written))


def canonical(record: dict[str, Any]) -> str:
    """Numbers by value (1 and 1.0 are one), times without trailing zeros, null fields left out."""
    return json.dumps({k: _canonical(v) for k, v in record.items() if v is not None}, sort_keys=True)


def _canonical(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and value.endswith("Z"):
        with contextlib.suppress(ValueError):
            return dt.datetime.fromisoformat(value).isoformat()
    if isinstance(value, list):
        return [_canonical(item) for item in value]
    return value


def test_the_flights_come_back_as_lake_scan_gives_them(spark: Any, landing: Landing) -> None:
    landing.lake.create_pool("flights", key=KEY, settings={"csv.null": NULL})
    for day, content in by_day(read_flights()).items():
        landing.file(f"{day}.csv", content)
    result = landing.load(spark, "flights")
    assert result.records == RECORDS
    df = load(spark, landing, "flights", tasks="4")
    expected = landing.lake.pool("flights").at().to_table()
    assert_same(read(df), expected)
    delays = df.groupBy("carrier").agg(f.avg("dep_delay").alias("mean")).collect()
    ours = expected.group_by("carrier").aggregate([("dep_delay", "mean")]).to_pylist()
    assert {r.carrier: r["mean"] for r in delays} == pytest.approx(
        {r["carrier"]: r["dep_delay_mean"] for r in ours}
    )


def test_values_of_every_type_come_back(spark: Any, landing: Landing) -> None:
    moment = dt.datetime(2026, 3, 8, 2, 30, 0, 123456)  # an hour that New York does not have
    landing.pool()
    landing.lake.pool("p").branch().append(
        pa.table(
            {
                "k": pa.array([1, 2, 3], pa.int16()),
                "instant": pa.array([moment, None, moment], pa.timestamp("us", "UTC")),
                "local": pa.array([moment, None, moment], pa.timestamp("us")),
                "nanos": pa.array([1_000_000_001, None, -1], pa.timestamp("ns", "UTC")),
                "day": pa.array([moment.date(), None, dt.date(1, 1, 1)], pa.date32()),
                "huge": pa.array([2**64 - 1, None, 0], pa.uint64()),
                "small": pa.array([2**32 - 1, None, 0], pa.uint32()),
                "clock": pa.array([dt.time(1, 2, 3), None, None], pa.time32("s")),
                "exact": pa.array([decimal.Decimal("1.10"), None, None], pa.decimal128(10, 2)),
                "bytes": pa.array([b"\0\xff", None, b""], pa.binary()),
                "float": pa.array([0.1, None, float("nan")], pa.float32()),
                "nothing": pa.nulls(3),
                "ja/nein": pa.array([True, None, False]),
                "lists": pa.array([[1, None], None, []], pa.list_(pa.int64())),
                "a.b": pa.array([{"x.y": {"z": [{"w": 1}]}}, None, {"x.y": None}]),
                "map": pa.array([[("a", 1)], None, []], pa.map_(pa.string(), pa.int64())),
                "fine": pa.array([[("a", -1)], None, []], pa.map_(pa.string(), pa.timestamp("ns", "UTC"))),
                "span": pa.array([-1, None, 1_999], pa.duration("ns")),
                "times": pa.array([[dt.time(1, 2, 3)], None, []], pa.list_(pa.time64("us"))),
            }
        )
    )
    found = load(spark, landing).toArrow().to_pylist()
    assert found[1] == {"k": 2} | dict.fromkeys(list(found[1])[1:])
    first, last = found[0], found[2]
    utc = dt.UTC
    assert (first["instant"].astimezone(utc), first["local"]) == (moment.replace(tzinfo=utc), moment)
    before = dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=utc)
    assert first["nanos"].astimezone(utc) == dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=utc)
    assert last["nanos"].astimezone(utc) == before, "the microsecond before, as after 1970"
    assert first["fine"][0][1].astimezone(utc) == before
    assert (first["span"], last["span"]) == (dt.timedelta(microseconds=-1), dt.timedelta(microseconds=1))
    assert (first["huge"], first["small"]) == (2**64 - 1, 2**32 - 1)
    assert (first["clock"], first["times"]) == (3723 * 10**9, [3723 * 10**9]), "nanoseconds since midnight"
    assert (first["day"], last["day"]) == (moment.date(), dt.date(1, 1, 1))
    assert (first["exact"], first["bytes"], last["bytes"]) == (decimal.Decimal("1.10"), b"\0\xff", b"")
    assert (first["float"], first["nothing"], first["ja/nein"]) == (pytest.approx(0.1), None, True)
    assert (first["lists"], last["lists"]) == ([1, None], [])
    assert (first["a.b"], last["a.b"]) == ({"x.y": {"z": [{"w": 1}]}}, {"x.y": None})
    assert (first["map"], last["map"]) == ([("a", 1)], [])


def test_times_and_bytes_in_a_field_of_several_kinds_keep_their_type(spark: Any, landing: Landing) -> None:
    landing.pool()
    branch = landing.lake.pool("p").branch()
    moment = dt.datetime(2026, 1, 2, 3, 4, 5, 6, dt.UTC)
    values = [
        pa.array([moment], pa.timestamp("us", "UTC")),
        pa.array([moment.replace(tzinfo=None)], pa.timestamp("us")),
        pa.array([moment.date()]),
        pa.array([b"\0\xff"]),
        pa.array([float("inf")]),
        pa.array(["text"]),
    ]
    for n, value in enumerate(values):
        branch.append(pa.table({"k": [n], "v": value}))
    rows = load(spark, landing).selectExpr("schema_of_variant(v) as kind", "v").collect()
    assert [row.kind for row in rows] == ["TIMESTAMP", "TIMESTAMP_NTZ", "DATE", "BINARY", "DOUBLE", "STRING"]
    assert [row.v.toPython() for row in rows] == [v[0].as_py() for v in values]
    shown = spark.read.format("lake").option("lake", landing.uri).schema("v string").load("p").collect()
    assert [row.v for row in shown][2:4] == ['"2026-01-02"', '"AP8="'], "as `lake scan` shows it"


def test_a_field_of_several_kinds_is_a_variant(spark: Any, landing: Landing) -> None:
    landing.pool()
    values = [1, "one", [1, {"two": 2.5}], {"a": None}, None, True]
    landing.file("a.ndjson", [{"k": n, "v": value} for n, value in enumerate(values)])
    landing.load(spark, "p")
    df = load(spark, landing)
    assert df.schema["v"].dataType.simpleString() == "variant"
    assert [None if r.v is None else r.v.toPython() for r in df.collect()] == values
    as_text = spark.read.format("lake").option("lake", landing.uri).schema("v string").load("p").collect()
    assert [None if r.v is None else json.loads(r.v) for r in as_text] == values


# --- less than all


def test_the_option_columns_chooses_and_orders_them(spark: Any, numbers: Landing) -> None:
    table = load(spark, numbers, columns="s,k").toArrow()
    assert table.schema.names == ["s", "k"]
    assert table["s"].to_pylist() == [f"s{n}" for n in range(100)]
    assert load(spark, numbers, columns="s").toArrow().schema.names == ["s"], "the key is not needed"


def test_a_users_schema_chooses_columns_and_types(spark: Any, numbers: Landing) -> None:
    reader = spark.read.format("lake").option("lake", numbers.uri)
    table = reader.schema("s string, k double, new int").load("p").toArrow()
    assert table.schema.names == ["s", "k", "new"]
    assert table["k"].to_pylist() == [float(n) for n in range(100)]
    assert table["new"].null_count == 100
    with pytest.raises(PySparkException, match=r"column 's': the lake does not read string as int"):
        reader.schema("s int").load("p").collect()


def test_a_count_needs_no_columns(spark: Any, numbers: Landing) -> None:
    assert load(spark, numbers).count() == 100


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"from": "90"}, range(90, 100)),
        ({"to": "10"}, range(10)),
        ({"from": "20", "to": "30", "tasks": "7"}, range(20, 30)),
        ({"from": "100"}, []),
    ],
)
def test_from_and_to_choose_a_range_of_keys(
    spark: Any, numbers: Landing, options: dict[str, str], expected: Any
) -> None:
    assert keys(load(spark, numbers, **options)) == list(expected)


@pytest.mark.parametrize(
    ("where", "expected"), [("k >= 20 and k < 23", [20, 21, 22]), ("s = 's7'", [7]), ("s < 's0'", [])]
)
def test_the_option_where_chooses_records_and_refuses_unknown_fields(
    spark: Any, numbers: Landing, where: str, expected: list[int]
) -> None:
    assert keys(load(spark, numbers, where=where)) == expected
    with pytest.raises(PySparkException, match="no such field"):
        load(spark, numbers, where="zz = 1").collect()


def test_where_chooses_the_same_records_once_their_field_is_json(landing: Landing) -> None:
    landing.pool()
    branch = landing.lake.pool("p").branch()

    def found(where: str) -> list[int]:
        """As a task reads it: the reader goes there pickled.  Spark itself has no part in what is found."""
        source = LakeDataSource({"lake": landing.uri, "path": "p", "where": where})
        reader = pickle.loads(pickle.dumps(source.reader(source.schema())))
        batches = [batch for part in reader.partitions() for batch in reader.read(part)]
        return [k for batch in batches for k in batch.column("k").to_pylist()]

    branch.append(pa.table({"k": [1, 2], "x": [dt.date(2026, 1, 31), dt.date(2026, 2, 1)]}))
    assert found("x = '2026-01-31'") == [1]
    branch.append(pa.table({"k": [3, 4], "x": [1.0, 0.1]}))
    assert found("x = '2026-01-31'") == [1]
    assert found("not x < '2026-02-01'") == [2]
    assert found("x <= 0.10000000000000000001") == [4]


def test_rows_are_in_key_order_on_however_many_tasks(spark: Any, landing: Landing) -> None:
    landing.pool()
    for start in range(8):
        landing.lake.pool("p").branch().append(pa.table({"k": range(start, 800, 8)}))
    landing.lake.pool("p").branch().append(pa.table({"k": range(800, 900)}))
    df = load(spark, landing, tasks="5")
    assert df.rdd.getNumPartitions() == 5
    assert keys(df) == list(range(900))


def test_one_large_object_is_read_by_several_tasks_of_about_equal_weight(
    spark: Any, landing: Landing
) -> None:
    landing.pool()
    landing.lake.pool("p").branch().append(pa.table({"k": [n * n for n in range(10_000)]}))
    df = load(spark, landing, tasks="4")
    shares = [r["count"] for r in df.groupBy(f.spark_partition_id()).count().collect()]
    assert len(shares) == 4
    assert max(shares) <= 1.1 * 2_500
    assert keys(df) == [n * n for n in range(10_000)]


@pytest.mark.parametrize(
    ("where", "expected", "objects"),
    [
        ("k = 42", [42], 1),
        ("k > 97 and s != 's98'", [99], 1),
        ("k >= 24 and k <= 25", [24, 25], 2),
        ("k in (42, 30)", [30, 42], 1),
        ("k > 60 and k < 50", [], 0),
        ("s = 's99'", [99], 1),
        ("s is null", [], 0),
    ],
)
def test_the_option_where_reads_only_the_objects_that_can_fulfil_it(
    spark: Any, numbers: Landing, where: str, expected: list[int], objects: int
) -> None:
    """Shown by taking all other objects away: what is needed and missing would be an error."""
    view = numbers.lake.pool("p").at()
    needed = [r for r in view.references if set(pool_keys(numbers, r)) & set(expected)]
    assert len(needed) == objects
    for reference in view.references:
        if reference not in needed:
            (Path(numbers.uri) / view.object_name(reference)).unlink()
    assert keys(load(spark, numbers, where=where)) == expected


def pool_keys(landing: Landing, reference: Any) -> list[int]:
    view = landing.lake.pool("p").at()
    return view.to_table(key_range=reference.key_range)["k"].to_pylist()


def test_an_object_that_is_missing_is_an_error_never_a_shorter_answer(spark: Any, numbers: Landing) -> None:
    view = numbers.lake.pool("p").at()
    (Path(numbers.uri) / view.object_name(view.references[0])).unlink()
    with pytest.raises(PySparkException, match="ObjectMissing"):
        load(spark, numbers).collect()


# --- revisions, sub-pools, what does not exist


def test_a_revision_is_read_as_it_was(spark: Any, numbers: Landing) -> None:
    assert keys(load(spark, numbers, "p@2")) == list(range(50))
    assert keys(load(spark, numbers, "p@main")) == list(range(100))
    assert keys(load(spark, numbers, at="1")) == list(range(25))
    _, first = list(numbers.lake.pool("p").log())[-1]
    assert keys(load(spark, numbers, f"p@{first.id}")) == list(range(25))
    time = dt.datetime.fromtimestamp(first.time / 1e6, dt.UTC) + dt.timedelta(days=1)
    assert keys(load(spark, numbers, f"p@main@{time.isoformat()}")) == list(range(100))


def test_a_planned_read_does_not_see_what_is_committed_meanwhile(numbers: Landing) -> None:
    for pool, expected in (("p", 100), (numbers.pool("empty"), 0)):
        source = LakeDataSource({"lake": numbers.uri, "path": pool})
        reader = source.reader(StructType().add("k", "long"))
        numbers.lake.pool(pool).branch().append(pa.table({"k": [7]}))
        rows = [reader.read(partition) for partition in reader.partitions()]
        assert sum(batch.num_rows for batches in rows for batch in batches) == expected  # type: ignore[union-attr]


def test_a_branch_is_read_as_it_is_also_if_the_newest_transaction_is_of_another_branch(
    landing: Landing,
) -> None:
    landing.pool()
    pool = landing.lake.pool("p")
    pool.branch().append(pa.table({"k": [1]}))
    pool.create_branch("dev")
    pool.branch("dev").append(pa.table({"k": [2]}))
    pool.branch().append(pa.table({"k": [3]}))
    assert planned_keys(landing, path="p@dev") == [1, 2]
    assert planned_keys(landing, path="p", at="dev") == [1, 2]
    assert planned_keys(landing, path="p") == [1, 3]


def test_a_part_of_a_revision_is_its_key_ranges_and_of_them_the_references_that_it_names(
    landing: Landing,
) -> None:
    landing.pool()
    pool = landing.lake.pool("p")
    for keys in ([1, 2, 3, 4], [2, 3], [4, 5]):
        pool.branch().append(pa.table({"k": keys}))
    view = pool.at()
    ranges = [view.key_range(low=1, high=3), view.key_range(low=4, high=5)]
    part = Part.of(view, ranges)
    assert planned_keys(landing, path="p", part=part.encode()) == [1, 2, 2, 4, 4]
    assert planned_keys(landing, path="p", part=part.encode(), tasks="3") == [1, 2, 2, 4, 4]
    some = Part.of(view, ranges, [r for r in view.references if r.records == 2])
    pool.branch().append(pa.table({"k": [1]}))
    assert planned_keys(landing, path="p", part=some.encode()) == [2, 4]
    with pytest.raises(InvalidInput, match="part=7: not a part of a read"):
        planned_keys(landing, path="p", part="7")


def planned_keys(landing: Landing, **options: str) -> list[int]:
    """What a read gives, planned and run in this process."""
    source = LakeDataSource({"lake": landing.uri, **options})
    reader = source.reader(StructType([StructField("k", LongType())]))
    return [k for task in reader.partitions() for b in reader.read(task) for k in b.column("k").to_pylist()]


def test_sub_pools_are_read_like_pools(spark: Any, landing: Landing) -> None:
    landing.pool(bad_records="quarantine")
    landing.file("a.ndjson", '{"k": 1}\n{"x": "later"}\nbad\n{"x": "last"}\n')
    landing.load(spark, "p")
    assert keys(load(spark, landing, "p.$nokey"), "x") == ["later", "last"]
    assert keys(load(spark, landing, "p.$rejected"), "raw") == ["bad"]


@pytest.mark.parametrize(
    "name", ["lake:pools", "p:log", "p:branches", "p:objects", "p:references", "p@2:references"]
)
def test_the_lakes_own_tables_are_read_like_pools(spark: Any, numbers: Landing, name: str) -> None:
    df = load(spark, numbers, name)
    assert df.rdd.getNumPartitions() == 1
    assert_same(read(df), system_table(numbers.lake, name))


def test_of_the_lakes_own_tables_columns_and_a_revision_can_be_chosen(spark: Any, numbers: Landing) -> None:
    chosen = load(spark, numbers, "p:log", columns="version,branch", at="3").toArrow()
    assert chosen.to_pydict() == {"version": [3, 2, 1], "branch": ["main"] * 3}
    reader = spark.read.format("lake").option("lake", numbers.uri).schema("low string, none int")
    assert [r.low for r in reader.load("p:references").collect()] == ["0", "25", "50", "75"]


def test_a_large_table_of_the_lake_is_handed_over_in_parts(
    numbers: Landing,
) -> None:
    options = {"lake": numbers.uri, "path": "p:log"}
    reader = SystemTableReader(options, LakeDataSource(options).schema(), rows_per_task=3)
    parts = [batch.column("version").to_pylist() for p in reader.partitions() for batch in reader.read(p)]
    assert parts == [[4, 3, 2], [1]]


def test_an_empty_pool_has_no_rows(spark: Any, landing: Landing) -> None:
    landing.pool()
    reader = spark.read.format("lake").option("lake", landing.uri)
    assert load(spark, landing).count() == 0
    assert reader.schema("k int").load("p").collect() == []


@pytest.mark.parametrize(
    ("pool", "options", "said"),
    [
        ("nowhere", {}, "NotFound.*nowhere"),
        ("p@99", {}, "NotFound.*99"),
        ("p@other", {}, "NotFound.*other"),
        ("p", {"columns": "k,none"}, "InvalidInput.*'none' does not exist"),
        ("p", {"from": "9", "to": "1"}, "InvalidInput.*the key range from 9 .*is empty"),
        ("p", {"from": "nine"}, "InvalidInput.*'nine'"),
        ("p", {"tasks": "many"}, "InvalidInput.*tasks=many"),
        ("p", {"columns": "k,k"}, "InvalidInput: columns=k,k: column 'k' is named twice"),
        ("p", {"columns": "k,"}, "InvalidInput: columns=k,: a name is empty"),
        (
            "p:log",
            {"columns": "branch,branch"},
            "InvalidInput: columns=branch,branch: column 'branch' is named twice",
        ),
        ("p", {"caseSensitive": "yes"}, "InvalidInput: caseSensitive=yes: use true or false"),
        ("p", {"column": "k"}, "InvalidInput: unknown option 'column': a read has lake, at, columns"),
        ("p", {"startingTransaction": "1"}, "InvalidInput.*option 'startingtransaction': a read has"),
        ("p:logs", {}, "NotFound.*there are: actions, branches, coverage, log, objects, ranges"),
        ("p:log", {"from": "1"}, "InvalidInput.*option 'from': a read of one of the lake's own tables has"),
        ("p:log", {"columns": "k"}, "InvalidInput.*column 'k' does not exist"),
        ("nowhere:log", {}, "NotFound.*nowhere"),
        ("lake:pool", {}, 'NotFound.*there are "lake:pools", "lake:transactions" and "lake:health"'),
        ("p", {"lake": "/no/such/lake"}, "NotFound.*there is no lake"),
    ],
)
def test_what_does_not_exist_is_said(
    spark: Any, numbers: Landing, pool: str, options: dict[str, str], said: str
) -> None:
    with pytest.raises((AnalysisException, PySparkException), match=f"(?s){said}"):
        load(spark, numbers, pool, **options).collect()


def test_the_variable_lake_names_the_lake_where_no_option_does(
    numbers: Landing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKE", numbers.uri)
    assert LakeDataSource({"path": "p"}).schema().names == ["k", "s"]


# --- what Spark asks in another way


def test_a_read_is_of_one_pool(spark: Any, numbers: Landing) -> None:
    reader = spark.read.format("lake").option("lake", numbers.uri)
    assert reader.load(["p"]).count() == 100
    with pytest.raises(
        AnalysisException, match=r'InvalidInput: load\(\["p", ?"p"\]\): a read is of one pool; load each'
    ):
        reader.load(["p", "p"])


def test_a_temporary_view_is_read_and_written_in_sql(spark: Any, numbers: Landing) -> None:
    spark.sql(f"create or replace temporary view tv using lake options (lake '{numbers.uri}', path 'p')")
    assert spark.sql("select count(*) from tv where k > 89").first()[0] == 10
    spark.sql("insert into tv values (100, 's100')")
    assert numbers.keys("p") == list(range(101))


def test_a_table_of_sparks_catalog_is_refused_in_one_line(spark: Any, numbers: Landing) -> None:
    options = f"options (lake '{numbers.uri}', path 'p')"
    try:
        with pytest.raises(AnalysisException, match=r"CREATE TABLE \.\.\. USING lake: a pool is not a table"):
            spark.sql(f"create table of_catalog using lake {options}")
        with pytest.raises(AnalysisException, match="use a temporary view"):
            spark.sql(f"create table of_select using lake {options} as select 1 as k")
        with pytest.raises(AnalysisException, match="use a temporary view"):
            spark.range(3).write.format("lake").option("lake", numbers.uri).saveAsTable("of_save")
        spark.sql(f"create table of_columns (k int) using lake {options}")
        with pytest.raises(AnalysisException, match="use a temporary view"):
            spark.sql("select * from of_columns").collect()
    finally:
        for name in ("of_catalog", "of_select", "of_save", "of_columns"):
            spark.sql(f"drop table if exists {name}")


# --- names in upper and lower case


def test_columns_that_differ_in_case_only_are_refused_unless_they_are_chosen_or_told_apart(
    spark: Any, landing: Landing
) -> None:
    landing.pool()
    landing.lake.pool("p").branch().append(pa.table({"k": [1], "v": ["small"], "V": ["large"]}))
    said = (
        "columns 'v' and 'V' of pool 'p' differ in case only, and Spark takes them for one; .*caseSensitive"
    )
    with pytest.raises(AnalysisException, match=said):
        load(spark, landing)
    assert load(spark, landing, columns="k,V").select("v").first()[0] == "large"
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        told_apart = load(spark, landing, caseSensitive="true")
        assert told_apart.select("v", "V").first() == ("small", "large")
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


def test_a_users_schema_in_another_case_is_refused(spark: Any, numbers: Landing) -> None:
    reader = spark.read.format("lake").option("lake", numbers.uri).schema("K int, s string")
    with pytest.raises(
        AnalysisException, match="column 'K': pool 'p' has it as 'k', and the lake tells upper"
    ):
        reader.load("p").collect()
    assert reader.option("caseSensitive", "true").load("p").where("K is null").count() == 100


# --- ages


def test_all_tasks_of_a_read_count_ages_from_the_time_it_was_planned(
    landing: Landing, monkeypatch: pytest.MonkeyPatch
) -> None:
    landing.lake.create_pool("p", key="k", settings={"age_off": "ts:1h"})
    written = dt.datetime.now(dt.UTC)
    ts = pa.array([written, written], pa.timestamp("us", "UTC"))
    landing.lake.pool("p").branch().append(pa.table({"k": [1, 2], "ts": ts}))
    source = LakeDataSource({"lake": landing.uri, "path": "p", "tasks": "2"})
    reader = source.reader(source.schema())
    tasks = reader.partitions()
    assert len(tasks) == 2
    first = [batch.column("k").to_pylist() for batch in reader.read(tasks[0])]
    for name in ("open_view", "leased_view"):  # two hours pass
        monkeypatch.setattr(opts, name, two_hours_later(getattr(opts, name)))
    second = [batch.column("k").to_pylist() for batch in reader.read(tasks[1])]
    assert (first, second) == ([[1]], [[2]])
    assert not any(batch.num_rows for task in tasks for batch in source.reader(source.schema()).read(task))


def two_hours_later(opened: Callable[..., View]) -> Callable[..., View]:
    def later(options: opts.Options, *, pool_id: str = "") -> View:
        view = opened(options, pool_id=pool_id)
        return replace(view, now=view.now + 7200)

    return later
