"""Published tables as Iceberg's own Spark runtime reads them, beside what the lake gives: all values of all cases.

The runtime has no release for our PySpark, so another process reads, with a PySpark of its own.  LAKE_TEST_ICEBERG
names the Python that has it (`spark41` installs one); without it these tests are skipped.  LAKE_TEST_ICEBERG_JAR
may name the runtime's jar; otherwise Spark fetches it from Maven.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import pickle
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lake_core.agents.compact.rewrite import compact
from lake_core.lake.pool import Pool
from lake_core.publish.run import publish_iceberg
from lake_core.records.transactions import sequence
from tests.support.iceberg import TYPES, a_local_pool, values
from tests.support.repository import ROOT
from tests.support.spark.iceberg_reader import READERS
from tests.support.spark.spark41 import ICEBERG

pytest.importorskip("pyiceberg")
PYTHON = os.environ.get("LAKE_TEST_ICEBERG", "")
JAR = os.environ.get("LAKE_TEST_ICEBERG_JAR", ICEBERG)
pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(not PYTHON, reason="LAKE_TEST_ICEBERG names no Python with PySpark 4.1"),
]


def numbers(low: int, high: int, **more: Any) -> dict[str, Any]:
    return {"k": list(range(low, high)), **{name: [value] * (high - low) for name, value in more.items()}}


def _types(folder: Path) -> Pool:
    columns = {
        name: column for name, column in TYPES.items() if name != "time"
    }  # Spark has no such type here
    return a_local_pool(folder, pa.table({"k": [1, 2, 3], **columns}))


def _nested_nulls(folder: Path) -> Pool:
    kind = pa.list_(pa.struct({"a": pa.int64()}))
    return a_local_pool(folder, pa.table({"k": [1, 2, 3], "c": pa.array([[{"a": 1}, None], [], None], kind)}))


def _deletes(folder: Path) -> Pool:
    pool = a_local_pool(
        folder, numbers(0, 20_000, s="a"), numbers(10_000, 30_000, s="b"), numbers(50_000, 50_010)
    )
    pool.branch().delete(key_range=pool.at().key_range(low=8_000, high=12_000))
    pool.branch().delete(where="s = 'b' and k >= 29000")
    pool.branch().delete(where="k = 50003")
    return pool


def _compacted(folder: Path) -> Pool:
    pool = a_local_pool(folder, *(numbers(i, i + 5, v=i) for i in (0, 0, 3)))
    compact(pool.branch(), pool.at().references)
    pool.branch().revert("2")
    return pool


def _upsert(folder: Path) -> Pool:
    loads = [
        {"k": [1, 2, 3, 4], "_deleted": [True, False, None, False], "s": ["a", "b", "c", "d"]},
        {"k": [2, 4], "s": ["x", "y"]},
    ]
    pool = a_local_pool(folder, *loads, kind="upsert")
    compact(pool.branch(), pool.at().references)
    pool.branch().append(pa.table({"k": [10, 11], "_deleted": [None, True], "s": ["u", "v"]}))
    pool.branch().delete(where="s = 'y'")
    return pool


def _aggregate(folder: Path) -> Pool:
    pool = a_local_pool(
        folder, numbers(0, 5, n=1), numbers(3, 9, n=2), kind="aggregate", aggregates={"n": "sum"}
    )
    compact(pool.branch(), pool.at().references)
    return pool


def _evolved(folder: Path) -> Pool:
    return a_local_pool(
        folder,
        pa.table({"k": pa.array([1], pa.int32()), "r": [{"a": 1}], "x": pa.array([1.5], pa.float32())}),
        pa.table({"id.orig_h": ["h"], "r": [{"b": [{"c": 2}], "a": 3}], "k": [2**40], "nulls": pa.nulls(1)}),
        pa.table({"k": [3], "x": [1e300], "r": pa.array([None], pa.struct({"a": pa.int64()}))}),
    )


def _published_twice(folder: Path) -> Pool:
    pool = a_local_pool(folder, numbers(0, 10, s="a"), numbers(5, 15, s="b"))
    pool.branch().delete(where="k = 3")
    publish_iceberg(pool)
    pool.branch().append(pa.table({**numbers(20, 30, s="c"), "new": [None] * 9 + [1.5]}))
    pool.branch().delete(where="k = 3 or k = 7")
    compact(pool.branch(), [r for r in pool.at().references if r.seq == sequence(2)])
    return pool


def _descending(folder: Path) -> Pool:
    loads = [{"k": [3, None, 1], "s": ["b", "a", None]}, {"k": [None, 2], "s": [None, "z"]}]
    return a_local_pool(folder, *loads, key="s:desc,k")


def _floats(folder: Path) -> Pool:
    return a_local_pool(folder, {"k": [1, 2, 3, 4], "x": [-0.0, 1.5, float("inf"), None]})


def _times(folder: Path) -> Pool:
    moments = pa.array([-(10**15), -1, 0, 1_000_000, 1_000_001, None], pa.timestamp("us", "UTC"))
    days = moments.cast(pa.date32())
    return a_local_pool(
        folder, pa.table({"k": range(6), "t": moments, "d": days, "n": moments.cast(pa.timestamp("us"))})
    )


@dataclass(frozen=True)
class Case:
    """A pool, and filters: of Spark, and of the lake."""

    make: Callable[[Path], Pool]
    branch: str = "main"
    without: tuple[str, ...] = ()
    filters: tuple[tuple[str, str], ...] = ()


def _branched(folder: Path) -> Pool:
    pool = a_local_pool(folder, numbers(0, 5, s="a"))
    pool.create_branch("dev")
    pool.branch("dev").append(pa.table(numbers(5, 10, s="b")))
    pool.branch().delete(where="k = 1")
    return pool


CASES = {
    "all types": Case(
        _types,
        filters=(
            ("int8 > 0", "int8 > 0"),
            ("decimal > 0", "decimal > 0"),
            ("`long decimal` < 0", '"long decimal" < 0'),
            ("double < 0", "double < 0"),
            ("record.a = 1", "record.a = 1"),
            ("bool", "bool = true"),
            ("`text` = 'zürich \U0001f600'", "text = 'zürich \U0001f600'"),
        ),
    ),
    "nested nulls": Case(_nested_nulls),
    "deletes": Case(
        _deletes,
        filters=(
            ("k >= 7990 and k < 12010", "k >= 7990 and k < 12010"),
            ("s = 'b' and k > 28990", "s = 'b' and k > 28990"),
        ),
    ),
    "compacted, with a revert": Case(_compacted),
    "upsert": Case(_upsert),
    "aggregate": Case(_aggregate),
    "evolved": Case(
        _evolved,
        filters=(("k > 2", "k > 2"), ("x > 1.25", "x > 1.25"), ("`id.orig_h` = 'h'", "\"id.orig_h\" = 'h'")),
    ),
    "published twice": Case(_published_twice, filters=(("new is not null", "new is not null"),)),
    "keys descending, and null": Case(
        _descending, filters=(("s is null", "s is null"), ("s < 'b'", "s < 'b'"))
    ),
    "floats": Case(_floats, filters=(("x = 0", "x = 0"), ("x > 1", "x > 1"))),
    "times": Case(
        _times,
        filters=(
            ("t > timestamp'1970-01-01 00:00:01'", "t > timestamp '1970-01-01T00:00:01Z'"),
            ("n <= timestamp_ntz'1970-01-01 00:00:01'", "n <= timestamp '1970-01-01T00:00:01'"),
            ("d < date'1970-01-01'", "d < '1970-01-01'"),
        ),
    ),
    "a branch": Case(_branched, branch="dev"),
    "main beside a branch": Case(_branched),
    "without a field": Case(
        lambda folder: a_local_pool(folder, numbers(0, 3, c=1, s="a"), numbers(3, 6, c="a", s="b")),
        without=("c",),
    ),
}
QUESTIONS = [(name, *pair) for name, case in CASES.items() for pair in ((None, None), *case.filters)]


@dataclass(frozen=True)
class Tables:
    """The pools of the cases, and the rows that Spark gave: by question and reader."""

    pools: dict[str, Pool]
    answers: dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory, spark_environ: dict[str, str]) -> Tables:
    folder = tmp_path_factory.mktemp("tables")
    pools: dict[str, Pool] = {}
    locations: dict[str, str] = {}
    for number, (name, case) in enumerate(CASES.items()):
        pools[name] = case.make(folder / str(number))
        locations[name] = publish_iceberg(pools[name], branch=case.branch, without=case.without).location
    asked = {f"{name}: {of_spark}": (locations[name], of_spark) for name, of_spark, _ in QUESTIONS}
    (folder / "asked").write_text(json.dumps(asked))
    script = ROOT / "tests/support/spark/iceberg_reader.py"
    environ = {**spark_environ, "PYSPARK_PYTHON": PYTHON, "TZ": "UTC"}
    environ.pop("PYTHONPATH", None)
    done = subprocess.run(
        [PYTHON, str(script), str(folder / "asked"), str(folder / "answers"), JAR],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=800,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return Tables(pools, pickle.loads((folder / "answers").read_bytes()))


def without_zone(value: Any) -> Any:
    """Spark gives instants as times of the session's zone, which is UTC."""
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=None)
    if isinstance(value, dict):
        return {name: without_zone(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(without_zone(part) for part in value)
    return value


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(("name", "of_spark", "of_lake"), QUESTIONS)
def test_spark_reads_what_the_lake_gives(
    tables: Tables, name: str, of_spark: str | None, of_lake: str | None, reader: str
) -> None:
    case, rows = CASES[name], tables.answers[f"{name}: {of_spark}"][reader]
    assert isinstance(rows, list), rows
    view = tables.pools[name].at(case.branch)
    columns = [column for column in view.plan().columns if column not in case.without]
    expected = [row for t in view.scan(columns=columns, where=of_lake) for row in t.to_pylist()]
    assert values(without_zone(row) for row in rows) == values(without_zone(row) for row in expected)
