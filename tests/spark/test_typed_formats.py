"""Pools whose records keep their own types: Spark loads, reads, writes and compacts them as any other."""

from __future__ import annotations

from typing import Any

import pytest

import pyspark_lake
from lake_core.naming import format_of
from lake_core.schemas.hidden import ROW
from log_lake.agents.compact.run import compact_pool, plan_pool
from log_lake.objects.containers.rows import rows_of_table
from spark_apps.workers import workers_of
from tests.spark.conftest import Landing
from tests.support.spark.answers import assert_same, read
from tests.support.zng_files import lines_of, rows_of_text, zng_of

pytestmark = pytest.mark.spark

FIRST = '{k:1,v:1(int8)}\n{k:3,v:"three"}\n{k:5,ip:10.0.0.1,u:1((int64,string))}(=host)\n'
SECOND = "{k:2,v:2.5}\n{k:4,w:|[1,2]|}\n"


def came(landing: Landing) -> list[str]:
    view = landing.lake.pool("p").at()
    tables = view.run(view.plan(keep=ROW.names))
    return [line for table in tables for line in lines_of(zng_of([rows_of_table(table)]))]


def test_what_spark_loads_and_compacts_keeps_its_types(spark: Any, landing: Landing) -> None:
    landing.pool(format="zng")
    for name, text in (("a.zng", FIRST), ("b.zng", SECOND)):
        landing.load(spark, "p", landing.file(name, zng_of(rows_of_text(text))))
    pool = landing.lake.pool("p")
    expected = sorted(lines_of(zng_of(rows_of_text(FIRST + SECOND))))
    assert came(landing) == expected
    plan = plan_pool(landing.lake, "p", strategy="full", now=0.0)
    compact_pool(landing.lake, "p", plan, workers=workers_of(spark, landing.lake.context))
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


def test_the_records_of_one_type_are_a_frame_of_its_own_fields(spark: Any, landing: Landing) -> None:
    landing.pool(format="zng")
    landing.load(spark, "p", landing.file("a.zng", zng_of(rows_of_text(FIRST + "{k:7,v:3(int8)}\n"))))
    reader = spark.read.format("lake").option("lake", landing.uri)
    types = reader.load("p:types").collect()
    assert (types[0].records, types[0].type) == (2, "{k:int64,v:int8}")
    own = reader.load(f"p:type:{types[0].id}")
    assert [(f.name, f.dataType.simpleString()) for f in own.schema] == [("k", "bigint"), ("v", "tinyint")]
    assert sorted(own.where("v > 0").collect()) == [(1, 1), (7, 3)]
    assert pyspark_lake.read(spark, f"p:type:{types[0].id}", lake=landing.uri, columns="v").count() == 2
    assert "by their types" in pyspark_lake.explain(spark, "p:typed", lake=landing.uri)


def test_records_of_all_types_are_a_frame_with_their_type_or_with_a_variant(
    spark: Any, landing: Landing
) -> None:
    landing.pool(format="zst")
    landing.load(spark, "p", landing.file("a.zng", zng_of(rows_of_text(FIRST + SECOND))))
    reader = spark.read.format("lake").option("lake", landing.uri).option("where", "k < 4")
    rows = reader.load("p:typed").select("_type", "k").collect()
    assert [(row.k, row._type) for row in rows] == [
        (1, "{k:int64,v:int8}"),
        (2, "{k:int64,v:float64}"),
        (3, "{k:int64,v:string}"),
    ]
    values = reader.load("p:values")
    assert dict(values.dtypes) == {"k": "bigint", "_type": "string", "value": "variant"}
    texts = values.selectExpr("to_json(value) AS text").collect()
    assert [row.text for row in texts] == ['{"k":1,"v":1}', '{"k":2,"v":2.5}', '{"k":3,"v":"three"}']
    ends = values.selectExpr("variant_get(value, '$.v', 'double') AS v").where("k = 2")
    assert ends.collect()[0].v == 2.5


def test_a_write_to_records_by_type_is_refused(spark: Any, landing: Landing) -> None:
    landing.pool(format="zst")
    frame = spark.createDataFrame([(2, 2.5)], "k long, v double")
    with pytest.raises(Exception, match="write to 'p:typed': name a pool"):
        frame.write.format("lake").option("lake", landing.uri).mode("append").save("p:typed")
