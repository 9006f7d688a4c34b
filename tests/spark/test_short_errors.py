"""What a Spark user reads of an error: with Spark's own setting the sentence alone; and of statements it lacks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from log_lake.lake import Lake

HIDE = "spark.sql.execution.pyspark.udf.hideTraceback.enabled"

pytestmark = pytest.mark.spark


@pytest.fixture
def short(spark: Any) -> Any:
    spark.conf.set(HIDE, "true")
    yield spark
    spark.conf.unset(HIDE)


@pytest.fixture
def uri(tmp_path: Path) -> str:
    lake = Lake.create(str(tmp_path / "lake"))
    lake.create_pool("flights", key="ts").branch().append(pa.table({"ts": [1, 2], "delay": [5, 6]}))
    return str(tmp_path / "lake")


def test_the_setting_leaves_the_sentence_alone(short: Any, uri: str) -> None:
    for options, sentence in (
        ({"path": "flight"}, "pool 'flight' does not exist"),
        ({"path": "flights", "at": "exq"}, "exq"),
        ({"path": "flights", "colums": "ts"}, "colums"),
    ):
        with pytest.raises(Exception) as caught:
            short.read.format("lake").option("lake", uri).options(**options).load().collect()
        text = str(caught.value)
        assert sentence in text
        assert "Traceback" not in text
        assert len(text.splitlines()) < 6, text


def test_a_delete_through_a_view_is_refused_and_changes_nothing(short: Any, uri: str) -> None:
    short.sql(f"CREATE OR REPLACE TEMPORARY VIEW v USING lake OPTIONS (lake '{uri}', path 'flights')")
    with pytest.raises(Exception):  # noqa: B017 - a class of Spark's own, which the page tells of
        short.sql("DELETE FROM v WHERE ts = 1")
    assert Lake.open(uri).pool("flights").at().records == 2
