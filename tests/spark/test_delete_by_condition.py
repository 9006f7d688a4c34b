"""`pyspark_lake.delete` by a condition or a range, without a job of Spark; its refusals, in one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyspark_lake
from lake_core.errors import InvalidInput
from log_lake.lake import Lake

SPARK: Any = None
"""The session, which these calls do not use."""


@pytest.fixture(params=["append", "upsert"])
def uri(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    lake = Lake.create(str(tmp_path / "lake"))
    pool = lake.create_pool("flights", key="ts", kind=request.param)
    pool.branch().append(pa.table({"ts": [1, 2, 3, 4], "delay": [5, 6, 7, 8]}))
    return str(tmp_path / "lake")


def left(uri: str) -> list[int]:
    return list(Lake.open(uri).pool("flights").at().to_table()["ts"].to_pylist())


def test_a_condition_and_a_range_delete_their_records_under_a_token_once(uri: str) -> None:
    done = pyspark_lake.delete(
        SPARK, "flights", where="delay = 6", lake=uri, token="t", metadata={"run": "9"}
    )
    assert (done.version, left(uri)) == (2, [1, 3, 4])
    assert pyspark_lake.delete(SPARK, "flights", where="delay = 6", lake=uri, token="t").repeated
    ((_, newest), *_) = Lake.open(uri).pool("flights").log()
    assert newest.metadata["run"] == "9"
    pyspark_lake.delete(SPARK, "flights", from_="3", to="4", lake=uri)
    assert 3 not in left(uri)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            {},
            "the delete names no records: give a data frame with their keys, or where='CONDITION', or from_ and to",
        ),
        ({"keys": "ts = 1"}, "the keys are the text 'ts = 1': a condition goes into where="),
        ({"keys": [1]}, "the keys: list is no data frame of Spark; spark.createDataFrame(...) makes one"),
        (
            {"keys": [1], "where": "ts = 1"},
            "the delete has keys and where: give a data frame of keys, or a range",
        ),
        ({"where": "tz = 1"}, "condition `tz = 1`, column 1, at `tz`: no such field; there are: ts, delay"),
        ({"where": "ts = 1", "at": "dev"}, "unknown option 'at': a delete has lake, branch, message"),
    ],
)
def test_a_mistake_gets_a_sentence_and_deletes_nothing(
    uri: str, given: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        pyspark_lake.delete(SPARK, "flights", lake=uri, **given)
    assert str(caught.value).startswith(sentence)
    assert left(uri) == [1, 2, 3, 4]


def test_what_is_no_data_frame_is_not_written(uri: str) -> None:
    table = pa.table({"ts": [9]})
    for call in (
        lambda: pyspark_lake.write(table, "flights", lake=uri),
        lambda: pyspark_lake.merge(SPARK, "flights", [{"ts": 9}], lake=uri),
    ):
        with pytest.raises(InvalidInput, match=r"is no data frame of Spark; spark\.createDataFrame"):
            call()
    assert left(uri) == [1, 2, 3, 4]
