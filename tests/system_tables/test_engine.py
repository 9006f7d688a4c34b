"""SQL reads pools and nothing else: no file, no address, no extension, no variable of the program."""

from __future__ import annotations

import ast
import re
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from lake_core.errors import InvalidInput, LakeError
from log_lake.lake import Lake
from log_lake.system_tables import query
from log_lake.system_tables.engine import SqlLimits, connected
from log_lake.system_tables.statement import pools_read
from tests.support.repository import ROOT
from tests.support.watched import watched

CANARY = "canary-9d2e"

a_variable = pa.table({"s": [CANARY]})
"""A variable of the program; DuckDB would read it if a statement named it as a table."""

PARTS = [
    "read_csv('{file}')",
    "read_csv('{file}', header=true, delim='\x01', skip=1, strict_mode=false, quote='', escape='')",
    "read_csv_auto('{file}')",
    "read_text('{file}')",
    "read_text(['{file}'])",
    "read_blob('{folder}/*')",
    "read_json('{file}')",
    "read_json_objects('{file}')",
    "read_parquet('{file}')",
    "parquet_scan('{file}')",
    "parquet_schema('{file}')",
    "parquet_metadata('{file}')",
    "sniff_csv('{file}')",
    "glob('{folder}/*')",
    "'{file}'",
    "'file://{file}'",
    "'{folder}/*.csv'",
    '"{file}"',
    "query('FROM ''{file}''')",
    "query_table('{file}')",
    "query_table(['{file}'])",
    "json_execute_serialized_sql(json_serialize_sql('FROM ''{file}'''))",
    "(DESCRIBE '{file}')",
    "(SUMMARIZE '{file}')",
    "read_csv('http://127.0.0.1:{port}/x.csv')",
    "'http://127.0.0.1:{port}/x.parquet'",
    "read_text('s3://127.0.0.1:{port}/x')",
    "iceberg_scan('{folder}')",
    "sqlite_scan('{file}', 't')",
    "postgres_scan('host=127.0.0.1 port={port}', 'public', 't')",
    "delta_scan('{folder}')",
    "st_read('{file}')",
    "read_duckdb('{file}')",
    "query_table(['a_variable'])",
    "enable_logging('QueryLog', storage='file', storage_path='{folder}/log')",
    "enable_profiling(format='json', save_location='{folder}/profile')",
]

FORMS = [
    "SELECT COLUMNS('zzzz') FROM {}",
    "SELECT * FROM {}",
    "EXPLAIN SELECT COLUMNS('zzzz') FROM {}",
    "EXPLAIN ANALYZE SELECT * FROM {}",
    "EXPLAIN (FORMAT json) SELECT * FROM {}",
    "/* x */ explain -- y\n SELECT (SELECT count(*) FROM {})",
    "DESCRIBE SELECT * FROM {}",
    "SUMMARIZE SELECT * FROM {}",
    'WITH w AS MATERIALIZED (SELECT * FROM {}) SELECT * FROM w, "p"',
    'SELECT k FROM "p" WHERE EXISTS (FROM {})',
]

STATEMENTS = [
    "COPY (SELECT 1) TO '{folder}/out'",
    "COPY \"p\" FROM '{file}'",
    "EXPLAIN COPY (SELECT 1) TO '{folder}/out'",
    "EXPLAIN ANALYZE COPY (SELECT 1) TO '{folder}/out'",
    "EXPLAIN ANALYZE CREATE TABLE t AS SELECT * FROM '{file}'",
    "EXPLAIN (ANALYZE) INSERT INTO t(a) SELECT 1",
    "EXPLAIN ANALYZE INSERT INTO t(a) SELECT * FROM '{file}'",
    "EXPLAIN PREPARE v AS SELECT 1",
    "EXPLAIN CALL enable_logging()",
    "EXPLAIN",
    "EXPLAIN SELECT 1; COPY (SELECT 1) TO '{folder}/out'",
    "DESCRIBE '{file}'",
    "SUMMARIZE '{file}'",
    "PRAGMA enable_profiling='json'",
    "PRAGMA import_database('{folder}')",
    "PRAGMA database_list",
    "ATTACH '{file}'",
    "ATTACH 'http://127.0.0.1:{port}/x.db'",
    "INSTALL httpfs",
    "FORCE INSTALL httpfs FROM 'http://127.0.0.1:{port}'",
    "LOAD '{file}'",
    "SET enable_external_access=true",
    "SET python_enable_replacements=true",
    "RESET lock_configuration",
    "SET VARIABLE a = 1",
    "EXPORT DATABASE '{folder}/out'",
    "IMPORT DATABASE '{folder}'",
    "CALL enable_logging()",
    "CREATE MACRO m() AS TABLE FROM '{file}'",
    "CREATE VIEW v AS FROM '{file}'",
    "CREATE TEMP TABLE t AS FROM '{file}'",
    "CREATE SECRET (TYPE s3, PROVIDER credential_chain)",
    "PREPARE v AS SELECT 1",
    "EXECUTE v",
    "USE x",
    "BEGIN",
    "CHECKPOINT",
    "VACUUM",
    "SELECT 1; SELECT 2",
    "SELECT getenv('HOME')",
    "SELECT $1",
    "SELECT * FROM a_variable",
    "SELECT * FROM arrow_scan(1::pointer, 2::pointer, 3::pointer)",
]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    made = Lake.create(str(tmp_path_factory.mktemp("engine") / "lake"))
    made.create_pool("p", key="k").branch().append(pa.table({"k": [1, 2]}))
    return made


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("outside")
    (made / "secret.csv").write_text(f"a,b\n{CANARY},{CANARY}\n{CANARY},{CANARY}\n")
    return made


@pytest.fixture(scope="module")
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as made:
        made.setblocking(False)
        yield made


@pytest.mark.parametrize("sql", [form.replace("{}", p) for p in PARTS for form in FORMS] + STATEMENTS)
def test_a_hostile_statement_reads_nothing_and_is_refused_or_harmless(
    lake: Lake, folder: Path, listener: socket.socket, sql: str
) -> None:
    for name, value in (
        ("file", folder / "secret.csv"),
        ("folder", folder),
        ("port", listener.getsockname()[1]),
    ):
        sql = sql.replace("{" + name + "}", str(value))
    with watched(folder) as looks:
        pools_read(sql)
        try:
            answer = str(query(lake, sql).read_all().to_pylist())
        except LakeError as error:
            message = str(error)
            _, _, rest = message.partition("\n")
            assert not rest or re.fullmatch(r"LINE \d+: .*\n *\^+", rest)
            answer = message.replace(sql, "")
        assert looks.looks() == set()
    assert CANARY not in answer
    with pytest.raises(BlockingIOError):
        listener.accept()


@pytest.mark.parametrize("sql", STATEMENTS)
def test_what_is_no_select_is_refused(lake: Lake, sql: str) -> None:
    with pytest.raises(LakeError):
        query(lake, sql).read_all()


@pytest.mark.parametrize(
    "sql",
    [
        'EXPLAIN SELECT k FROM "p"',
        'explain analyze select k from "p" join "p@1" using (k)',
        '-- é\nEXPLAIN (FORMAT json) SELECT k FROM "p"',
        'EXPLAIN (SELECT k FROM "p")',
        'EXPLAIN ANALYZE (FORMAT json) ((SELECT k FROM "p") UNION (SELECT 1));',
        'EXPLAIN WITH w AS (FROM "p") FROM w',
        'EXPLAIN DESCRIBE "p"',
    ],
)
def test_an_explanation_of_a_select_is_given(lake: Lake, sql: str) -> None:
    assert query(lake, sql).read_all().num_rows == 1
    assert ("p", "") in pools_read(sql)


def test_a_query_of_a_file_says_to_load_it(lake: Lake, folder: Path) -> None:
    with pytest.raises(
        InvalidInput,
        match=r"^query: SQL reads pools, and no files but .*; name the file so, or load it: Perm",
    ):
        query(lake, f"SELECT * FROM read_text('{folder}/secret.csv')")


def test_settings_cannot_be_changed_and_memory_threads_and_disk_are_bounded(tmp_path: Path) -> None:
    with connected(SqlLimits(memory="100MiB", threads=2)) as connection:
        said = dict(connection.sql("SELECT name, value FROM duckdb_settings()").fetchall())
        assert (said["memory_limit"], said["threads"]) == ("100.0 MiB", "2")
        folder = Path(said["temp_directory"])
        assert folder.parent == Path(tempfile.gettempdir())
        assert folder.stat().st_mode & 0o777 == 0o700
        rows = connection.sql("SELECT repeat('x', 500) || i AS a FROM range(1000000) t(i) ORDER BY a DESC")
        assert rows.limit(1, offset=999_999).fetchall() == [("x" * 500 + "0",)]
        with pytest.raises(duckdb.InvalidInputException, match="locked"):
            connection.execute("SET memory_limit = '1GB'")
    assert not folder.exists()


def test_a_query_works_without_a_folder_for_temporary_files(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere/at/all")
    assert query(lake, 'SELECT count(*) AS n FROM "p"').read_all().to_pylist() == [{"n": 2}]


def test_a_deep_statement_and_one_that_is_not_utf8_are_refused(lake: Lake) -> None:
    for sql in (
        "SELECT 1" + "+1" * 900,
        "SELECT 1" + "+1" * 20_000,
        "SELECT '\ud800'",
        "SELECT " + "(" * 5_000 + "1" + ")" * 5_000,
    ):
        with pytest.raises(InvalidInput):
            query(lake, sql).read_all()
        assert pools_read(sql) == []


HARMLESS = {"Error", "DuckDBPyConnection", "DuckDBPyRelation", "StatementType", "tokenize", "token_type"}
"""Names of DuckDB that make no connection; exceptions end in `Exception`."""


def connections(source: str) -> Iterator[tuple[int, str]]:
    """Lines and names of DuckDB that may make a connection, or use the default one."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in ("duckdb", "_duckdb"):
            yield node.lineno, "from"
        elif isinstance(node, ast.Import):
            yield from (
                (node.lineno, a.name) for a in node.names if a.name.startswith(("duckdb.", "_duckdb"))
            )
            yield from ((node.lineno, "as") for a in node.names if a.name == "duckdb" and a.asname)
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "duckdb":
            names = {node.attr} - HARMLESS
            yield from ((node.lineno, name) for name in names if not name.endswith("Exception"))


def test_one_module_makes_the_connections_to_duckdb() -> None:
    folders = (
        "lake_core",
        "log_lake",
        "spark_apps",
        "pyspark_lake",
        "airflow_lake",
        "plugins",
        "dags",
        "local",
    )
    found = {
        f"{path.relative_to(ROOT)}: {name}"
        for folder in folders
        for path in (ROOT / folder).rglob("*.py")
        for _, name in connections(path.read_text())
    }
    assert found == {"log_lake/system_tables/engine.py: connect"}


@pytest.mark.parametrize(
    "line",
    [
        "duckdb.connect()",
        "duckdb.sql('select 1')",
        "from duckdb import sql",
        "import duckdb as d",
        "import _duckdb",
    ],
)
def test_a_connection_is_found_however_it_is_made(line: str) -> None:
    assert list(connections(line))
