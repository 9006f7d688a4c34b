"""Pools whose records keep their own types: Spark loads, reads, writes and compacts them as any other."""

from __future__ import annotations

from typing import Any

import pytest

import pyspark_lake
from lake_core.agents.compact.run import plan_pool
from lake_core.naming import format_of
from lake_core.objects.containers.rows import rows_of_table
from spark_apps.compact import compact
from tests.spark.conftest import Landing
from tests.support.spark.answers import assert_same, read
from tests.support.zng_files import lines_of, rows_of_text, zng_of

pytestmark = pytest.mark.spark

FIRST = '{k:1,v:1(int8)}\n{k:3,v:"three"}\n{k:5,ip:10.0.0.1,u:1((int64,string))}(=host)\n'
SECOND = "{k:2,v:2.5}\n{k:4,w:|[1,2]|}\n"


def came(landing: Landing) -> list[str]:
    view = landing.lake.pool("p").at()
    tables = view.run(view.plan(whole=True))
    return [line for table in tables for line in lines_of(zng_of([rows_of_table(table)]))]


def test_what_spark_loads_and_compacts_keeps_its_types(spark: Any, landing: Landing) -> None:
    landing.pool(format="zng")
    for name, text in (("a.zng", FIRST), ("b.zng", SECOND)):
        landing.load(spark, "p", landing.file(name, zng_of(rows_of_text(text))))
    pool = landing.lake.pool("p")
    expected = sorted(lines_of(zng_of(rows_of_text(FIRST + SECOND))))
    assert came(landing) == expected
    compact(spark, pool.branch(), list(plan_pool(landing.lake, "p", strategy="full", now=0.0).jobs))
    assert came(landing) == expected
    assert {format_of(r.object) for r in pool.at().references} == {"zst"}


def test_spark_reads_and_writes_such_a_pool_as_any_other(spark: Any, landing: Landing) -> None:
    landing.pool(format="zst")
    landing.load(spark, "p", landing.file("a.zng", zng_of(rows_of_text(FIRST))))
    frame = spark.createDataFrame([(2, 2.5), (4, None)], "k long, v double")
    frame.write.format("lake").option("lake", landing.uri).mode("append").save("p")
    pool = landing.lake.pool("p")
    assert_same(read(spark.read.format("lake").option("lake", landing.uri).load("p")), pool.at().to_table())
    assert [row.k for row in pyspark_lake.read(spark, "p", lake=landing.uri, where="k > 1").collect()] == [
        2,
        3,
        4,
        5,
    ]
    assert came(landing)[1::2] == ["{k:2,v:2.5}", "{k:4}"]
