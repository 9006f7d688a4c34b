"""Published tables as Iceberg's own Spark runtime reads them, beside what the lake gives: all values of all cases.

The runtime has no release for our PySpark, so another process reads, with a PySpark of its own.  With
LAKE_TEST_ICEBERG=1, as in CI, it is installed (`spark41`); otherwise the variable names the Python that has it.
Without the variable these tests are skipped.  LAKE_TEST_ICEBERG_JAR may name the runtime's jar; otherwise Spark
fetches it from Maven.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
from dataclasses import dataclass
from typing import Any

import pytest

from log_lake.lake import Lake
from tests.support.apart import named_or_installed
from tests.support.iceberg_cases import CASES, Tables, publish_cases, read_as
from tests.support.repository import ROOT
from tests.support.served_catalog import TABLES, a_served_lake, expected, serving_catalog
from tests.support.spark.iceberg_reader import READERS
from tests.support.spark.spark41 import ICEBERG, spark41

pytest.importorskip("pyiceberg")
ASKED = os.environ.get("LAKE_TEST_ICEBERG", "")
JAR = os.environ.get("LAKE_TEST_ICEBERG_JAR", ICEBERG)
pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(not ASKED, reason="LAKE_TEST_ICEBERG is not set"),
]


QUESTIONS = [(name, *pair) for name, case in CASES.items() for pair in ((None, None), *case.filters)]


@dataclass(frozen=True)
class Answers:
    """The cases, the lake behind the catalog, and the rows that Spark gave: by question and reader."""

    tables: Tables
    lake: Lake
    rows: dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def python() -> str:
    """The Python with PySpark 4.1."""
    return str(named_or_installed(ASKED, spark41))


@pytest.fixture(scope="module")
def answers(python: str, tmp_path_factory: pytest.TempPathFactory, spark_environ: dict[str, str]) -> Answers:
    folder = tmp_path_factory.mktemp("tables")
    tables = publish_cases(folder, CASES)
    asked = {f"{name}: {of_spark}": (tables.locations[name], of_spark) for name, of_spark, _ in QUESTIONS}
    lake = a_served_lake(folder / "lake")
    asked |= {f"catalog {name}": (f"l.lake.`{name}`", None) for name in (*TABLES, "overlap")}
    (folder / "asked").write_text(json.dumps(asked))
    script = ROOT / "tests/support/spark/iceberg_reader.py"
    environ = {**spark_environ, "PYSPARK_PYTHON": python, "TZ": "UTC"}
    environ.pop("PYTHONPATH", None)
    with serving_catalog(lake.store.uri) as served:
        done = subprocess.run(
            [python, str(script), str(folder / "asked"), str(folder / "answers"), JAR, served.address],
            env=environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=800,
        )
    assert done.returncode == 0, done.stderr[-4000:]
    return Answers(tables, lake, pickle.loads((folder / "answers").read_bytes()))


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(("name", "of_spark", "of_lake"), QUESTIONS)
def test_spark_reads_what_the_lake_gives(
    answers: Answers, name: str, of_spark: str | None, of_lake: str | None, reader: str
) -> None:
    rows = answers.rows[f"{name}: {of_spark}"][reader]
    assert isinstance(rows, list), rows
    assert read_as(rows) == answers.tables.expected(name, of_lake)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("name", TABLES.keys() - {"times"})
def test_spark_reads_pools_by_name_from_the_catalog(answers: Answers, name: str, reader: str) -> None:
    rows = answers.rows[f"catalog {name}"][reader]
    assert isinstance(rows, list), rows
    assert read_as(rows) == expected(answers.lake, name)


def test_spark_says_what_the_catalog_says_of_a_pool_that_it_cannot_express(answers: Answers) -> None:
    assert "lake compact overlap --strategy full" in answers.rows["catalog overlap"]["columns"]
    assert "Spark does not support time fields" in answers.rows["catalog times"]["columns"]
