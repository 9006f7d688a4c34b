"""DuckDB, Polars and dbt attach `lake serve` and read pools by name, beside what the lake gives: all values.

They are in an environment of their own (`tests.support.duckdb_apart`).  DuckDB gets only the catalog's address, and
dbt the files of docs/catalog.md.
"""

from __future__ import annotations

import json
import os
import pickle
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyiceberg")

from log_lake.lake import Lake
from tests.support.duckdb_apart import COPY_EXTENSIONS, INSTALL_SECONDS, LOAD, duckdb_apart
from tests.support.iceberg_cases import read_as
from tests.support.repository import ROOT
from tests.support.served_catalog import TABLES, a_served_lake, expected, joined, serving_catalog

CATALOG_PAGE = ROOT / "docs" / "catalog.md"
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
MODEL = """{{ config(materialized='table') }}
SELECT l.k, u.city FROM {{ source('lake', 'logs') }} l JOIN {{ source('lake', 'users') }} u ON l.s = u.s"""
ROWS_OF_THE_MODEL = """
import duckdb, pickle
answer = duckdb.connect("out.duckdb").execute("FROM cities")
names = [column[0] for column in answer.description]
pickle.dump([dict(zip(names, row)) for row in answer.fetchall()], open("rows", "wb"))
"""
REFUSED = "SELECT * FROM l.lake.overlap"
WRITES = ("CREATE TABLE l.lake.t (a int)", "DROP TABLE l.lake.logs", "CREATE SCHEMA l.other")


@dataclass(frozen=True)
class Answers:
    """The lake, and what the programs read of it."""

    lake: Lake
    of_duckdb: dict[str, Any]
    of_polars: dict[str, list[dict[str, Any]]]
    of_dbt: list[dict[str, Any]]


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Answers:
    python = duckdb_apart(
        tmp_path_factory.mktemp("python"), "polars", "pyiceberg==0.12.*", "pyarrow", "dbt-duckdb"
    )
    folder = tmp_path_factory.mktemp("catalog")
    lake = a_served_lake(folder / "lake")
    asked = [f'SELECT * FROM l.lake."{name}"' for name in TABLES]
    asked += [JOIN, REFUSED, *WRITES, "SELECT table_name FROM information_schema.tables"]

    def ask(program: str, questions: list[str]) -> Any:
        file = folder / "answers"
        words = [python, "-c", program, served.address, json.dumps(questions), str(file)]
        run(words)
        return pickle.loads(file.read_bytes())

    with serving_catalog(lake.store.uri) as served:
        built = built_by_dbt(python, folder / "dbt", served.address)
        return Answers(lake, ask(BY_DUCKDB, asked), ask(BY_POLARS, list(TABLES)), built)


def run(words: list[str], **how: Any) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=INSTALL_SECONDS, **how)
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]


def built_by_dbt(python: str, folder: Path, address: str) -> list[dict[str, Any]]:
    """The rows of a model that dbt builds, by the profile and the sources of docs/catalog.md.

    DuckDB would fetch its extensions; here they are copied to where it looks for them.
    """
    profile, sources = re.findall(r"^```yaml\n(.*?)^```", CATALOG_PAGE.read_text(), re.DOTALL | re.MULTILINE)
    (folder / "models").mkdir(parents=True)
    where = f"config_options: {{extension_directory: {folder / 'extensions'}}}\n      attach:"
    profile = profile.replace("http://127.0.0.1:8181", address).replace("attach:", where)
    (folder / "profiles.yml").write_text(profile)
    (folder / "models" / "sources.yml").write_text(sources)
    (folder / "models" / "cities.sql").write_text(MODEL)
    (folder / "dbt_project.yml").write_text("name: cities\nversion: '1.0'\nprofile: lake\n")
    run([python, "-c", COPY_EXTENSIONS, str(folder / "extensions")])
    environ = {**os.environ, "DBT_SEND_ANONYMOUS_USAGE_STATS": "false"}
    dbt = Path(python).with_name("dbt")
    run([str(dbt), "run", "--profiles-dir", "."], cwd=folder, env=environ)
    run([python, "-c", ROWS_OF_THE_MODEL], cwd=folder)
    return list(pickle.loads((folder / "rows").read_bytes()))


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


def test_duckdb_and_dbt_join_two_pools(answers: Answers) -> None:
    assert read_as(answers.of_duckdb[JOIN]) == joined(answers.lake)
    assert read_as(answers.of_dbt) == joined(answers.lake)


def test_duckdb_lists_all_pools_and_shows_what_the_lake_says(answers: Answers) -> None:
    listed = {
        row["table_name"] for row in answers.of_duckdb["SELECT table_name FROM information_schema.tables"]
    }
    assert {"logs", "types", "users", "overlap", "a*..%2Fü.<b>"} <= listed
    assert "lake compact overlap --strategy full" in answers.of_duckdb[REFUSED]


@pytest.mark.parametrize("sql", WRITES)
def test_duckdb_cannot_write(answers: Answers, sql: str) -> None:
    assert "this catalog is read-only" in str(answers.of_duckdb[sql])
