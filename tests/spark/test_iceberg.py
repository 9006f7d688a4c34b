"""Published tables as Iceberg's own Spark runtime reads them, beside what the lake gives: all values of all cases.

The runtime has no release for our PySpark, so another process reads, with a PySpark of its own.  LAKE_TEST_ICEBERG
names the Python that has it (`spark41` installs one); without it these tests are skipped.  LAKE_TEST_ICEBERG_JAR
may name the runtime's jar; otherwise Spark fetches it from Maven.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
from dataclasses import dataclass
from typing import Any

import pytest

from lake_core.lake.pool import Pool
from lake_core.publish.run import publish_iceberg
from tests.support.iceberg import values
from tests.support.iceberg_cases import CASES, without_zone
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
