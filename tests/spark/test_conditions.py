"""Conditions on Spark: the answers of Arrow and of plain Python, for many random conditions at once."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest

from lake_core.conditions import check, evaluate, parse, show
from lake_core.errors import InvalidInput
from spark_apps.conditions import to_spark
from tests.fakes.conditions import SCHEMA, paths, some_condition, some_records, to_table, truth
from tests.spark.conftest import Landing

pytestmark = pytest.mark.spark

CONDITIONS = 300
RECORDS = 60
AT_ONCE = 50


def answers(df: Any, conditions: list[Any], schema: pa.Schema) -> list[list[bool | None]]:
    """What Spark says of each condition, for the records in the order of `n`; some conditions a query."""
    found: list[list[bool | None]] = []
    for begin in range(0, len(conditions), AT_ONCE):
        some = conditions[begin : begin + AT_ONCE]
        columns = [to_spark(condition, schema).alias(f"c{i}") for i, condition in enumerate(some)]
        table = df.select("n", *columns).toArrow().sort_by("n")
        found += [table[f"c{i}"].to_pylist() for i in range(len(some))]
    return found


def test_spark_answers_as_arrow_and_plain_python(spark: Any, landing: Landing) -> None:
    random = Random(20260131)
    whole = some_records(random, RECORDS)
    for record in whole:
        if record["ns"] is not None and record["ns"][2] % 1000:
            record["ns"] = None  # Spark has no nanoseconds
    table = to_table(whole)
    landing.pool(key="n")
    landing.lake.pool("p").branch().append(table)
    df = spark.read.format("lake").option("lake", landing.uri).load("p")
    conditions = [some_condition(random, paths(SCHEMA)) for _ in range(CONDITIONS)]
    schema = landing.lake.pool("p").at().schema
    for condition, found in zip(conditions, answers(df, conditions, schema), strict=True):
        expected = [truth(condition, record) for record in whole]
        assert found == expected, show(condition)
        assert evaluate(condition, table).to_pylist() == expected, show(condition)


@pytest.mark.parametrize("text", ["j = 1", "j in (1, 2)", '"j"."a" is null'])
def test_a_look_into_json_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="Spark cannot look into"):
        to_spark(parse(text), SCHEMA)


def test_a_field_that_the_schema_lacks_is_null(spark: Any) -> None:
    df = spark.range(1).withColumnRenamed("id", "n")
    conditions = [parse("gone = 1"), parse("gone is null"), check("n = 0", SCHEMA)]
    assert answers(df, conditions, SCHEMA) == [[None], [True], [True]]
