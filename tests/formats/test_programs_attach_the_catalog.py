"""DuckDB and Polars attach `lake serve` and read pools by name, beside what the lake gives: all values.

Both are in an environment of their own (`tests.support.duckdb_apart`).  DuckDB gets only the catalog's address.
"""

from __future__ import annotations

import json
import pickle
import subprocess
from dataclasses import dataclass
from typing import Any

import pytest

pytest.importorskip("pyiceberg")

from log_lake.lake import Lake
from tests.support.duckdb_apart import INSTALL_SECONDS, LOAD, duckdb_apart
from tests.support.iceberg_cases import read_as
from tests.support.served_catalog import TABLES, a_served_lake, expected, serving_catalog

BY_DUCKDB = f"""{LOAD}
address, asked, answers = sys.argv[1:]
connection.execute(f"ATTACH '' AS l (TYPE iceberg, ENDPOINT '{{address}}', AUTHORIZATION_TYPE 'none')")
results = {{}}
for sql in json.loads(asked):
    try:
        results[sql] = rows_of(sql)
    except duckdb.Error as error:
        results[sql] = str(error)
Path(answers).write_bytes(pickle.dumps(results))
"""
BY_POLARS = """
import pickle, sys
from pathlib import Path
import polars
from pyiceberg.catalog.rest import RestCatalog

address, asked, answers = sys.argv[1:]
catalog = RestCatalog("l", uri=address)
names = __import__("json").loads(asked)
frames = {name: polars.scan_iceberg(catalog.load_table(("lake", name))).collect() for name in names}
Path(answers).write_bytes(pickle.dumps({name: frame.to_dicts() for name, frame in frames.items()}))
"""
JOIN = "SELECT l.k, u.city FROM l.lake.logs l JOIN l.lake.users u ON l.s = u.s ORDER BY ALL"
REFUSED = "SELECT * FROM l.lake.overlap"
WRITES = ("CREATE TABLE l.lake.t (a int)", "DROP TABLE l.lake.logs", "CREATE SCHEMA l.other")


@dataclass(frozen=True)
class Answers:
    """The lake, and what the programs read of it."""

    lake: Lake
    of_duckdb: dict[str, Any]
    of_polars: dict[str, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Answers:
    python = duckdb_apart(tmp_path_factory.mktemp("python"), "polars", "pyiceberg==0.12.*", "pyarrow")
    folder = tmp_path_factory.mktemp("catalog")
    lake = a_served_lake(folder / "lake")
    asked = [f'SELECT * FROM l.lake."{name}"' for name in TABLES]
    asked += [JOIN, REFUSED, *WRITES, "SELECT table_name FROM information_schema.tables"]

    def ask(program: str, questions: list[str]) -> Any:
        file = folder / "answers"
        words = [python, "-c", program, served.address, json.dumps(questions), str(file)]
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=INSTALL_SECONDS)
        assert done.returncode == 0, done.stderr[-4000:]
        return pickle.loads(file.read_bytes())

    with serving_catalog(lake.store.uri) as served:
        return Answers(lake, ask(BY_DUCKDB, asked), ask(BY_POLARS, list(TABLES)))


def with_pairs(row: dict[str, Any]) -> dict[str, Any]:
    """The row of Polars with pairs for each map: by its way to Arrow it gives a dict, or a list of records."""
    pairs = row.get("map")
    if pairs is None:
        return row
    items = list(pairs.items()) if isinstance(pairs, dict) else [(one["key"], one["value"]) for one in pairs]
    return {**row, "map": items}


@pytest.mark.parametrize("name", TABLES)
def test_duckdb_reads_what_the_lake_gives(answers: Answers, name: str) -> None:
    rows = answers.of_duckdb[f'SELECT * FROM l.lake."{name}"']
    assert isinstance(rows, list), rows
    assert read_as(rows) == expected(answers.lake, name)


@pytest.mark.parametrize("name", TABLES)
def test_polars_reads_what_the_lake_gives(answers: Answers, name: str) -> None:
    assert read_as(map(with_pairs, answers.of_polars[name])) == expected(answers.lake, name)


def test_duckdb_joins_two_pools(answers: Answers) -> None:
    cities = {"s1": "Zürich", "s2": None}
    rows = answers.lake.pool("logs").at().to_table().to_pylist()
    joined = [{"k": row["k"], "city": cities[row["s"]]} for row in rows if row["s"] in cities]
    assert read_as(answers.of_duckdb[JOIN]) == read_as(joined)


def test_duckdb_lists_all_pools_and_shows_what_the_lake_says(answers: Answers) -> None:
    listed = {
        row["table_name"] for row in answers.of_duckdb["SELECT table_name FROM information_schema.tables"]
    }
    assert {"logs", "types", "users", "overlap", "a*..%2Fü.<b>"} <= listed
    assert "lake compact overlap --strategy full" in answers.of_duckdb[REFUSED]


@pytest.mark.parametrize("sql", WRITES)
def test_duckdb_cannot_write(answers: Answers, sql: str) -> None:
    assert "this catalog is read-only" in str(answers.of_duckdb[sql])
