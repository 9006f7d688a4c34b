"""The recipes for foreachBatch of docs/spark.md, run on streams; a batch that comes twice is done once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.spark.conftest import Landing
from tests.support.documentation import examples

pytestmark = pytest.mark.spark


@pytest.fixture
def recipes(landing: Landing) -> dict[str, Any]:
    """What the page defines."""
    names: dict[str, Any] = {"LAKE": landing.uri}
    for example in examples("docs/spark.md", "python", "recipe"):
        exec(example.code, names)
    return names


def run(spark: Any, landing: Landing, recipes: dict[str, Any], name: str, source: str, folder: Path) -> None:
    """Stream what a pool holds so far through a recipe; each batch comes twice."""
    given = {"lake": landing.uri, **({"changes": "true"} if name == "mirror" else {})}
    stream = spark.readStream.format("lake").options(**given).load(source)

    def twice(batch: Any, number: int) -> None:
        recipes[name](batch, number)
        recipes[name](batch, number)

    query = recipes["start"](stream, twice, str(folder / name))
    query.awaitTermination(600)
    assert query.exception() is None
    query.stop()


def rows(landing: Landing, pool: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in landing.lake.pool(pool).at().to_table().to_pylist()]


@pytest.mark.parametrize("kind", ["append", "upsert"])
def test_a_stream_upserts_and_another_one_deletes(
    spark: Any, landing: Landing, recipes: dict[str, Any], tmp_path: Path, kind: str
) -> None:
    landing.lake.create_pool("accounts", key="id", kind=kind)
    events, gone = (landing.lake.create_pool(name, key="id") for name in ("events", "gone"))
    rows_of_events = {"id": [1, 2, 1, 1, 3], "time": [1, 1, 2, None, None], "v": ["a", "b", "c", "d", "e"]}
    events.branch().append(pa.table(rows_of_events))
    gone.branch().append(pa.table({"id": [2, 9]}))
    run(spark, landing, recipes, "upsert", "events", tmp_path)
    assert rows(landing, "accounts") == [(1, 2, "c"), (2, 1, "b"), (3, None, "e")]
    run(spark, landing, recipes, "forget", "gone", tmp_path)
    assert rows(landing, "accounts") == [(1, 2, "c"), (3, None, "e")]
    assert landing.transactions("accounts") == 2


def test_one_stream_is_written_to_two_pools(
    spark: Any, landing: Landing, recipes: dict[str, Any], tmp_path: Path
) -> None:
    events, *_ = (landing.lake.create_pool(name, key="id") for name in ("events", "info", "warn"))
    events.branch().append(pa.table({"id": [1, 2, 3], "level": ["info", "warn", "info"]}))
    run(spark, landing, recipes, "route", "events", tmp_path)
    assert rows(landing, "info") == [(1, "info"), (3, "info")]
    assert rows(landing, "warn") == [(2, "warn")]


def test_a_stream_of_changes_keeps_a_copy_of_a_pool(
    spark: Any, landing: Landing, recipes: dict[str, Any], tmp_path: Path
) -> None:
    source, copy = (landing.lake.create_pool(name, key="id") for name in ("source", "copy"))
    branch = source.branch()
    branch.append(pa.table({"id": [1, 2, 3, 4], "v": [1, 2, 3, 4]}))
    branch.delete(where="v = 2")
    branch.replace_with(pa.table({"id": [3], "v": [30]}), key_range=source.at().key_range(low=3, high=5))
    run(spark, landing, recipes, "mirror", "source", tmp_path)
    assert rows(landing, "copy") == rows(landing, "source") == [(1, 1), (3, 30)]
    assert copy.at().version == 4, "each once"
