"""Native reads on the real Spark: the rows of the data source and of the lake's own scan, whatever the pool holds.

`tests/unit/native` holds which records go which way, `tests/properties/test_native_reads.py` that each goes one way
once.
"""

from __future__ import annotations

import datetime as dt
import decimal
import logging
import math
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PythonException
from pyspark.sql import functions as f
from pyspark.sql.types import StructType, VariantType

import pyspark_lake
from lake_core.errors import Corrupt, InvalidInput, NotFound
from lake_core.keys.ranges import EVERYTHING
from log_lake.lake import Lake
from log_lake.lake.view import View
from log_lake.objects.containers.limits import ObjectLimits
from log_lake.reading.limits import ScanLimits
from log_lake.rewriting.compaction import compact
from spark_apps.datasource.options import PART
from spark_apps.datasource.part import Part
from spark_apps.datasource.reader import LakeReader
from spark_apps.datasource.to_spark import to_batches
from spark_apps.datasource.types import arrow_schema, is_variant
from spark_apps.native import read as native_read
from tests.spark.conftest import Landing
from tests.support.layout import layout_before
from tests.support.servers.s3 import BUCKET, REGION, moto
from tests.support.spark.native_model import canonical
from tests.support.spark.native_pools import CONDITIONS, build, clip
from tests.support.spark.queries import disagreements, records

pytestmark = pytest.mark.spark

SEEDS = range(6)
QUERIES = 4


@pytest.fixture(autouse=True)
def few_partitions(spark: Any) -> Iterator[None]:
    """Spark's default of 200 partitions a shuffle is for other amounts of data."""
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    yield
    spark.conf.unset("spark.sql.shuffle.partitions")


def rows(frame: Any) -> list[str]:
    """All rows, sorted; variants as JSON."""
    return canonical([frame.select([_shown(field) for field in frame.schema]).toArrow()])


def _shown(field: Any) -> Any:
    column = f.col("`" + field.name.replace("`", "``") + "`")
    return f.to_json(column).alias(field.name) if isinstance(field.dataType, VariantType) else column


def expected(view: View, schema: StructType, **asked: Any) -> list[str]:
    """What the lake's own scan gives, as Spark takes it; fields of JSON are left out."""
    target = arrow_schema(schema)
    plain = pa.schema([field for field in target if not is_variant(field.type)])
    return canonical([pa.Table.from_batches(to_batches(view.to_table(**asked), plain), plain)])


def without_variants(frame: Any) -> Any:
    return frame.select([_shown(fd) for fd in frame.schema if not isinstance(fd.dataType, VariantType)])


@pytest.mark.parametrize("seed", SEEDS)
def test_a_native_read_gives_the_rows_of_the_data_source_and_of_the_lake(
    spark: Any, landing: Landing, seed: int
) -> None:
    random = Random(seed)
    pool = build(landing.lake, random)
    if random.random() < 0.5:
        clip(pool, random)
    newest = pool.at().version
    at = random.choice(["main", *pool.at().state.branches, str(random.randrange(1, newest + 1))])
    view = pool.at(at)
    where = random.choice(CONDITIONS) if random.random() < 0.5 else None
    try:
        view.plan(where=where)
    except InvalidInput:  # a condition for other fields
        where = None
    options = {"lake": landing.uri, "at": at, **({"where": where} if where else {})}
    theirs = spark.read.format("lake").options(**options).load("p")
    ours = pyspark_lake.read(spark, "p", **options)
    assert ours.schema == theirs.schema
    assert rows(ours) == rows(theirs), pyspark_lake.explain(spark, "p", **options)
    assert rows(without_variants(ours)) == expected(view, ours.schema, where=where)


def test_a_link_in_place_of_an_object_is_corrupt_and_not_followed(
    spark: Any, landing: Landing, tmp_path: Path
) -> None:
    """Who may write one pool's folder would have Spark read files of others with the reader's rights."""
    landing.lake.create_pool("p", key="k").branch().append(pa.table({"k": [1]}))
    assert rows(pyspark_lake.read(spark, "p", lake=landing.uri)), "Spark's reader takes the object itself"
    pool = landing.lake.pool("p")
    (name,) = (one.name for one in pool.store.list(f"{pool.config.id}/data"))
    object_of_pool = Path(pool.store.uri.removeprefix("file://")) / name
    object_of_pool.rename(tmp_path / "another.parquet")
    object_of_pool.symlink_to(tmp_path / "another.parquet")
    with pytest.raises(Corrupt, match="is a link"):
        pyspark_lake.read(spark, "p", lake=landing.uri)


@pytest.fixture
def both_ways(spark: Any, landing: Landing) -> tuple[Any, pa.Table]:
    """A frame of an upsert pool that takes both ways, and its records."""
    table = records(400, seed=11).sort_by("k")
    landing.lake.create_pool("p", key="k", kind="upsert")
    branch = landing.lake.pool("p").branch()
    branch.append(table.slice(0, 250))
    older = table.slice(150, 50)
    branch.append(older.set_column(1, "n", pa.nulls(50, pa.int64())))
    branch.append(table.slice(150, 250))
    frame = pyspark_lake.read(spark, "p", lake=landing.uri)
    ways = pyspark_lake.explain(spark, "p", lake=landing.uri)
    assert "parquet" in ways
    assert "data source" in ways
    branch.append(table.slice(0, 1).set_column(1, "n", pa.array([77], pa.int64())))  # after the read
    return frame, table


def test_spark_answers_random_queries_over_one_native_frame_as_duckdb_does(
    spark: Any, both_ways: tuple[Any, pa.Table]
) -> None:
    frame, table = both_ways
    assert disagreements(spark, frame, table, seed=7, count=QUERIES) == []


def test_a_native_frame_that_is_joined_with_itself_or_cached_gives_the_rows_of_its_revision(
    both_ways: tuple[Any, pa.Table],
) -> None:
    frame, table = both_ways
    assert frame.alias("a").join(frame.alias("b"), f.col("a.k") == f.col("b.k")).count() == 400
    assert frame.exceptAll(frame).count() == 0
    kept = frame.where("n is null").cache()
    try:
        assert kept.count() == table["n"].null_count
        assert frame.count() == 400
        assert kept.union(frame).count() == 400 + table["n"].null_count
    finally:
        kept.unpersist()


def test_a_frame_is_of_its_pool_whatever_pool_has_the_name_by_then(spark: Any, landing: Landing) -> None:
    def put(keys: list[int]) -> None:
        pool = landing.lake.create_pool("p", key="k", kind="upsert")
        for _ in range(2):  # two loads that overlap: the data source merges them
            pool.branch().append(pa.table({"k": keys}))

    put([1, 2])
    source = spark.read.format("lake").option("lake", landing.uri).load("p")
    frames = [source, *(of(spark, "p", lake=landing.uri) for of in (pyspark_lake.read, pyspark_lake.changes))]

    def keys() -> list[list[int]]:
        return [sorted(row.k for row in frame.select("k").collect()) for frame in frames]

    before = keys()
    assert before == [[1, 2], [1, 2], [1, 1, 2, 2]]
    landing.lake.rename_pool("p", "old")
    assert keys() == before
    put([7, 8])
    assert keys() == before
    landing.lake.drop_pool("old")
    with pytest.raises(PythonException, match="pool 'p' was dropped since this read began"):
        source.collect()


DAYS = [
    dt.date(1, 1, 1),
    dt.date(1582, 10, 4),
    dt.date(1582, 10, 10),
    dt.date(1582, 10, 15),
    dt.date(1970, 1, 1),
]
INSTANTS = [int((day - dt.date(1970, 1, 1)).total_seconds()) * 10**6 for day in DAYS] + [-1001, 1000, 1500]
NUMBERS = [1.0, math.nan, -0.0, 2.0, math.inf]
FILTERED: dict[str, tuple[pa.Array, list[str]]] = {
    "x": (pa.array(NUMBERS), ["0D", "1.5D", "double('NaN')"]),
    "y": (pa.array(NUMBERS, pa.float32()), ["0F", "1e30D", "float('NaN')"]),
    "r.x": (pa.array([{"x": value} for value in NUMBERS]), ["0D", "1e300D"]),
    "d": (
        pa.array(DAYS),
        ["date'1582-10-10'", "date'1582-10-15'"],
    ),
    "t": (pa.array(INSTANTS, pa.timestamp("us", "UTC")), [f"timestamp_micros({i})" for i in INSTANTS[2:4]]),
    "ms": (
        pa.array([i // 1000 for i in INSTANTS], pa.timestamp("ms", "UTC")),
        [f"timestamp_micros({i})" for i in (-1001, -1, 1500, 1000)],
    ),
    "q.d": (pa.array([{"d": day} for day in DAYS]), ["date'1582-10-10'"]),
    "u8": (pa.array([0, 127, 128, 255], pa.uint8()), ["127", "128", "256"]),
    "u32": (pa.array([0, 2**31 - 1, 2**31, 2**32 - 1], pa.uint32()), ["2147483648L", "-1L"]),
    "i8": (pa.array([-128, 0, 127], pa.int8()), ["-129", "127", "0.5"]),
    "dec": (pa.array([decimal.Decimal("1.25"), decimal.Decimal("-1.25")]), ["1.251", "-1.251", "1.25"]),
    "s": (pa.array(["", "a", "é", "\uffff", "\U0001f600"]), ["'é'", "'\uffff'", "''"]),
    "w": (pa.array([b"", b"\0", b"\x7f", b"\x80", b"\xff"]), ["X'80'", "X'00'"]),
    "b": (pa.array([True, False]), ["true", "false"]),
}
"""For each column: its values, and what Spark compares them with."""

GUARDED = ("x", "y", "r.x", "d", "t", "ms", "q.d")
"""The columns that are not pushed down, since Spark would lose rows."""


def test_what_spark_pushes_down_to_parquet_loses_no_row(spark: Any, landing: Landing) -> None:
    """Of plain Parquet Spark loses rows with NaN, -0.0, instants in milliseconds, and days of October 1582."""
    length = max(len(values) for values, _ in FILTERED.values())
    columns: dict[str, Any] = {"k": list(range(length))}
    for path, (values, _) in FILTERED.items():
        columns[path.partition(".")[0]] = pa.concat_arrays(
            [values, pa.nulls(length - len(values), values.type)]
        )
    limits = ScanLimits(objects=ObjectLimits(row_group=1))
    Lake.open_on(landing.lake.store, limits=limits).create_pool("p", key="k").branch().append(
        pa.table(columns)
    )
    pyspark_lake.read(spark, "p", lake=landing.uri).createOrReplaceTempView("filtered")
    queries = [
        f"{path} {op} {value}"
        for path, (_, values) in FILTERED.items()
        for value in values
        for op in (("=", "<>", "<") if path in GUARDED else ("<>", ">="))
    ]
    for first in range(0, len(queries), 60):
        some = queries[first : first + 60]
        pushed = " union all ".join(
            f"select {index} as q, count(*) as c from filtered where {query}"
            for index, query in enumerate(some)
        )
        counted = ", ".join(f"count(if({query}, 1, null))" for query in some)
        (expected_counts,) = spark.sql(f"select {counted} from filtered").collect()
        found = {row.q: row.c for row in spark.sql(pushed).collect()}
        lost = [q for index, q in enumerate(some) if found[index] != expected_counts[index]]
        assert lost == []


def test_the_lakes_own_conditions_lose_no_row_either(spark: Any, landing: Landing) -> None:
    landing.pool()
    frame = pa.table({"k": range(5), "x": NUMBERS, "d": DAYS, "r": [{"x": value} for value in NUMBERS]})
    landing.lake.pool("p").branch().append(frame)
    conditions = {
        "x > 5": [1, 4],
        "x = 0": [2],
        "r.x >= 2": [1, 3, 4],
        "not x <= 1": [1, 3, 4],
        "d = date '1582-10-10'": [2],
        "d > date '1582-10-10'": [3, 4],
    }
    for condition, keys in conditions.items():
        read = pyspark_lake.read(spark, "p", lake=landing.uri, where=condition, columns=["k"])
        assert sorted(row.k for row in read.collect()) == keys, condition


def test_names_of_columns_and_folders_mean_nothing_to_spark(spark: Any, tmp_path: Path) -> None:
    lake = Lake.create(str(tmp_path / "day=1 [a]{b,c}*?\\%20#é" / "lake"))
    names = ["k", "a.b", "`", "x y", "ünï", " ,;{}()=\n\t", "day", "_metadata", "select"]
    branch = lake.create_pool("p", key="k").branch()
    for value in (1, 2):
        branch.append(pa.table({name: [value] for name in names}))
    explained = pyspark_lake.explain(spark, "p", lake=lake.store.uri)
    assert "parquet" in explained
    assert "data source" not in explained
    frame = pyspark_lake.read(spark, "p", lake=lake.store.uri, where='"a.b" = 2')
    assert frame.columns == names
    assert [tuple(row) for row in frame.collect()] == [(2,) * len(names)]
    alone = pyspark_lake.read(spark, "p", lake=lake.store.uri, columns=["a.b"])
    assert sorted(row[0] for row in alone.collect()) == [1, 2], "each object once, however many there are"


def test_old_dates_and_times_are_not_moved_and_other_settings_change_no_answer(
    spark: Any, landing: Landing
) -> None:
    old = dt.datetime(1582, 10, 10, tzinfo=dt.UTC)
    landing.pool()
    landing.lake.pool("p").branch().append(
        pa.table({"k": [1], "d": [old.date()], "t": pa.array([old], pa.timestamp("us", "UTC")), "s": ["\\'"]})
    )
    settings = {
        "spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY",
        "spark.sql.files.ignoreMissingFiles": "true",
        "spark.sql.parser.escapedStringLiterals": "true",
        "spark.sql.ansi.enabled": "false",
        "spark.sql.caseSensitive": "true",
    }
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        where = "t = timestamp '1582-10-10T00:00:00Z' and d = date '1582-10-10' and s = '\\'''"
        frame = pyspark_lake.read(spark, "p", lake=landing.uri, where=where)
        found = frame.toArrow().to_pylist()
        (path,) = (tmp for tmp in Path(landing.uri.removeprefix("file://")).rglob("data/*.parquet"))
        path.unlink()
        with pytest.raises(Exception, match=r"FAILED_READ_FILE|does not exist|PATH_NOT_FOUND"):
            frame.collect()
    finally:
        for name in settings:
            spark.conf.unset(name)
    assert found == [{"k": 1, "d": old.date(), "t": old, "s": "\\'"}]


def test_a_native_read_is_explained(spark: Any, landing: Landing) -> None:
    landing.lake.create_pool("p", key="k", kind="upsert")
    branch = landing.lake.pool("p").branch()
    branch.append(pa.table({"k": range(100)}))
    branch.append(pa.table({"k": [7, 8, 9]}))
    told = pyspark_lake.explain(spark, "p", lake=landing.uri, to=50).splitlines()
    assert told[0] == "p at version 2, branch main"
    assert told[1].split() == ["way", "objects", "records", "size", "from", "key", "to", "key", "why"]
    assert told[2].startswith("parquet            1      100  ")
    assert told[2].endswith("  0         50      no merge needed, 5 comparisons a row")
    assert told[3].endswith("  7         9       references overlap: merged")
    assert told[4].startswith("where, in 1 object: (")
    assert len(told) == 5


def test_of_whole_objects_of_either_layout_spark_filters_nothing_and_computes_nothing(
    spark: Any, landing: Landing, capsys: pytest.CaptureFixture[str]
) -> None:
    branch = landing.lake.create_pool("p", key="k,j").branch()
    price = pa.array([decimal.Decimal("1.5"), decimal.Decimal("-99.5"), None], pa.decimal128(12, 2))
    table = pa.table({"k": range(3), "j": [0] * 3, "v": price, "s": ["x"] * 3})
    with layout_before():
        branch.append(table)
    branch.append(table)
    found = pyspark_lake.read(spark, "p", lake=landing.uri)
    assert [row.k for row in found.where("v = 1.5").collect()] == [0, 0]
    assert [row.v for row in found.where("v < -1").collect()] == [decimal.Decimal("-99.50")] * 2

    def plan() -> str:
        pyspark_lake.read(spark, "p", lake=landing.uri).select("v", "s").explain()
        return capsys.readouterr().out

    whole = plan()
    assert whole.count("FileScan parquet [") == 1, whole
    assert "PushedFilters: []" in whole
    assert " Filter " not in whole
    assert "Project [" not in whole
    branch.delete(where="k = 1 and s = 'x'")
    assert " Filter " in plan()


def test_every_pool_becomes_a_view_of_its_name(spark: Any, landing: Landing) -> None:
    for name in ("logs", "Logs", "a.b", "x-`y", "select"):
        landing.lake.create_pool(name, key="k").branch().append(pa.table({"k": [1, 2]}))
    landing.lake.create_pool("empty", key="k")
    twins = landing.lake.create_pool("twins", key="k")
    twins.branch().append(pa.table({"k": [1], "c": [1], "C": [1]}))
    attached = pyspark_lake.attach(spark, landing.uri)
    assert attached.views == ("Logs", "a.b", "empty", "select", "x-`y")
    assert "differ in case only" in attached.refused["twins"]
    assert "the name for that of pool 'Logs'" in attached.refused["logs"]
    assert "no view `twins`: columns 'c' and 'C'" in str(attached)
    for name in ("`Logs`", "`a.b`", "`x-``y`", "`select`"):
        assert spark.sql(f"select sum(k) from {name}").first()[0] == 3
    assert spark.sql("select * from empty").count() == 0


def test_what_cannot_be_read_is_said_in_one_line(spark: Any, landing: Landing) -> None:
    landing.pool()
    with pytest.raises(NotFound, match="pool 'q'"):
        pyspark_lake.read(spark, "q", lake=landing.uri)
    with pytest.raises(InvalidInput, match="unknown option 'colums': a read has lake, at, columns"):
        pyspark_lake.read(spark, "p", lake=landing.uri, colums="k")
    assert pyspark_lake.read(spark, "p", lake=landing.uri).count() == 0
    with pytest.raises(InvalidInput, match="part: an option of the data source alone"):
        pyspark_lake.read(spark, "p", lake=landing.uri, part="{}")
    assert pyspark_lake.read(spark, "p:log", lake=landing.uri).count() == 0
    assert pyspark_lake.explain(spark, "p:log", lake=landing.uri).endswith("all by the data source")


def test_a_lease_and_ages_count_from_the_time_when_a_native_read_is_made(
    spark: Any, landing: Landing
) -> None:
    landing.lake.create_pool("p", key="k", settings={"age_off": "ts:1h"})
    now = dt.datetime.now(dt.UTC)
    times = pa.array([now, now - dt.timedelta(days=1)], pa.timestamp("us", "UTC"))
    pool = landing.lake.pool("p")
    pool.branch().append(pa.table({"k": [1, 2], "ts": times}))
    frame = pyspark_lake.read(spark, "p", lake=landing.uri, lease=True, leaseFor="1h", columns=["k"])
    assert [lease.note.why for lease in pool.leases().live] == ["Spark read"]
    assert [row.k for row in frame.collect()] == [1]
    compact(pool.branch(), pool.at().references)
    assert [row.k for row in frame.collect()] == [1]


def test_without_a_connector_everything_comes_by_the_data_source_and_that_is_said_once(
    spark: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with moto() as address:
        for name, value in {
            "AWS_ENDPOINT_URL": address,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": REGION,
        }.items():
            monkeypatch.setenv(name, value)
        lake = Lake.create(f"s3://{BUCKET}/native")
        lake.create_pool("p", key="k").branch().append(pa.table({"k": [1, 2]}))
        with caplog.at_level(logging.WARNING, logger=native_read.__name__):
            told = [pyspark_lake.explain(spark, "p", lake=lake.store.uri) for _ in range(2)]
    assert told[0] == told[1]
    assert "data source" in told[0]
    assert "parquet" not in told[0]
    assert f"the JVM cannot read {lake.store.uri}: " in told[0]
    warned = [record.getMessage() for record in caplog.records if record.name == native_read.__name__]
    assert len(warned) == 1
    assert f"Spark's own reader cannot read {lake.store.uri}" in warned[0]


def test_a_part_of_a_branch_that_moved_on_gives_the_rows_of_its_revision(landing: Landing) -> None:
    pool = landing.lake.pool(landing.pool("p"))
    pool.create_branch("dev")
    for k in range(3):
        pool.branch("dev").append(pa.table({"k": [k]}))
    view = pool.at("dev")
    part = Part.of(view, [EVERYTHING], view.references)
    options = {"lake": landing.uri, "path": "p@dev", PART: part.encode()}
    compact(pool.branch("dev"), view.references)
    pool.branch("dev").append(pa.table({"k": [99]}))
    reader = LakeReader(options, StructType().add("k", "long"))
    batches = [batch for task in reader.partitions() for batch in reader.read(task)]
    assert pa.Table.from_batches(batches)["k"].to_pylist() == [0, 1, 2]
