"""Files that Spark itself wrote, in each of its modes, hold for the lake what they hold for Spark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from log_lake.columns.json_text import json_lines
from tests.spark.conftest import Landing

pytestmark = pytest.mark.spark

OLD = """select k, cast(concat(d, 'T00:00:00Z') as timestamp) as t, cast(d as date) as d from values
    (1, '9999-12-31'), (2, '0001-01-03'), (3, '1000-01-01'), (4, '1582-10-04'), (5, '1850-01-01'),
        (6, '2020-01-01') as v(k, d)"""
NESTED = f"""select k, t, d, named_struct('t', t, 'd', d) as r, array(t) as l, map('x', d) as m,
    cast(date_format(d, "yyyy-MM-dd'T'HH:mm:ss") as timestamp_ntz) as n from ({OLD})"""
VARIANTS = """select * from values (1, parse_json('{"a": 1, "b": ["x", 1.25, null], "c": {"d": true}}')),
    (2, parse_json('{"a": "other", "z": 1e300}')), (3, parse_json('5')), (4, cast(date'9999-12-31' as variant)),
    (5, cast(timestamp_ntz'2020-01-01 10:00:00.000001' as variant)), (6, parse_json('null')) as t(k, v)"""


@contextmanager
def settings(spark: Any, values: dict[str, str]) -> Iterator[None]:
    for name, value in values.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name in values:
            spark.conf.unset(name)


def written(spark: Any, query: str, folder: Path, *, format: str) -> Any:
    """What Spark reads of the file that it wrote of the query."""
    frame = spark.sql(query).coalesce(1)
    frame.write.format(format).mode("overwrite").save(str(folder))
    return spark.read.format(format).load(str(folder))


def lines(landing: Landing) -> list[str]:
    return json_lines(landing.lake.pool("p").at().to_table()).to_pylist()


@pytest.mark.parametrize("mode", ["LEGACY", "CORRECTED"])
@pytest.mark.parametrize("kind", ["INT96", "TIMESTAMP_MICROS", "TIMESTAMP_MILLIS"])
def test_times_of_parquet_are_those_that_spark_reads(
    spark: Any, landing: Landing, mode: str, kind: str
) -> None:
    modes = {f"spark.sql.parquet.{what}RebaseModeInWrite": mode for what in ("int96", "datetime")}
    with settings(spark, {"spark.sql.parquet.outputTimestampType": kind, **modes}):
        frame = written(spark, NESTED, landing.folder / "table", format="parquet")
    landing.pool()
    landing.load(spark, "p", str(landing.folder / "table"))
    zone = "" if kind == "INT96" else "Z"
    text = f"""concat(date_format(t, "yyyy-MM-dd'T'HH:mm:ss"), '{zone}')"""
    day, local = "date_format(d, 'yyyy-MM-dd')", """date_format(n, "yyyy-MM-dd'T'HH:mm:ss")"""
    with settings(spark, {"spark.sql.session.timeZone": "UTC"}):
        expected = frame.selectExpr(
            "k",
            f"{text} as t",
            f"{day} as d",
            f"named_struct('t', {text}, 'd', {day}) as r",
            f"array({text}) as l",
            f"map('x', {day}) as m",
            f"{local} as n",
        )
        assert lines(landing) == sorted(expected.toJSON().collect())


def test_times_and_dates_of_orc_are_those_that_spark_reads(spark: Any, landing: Landing) -> None:
    frame = written(spark, NESTED, landing.folder / "table", format="orc")
    landing.pool()
    landing.load(spark, "p", str(landing.folder / "table"))
    table = landing.lake.pool("p").at().to_table()
    expected = frame.selectExpr(
        "k", "cast(d as string) d", "cast(n as string) n", "cast(r.d as string) rd"
    ).collect()
    rows = sorted(tuple(row) for row in expected)
    texts = [str(value) for value in table["d"].to_pylist()]
    assert [row[1] for row in rows] == texts
    assert [row[2] for row in rows] == [str(value) for value in table["n"].to_pylist()]
    assert [row[3] for row in rows] == [str(record["d"]) for record in table["r"].to_pylist()]
    assert table["t"].to_pylist()[0].year in (9998, 9999)


@pytest.mark.parametrize("shredded", ["true", "false"])
def test_variants_are_the_values_that_spark_reads(spark: Any, landing: Landing, shredded: str) -> None:
    names = ("spark.sql.variant.writeShredding.enabled", "spark.sql.variant.inferShreddingSchema")
    query = f"select k, v, array(v) as l, named_struct('v', v) as r from ({VARIANTS})"
    with settings(spark, dict.fromkeys(names, shredded)):
        frame = written(spark, query, landing.folder / "table", format="parquet")
    landing.pool()
    landing.load(spark, "p", str(landing.folder / "table"))
    assert frame.where("k = 1").selectExpr("to_json(v)").collect()[0][0] in lines(landing)[0]
    assert lines(landing) == [
        '{"k":1,"v":{"a":1,"b":["x",1.25,null],"c":{"d":true}},"l":[{"a":1,"b":["x",1.25,null],"c":{"d":true}}],'
        '"r":{"v":{"a":1,"b":["x",1.25,null],"c":{"d":true}}}}',
        '{"k":2,"v":{"a":"other","z":1e300},"l":[{"a":"other","z":1e300}],"r":{"v":{"a":"other","z":1e300}}}',
        '{"k":3,"v":5,"l":[5],"r":{"v":5}}',
        '{"k":4,"v":"9999-12-31","l":["9999-12-31"],"r":{"v":"9999-12-31"}}',
        '{"k":5,"v":"2020-01-01T10:00:00.000001","l":["2020-01-01T10:00:00.000001"],'
        '"r":{"v":"2020-01-01T10:00:00.000001"}}',
        '{"k":6,"l":[null],"r":{}}',
    ]
