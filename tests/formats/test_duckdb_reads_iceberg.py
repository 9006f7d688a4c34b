"""Published tables as DuckDB's extension for Iceberg reads them, beside what the lake gives.

Another process reads, in an environment of its own (`tests.support.duckdb_apart`).
"""

from __future__ import annotations

import json
import pickle
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from log_lake.publish.run import publish_iceberg
from tests.support.duckdb_apart import INSTALL_SECONDS, LOAD, duckdb_apart
from tests.support.iceberg import ODD, a_local_pool, read_table, values
from tests.support.iceberg_cases import BEYOND_SPARK, CASES, Tables, publish_cases, read_as

pytest.importorskip("pyiceberg")

READER = f"""{LOAD}
answers = {{}}
for name, (location, condition) in json.loads(Path(sys.argv[1]).read_text()).items():
    answers[name] = rows_of(f"SELECT * FROM iceberg_scan('{{location}}') WHERE {{condition or 'true'}}")
Path(sys.argv[2]).write_bytes(pickle.dumps(answers))
"""

CONDITIONS: dict[str, tuple[tuple[str, str], ...]] = {
    "a key inside of records": (("user_id > 25", '"user.id" > 25'), ('"user".id = 12', "user.id = 12")),
    "deletes": (("k >= 7990 AND k < 12010", "k >= 7990 and k < 12010"),),
    "all types": (("decimal > 0", "decimal > 0"), ("record.a = 1", "record.a = 1")),
    "times": (("d < DATE '1970-01-01'", "d < '1970-01-01'"),),
    "renamed and dropped fields": (
        ("s > 4", "s > 4"),
        ("gone IS NULL", "gone is null"),
        ("new = 'b' AND gone >= '4'", "new = 'b' and gone >= '4'"),
    ),
    "keys descending, and null": (("s < 'b'", "s < 'b'"),),
}
"""Of DuckDB and of the lake."""
ALL = {**CASES, **BEYOND_SPARK}
QUESTIONS = [(name, *pair) for name in ALL for pair in (("", None), *CONDITIONS.get(name, ()))]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Python with DuckDB and its extension."""
    return duckdb_apart(tmp_path_factory.mktemp("duckdb"))


@dataclass(frozen=True)
class Answers:
    """The cases, and the rows that DuckDB gave, by question."""

    tables: Tables
    rows: dict[str, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def answers(python: str, tmp_path_factory: pytest.TempPathFactory) -> Answers:
    folder = tmp_path_factory.mktemp("tables")
    tables = publish_cases(folder, ALL)
    asked = {f"{name}: {condition}": (tables.locations[name], condition) for name, condition, _ in QUESTIONS}
    (folder / "asked").write_text(json.dumps(asked))
    words = [python, "-c", READER, str(folder / "asked"), str(folder / "answers")]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=INSTALL_SECONDS)
    assert done.returncode == 0, done.stderr[-4000:]
    return Answers(tables, pickle.loads((folder / "answers").read_bytes()))


@pytest.mark.parametrize(("name", "of_duckdb", "of_lake"), QUESTIONS)
def test_duckdb_reads_what_the_lake_gives(
    answers: Answers, name: str, of_duckdb: str, of_lake: str | None
) -> None:
    expected = answers.tables.expected(name, of_lake)
    assert expected, "a question that has an answer"
    assert read_as(answers.rows[f"{name}: {of_duckdb}"]) == expected


def test_duckdb_reads_converted_fields_as_pyiceberg_does(python: str, tmp_path: Path) -> None:
    several = {"k": [5], "v": [1]}, {"k": [6], "v": ["1"]}
    odd = pa.table({"k": pa.array([1, 2, 3]), **ODD})
    pool = a_local_pool(tmp_path, odd, *several, settings={"publish.types": "text"})
    location = publish_iceberg(pool).location
    (tmp_path / "asked").write_text(json.dumps({"odd": (location, "")}))
    words = [python, "-c", READER, str(tmp_path / "asked"), str(tmp_path / "answers")]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=INSTALL_SECONDS)
    assert done.returncode == 0, done.stderr[-4000:]
    rows = pickle.loads((tmp_path / "answers").read_bytes())["odd"]
    assert len(rows) == 5
    assert read_as(rows) == values(read_table(location).to_pylist())
