"""A schema that the user gives: each column is right, or the read is refused in one line before any task runs."""

from __future__ import annotations

import datetime as dt
import decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as f
from pyspark.sql.types import LongType, StructField, StructType

from lake_core.errors import InvalidInput
from log_lake.lake import Lake
from spark_apps.datasource import LakeDataSource

pytestmark = pytest.mark.spark

STORED = {
    "int8": pa.array([1, -128, None, 127], pa.int8()),
    "int64": pa.array([1, -(2**40), None, 2**40], pa.int64()),
    "wide": pa.array([2**63 - 1, 1, None, -(2**63)], pa.int64()),
    "uint64": pa.array([2**64 - 1, 1, None, 0], pa.uint64()),
    "float": pa.array([0.1, -1.5, None, 3.0], pa.float32()),
    "double": pa.array([0.1, -1e30, None, float("nan")], pa.float64()),
    "huge": pa.array([1e300, 1.0, None, float("inf")], pa.float64()),
    "decimal": pa.array(
        [decimal.Decimal("1.10"), decimal.Decimal("-2.00"), None, None], pa.decimal128(10, 2)
    ),
    "string": pa.array(["1", "true", None, "2020-01-01"]),
    "binary": pa.array([b"1", b"\xff", None, b""], pa.binary()),
    "boolean": pa.array([True, False, None, True]),
    "date": pa.array([dt.date(2020, 1, 1), dt.date(1, 1, 1), None, dt.date(9999, 12, 31)], pa.date32()),
    "instant": pa.array([0, -1, None, 10**15], pa.timestamp("us", "UTC")),
    "nanos": pa.array([1, -1, None, 1999], pa.timestamp("ns", "UTC")),
    "local": pa.array([0, -1, None, 10**15], pa.timestamp("us")),
    "time": pa.array([dt.time(1, 2, 3), None, None, dt.time(23, 59, 59)], pa.time32("s")),
    "span": pa.array([0, -1, None, 10**9], pa.duration("us")),
    "nothing": pa.nulls(4),
    "list": pa.array([[1, None], [], None, [300]], pa.list_(pa.int64())),
    "struct": pa.array([{"a": 1, "b": "x"}, {"a": None, "b": None}, None, {"a": 300, "b": "y"}]),
    "map": pa.array([[("a", 1)], [], None, [("b", 300)]], pa.map_(pa.string(), pa.int64())),
}
"""Columns of every type, with values at the limits of narrower ones."""

ASKED = (
    "tinyint", "int", "bigint", "float", "double", "decimal(5,1)", "decimal(20,0)", "decimal(38,2)", "string",
    "binary", "boolean", "date", "timestamp", "timestamp_ntz", "interval day to second", "variant",
    "array<tinyint>", "array<string>", "array<double>", "struct<a: int>", "struct<b: string, c: int>",
    "struct<a: tinyint>", "map<string, int>", "map<string, tinyint>", "map<int, int>",
)  # fmt: skip

_WHOLE = ("decimal(20,0)", "decimal(38,2)", "string")
CASTS = {
    *(("int8", t) for t in ("tinyint", "int", "bigint", "float", "double", "decimal(5,1)", *_WHOLE)),
    *(("int64", t) for t in ("bigint", "double", *_WHOLE)),
    *(("wide", t) for t in ("bigint", *_WHOLE)),
    *(("uint64", t) for t in _WHOLE),
    *(("decimal", t) for t in ("decimal(5,1)", "decimal(38,2)", "float", "double")),
    ("float", "float"), ("float", "double"), ("double", "float"), ("double", "double"), ("huge", "double"),
    ("string", "string"), ("binary", "binary"), ("boolean", "boolean"), ("boolean", "string"),
    ("date", "date"), ("date", "string"), ("instant", "timestamp"), ("nanos", "timestamp"),
    ("local", "timestamp_ntz"), ("time", "bigint"), ("span", "interval day to second"),
    ("list", "array<string>"), ("list", "array<double>"), ("struct", "struct<a: int>"),
    ("struct", "struct<b: string, c: int>"), ("map", "map<string, int>"),
}  # fmt: skip
"""What is read; every other pair is refused."""


class Stored:
    """A pool of these columns; called, it gives a reader."""

    def __init__(self, spark: Any, uri: str) -> None:
        self.spark = spark
        self.uri = uri

    def __call__(self) -> Any:
        return self.spark.read.format("lake").option("lake", self.uri)


@pytest.fixture(scope="module")
def stored(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Stored:
    """Four records with all columns."""
    lake = Lake.create(str(tmp_path_factory.mktemp("schemas") / "lake"))
    lake.create_pool("p", key="k")
    lake.pool("p").branch().append(pa.table({"k": range(4)} | STORED))
    return Stored(spark, lake.store.uri)


def refusal(reader: Any, schema: str) -> str | None:
    """The line that refuses a schema; None if all rows are read."""
    try:
        reader.schema(schema).load("p").collect()
    except PySparkException as error:
        (line,) = {line for line in str(error).splitlines() if "InvalidInput: " in line}
        return line.split("InvalidInput: ")[1]
    return None


def cast(column: str, asked: str) -> Any:
    """The column as Spark casts it; parts of a record by name."""
    if asked == "struct<b: string, c: int>":
        made = f.struct(f.col(f"{column}.b"), f.lit(None).cast("int").alias("c"))
        return f.when(f.col(column).isNotNull(), made).alias(column)
    if asked == "struct<a: int>":
        made = f.struct(f.col(f"{column}.a").cast("int").alias("a"))
        return f.when(f.col(column).isNotNull(), made).alias(column)
    return f.col(column).cast(asked).alias(column)


@pytest.mark.parametrize("asked", ASKED)
def test_columns_in_another_type_hold_what_spark_makes_of_them(stored: Any, asked: str) -> None:
    columns = [column for column in STORED if (column, asked) in CASTS]
    if not columns:
        assert asked in (
            "variant",
            "struct<a: tinyint>",
            "map<string, tinyint>",
            "map<int, int>",
            "array<tinyint>",
        )
        return
    schema = ", ".join(f"`{column}` {asked}" for column in columns)
    found = stored().schema(f"k bigint, {schema}").load("p").orderBy("k").toArrow()
    expected = stored().load("p").orderBy("k").select(*(cast(column, asked) for column in columns)).toArrow()
    for column in columns:
        assert repr(found[column].to_pylist()) == repr(expected[column].to_pylist()), column


@pytest.mark.parametrize("column", [name for name in STORED if name != "nothing"])
def test_every_other_type_is_refused_before_a_task_runs(stored: Any, column: str) -> None:
    """Of most pairs only the plan is made, in this process; of one for each column Spark makes it."""
    others = [asked for asked in ASKED if (column, asked) not in CASTS]
    for asked in others:
        schema = StructType.fromDDL(f"`{column}` {asked}")
        with pytest.raises(InvalidInput, match=f"^column '{column}': "):
            plan_and_read(stored, schema)
    line = refusal(stored(), f"`{column}` {others[0]}")
    assert line is not None
    assert line.startswith(f"column '{column}': ")


def plan_and_read(stored: Any, schema: StructType) -> None:
    """As Spark does, here."""
    reader = LakeDataSource({"lake": stored.uri, "path": "p"}).reader(schema)
    for partition in reader.partitions():
        for _ in reader.read(partition):
            pass


def test_a_column_that_was_null_in_every_record_has_any_type(stored: Any) -> None:
    for asked in ASKED:
        plan_and_read(stored, StructType.fromDDL(f"nothing {asked}"))
    assert stored().schema("k int, nothing array<date>").load("p").where("nothing is null").count() == 4


def test_a_filter_over_a_rounded_column_finds_what_the_column_shows(stored: Any) -> None:
    """The filter is about the column as it was asked for, not about the one that is stored."""
    frame = stored().schema("k bigint, double float").load("p")
    assert frame.where("double = cast(0.1 as float)").count() == 1
    assert frame.where("double > 0.1").count() == 2, "0.1 as float is above 0.1, and NaN above all"
    assert frame.where("double <= 0.1").count() == 1


def test_columns_that_may_not_be_null_are_refused_where_they_are(stored: Any) -> None:
    schema = StructType([StructField("int64", LongType(), nullable=False)])
    with pytest.raises(
        InvalidInput, match="the schema says that 'int64' is not null, and a record has no value for it"
    ):
        plan_and_read(stored, schema)
    inner = StructType([StructField("struct", StructType([StructField("a", LongType(), nullable=False)]))])
    with pytest.raises(InvalidInput, match="the schema says that 'a' is not null"):
        plan_and_read(stored, inner)
    with pytest.raises(PySparkException, match="the schema says that 'int64' is not null"):
        stored().schema(schema).load("p").collect()


def test_a_type_that_the_lake_has_not_is_refused(stored: Any) -> None:
    assert refusal(stored(), "x interval year to month") == (
        "column 'x': the lake has no type interval year to month; choose another type"
    )


def test_columns_that_no_record_has_are_null(stored: Any) -> None:
    frame = stored().schema("k int, new struct<a: int, b: array<string>>, other timestamp_ntz").load("p")
    assert frame.count() == 4
    assert {(row.new, row.other) for row in frame.collect()} == {(None, None)}
