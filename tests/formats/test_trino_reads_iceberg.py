"""Published tables as Trino reads them, beside what the lake gives: all values of all cases.

With LAKE_TEST_TRINO=1, as in CI, Trino is installed (`tests.support.trino.installed`); otherwise the variable names
the folder of an unpacked `trino-server`, and without it these tests are skipped.  Trino needs a Java of its own:
the newest of the machine is taken.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from log_lake.lake import Lake
from log_lake.publish.run import publish_iceberg
from tests.support.apart import named_or_installed
from tests.support.iceberg import TYPES, a_local_pool
from tests.support.iceberg_cases import BEYOND_SPARK, CASES, Tables, numbers, publish_cases, read_as
from tests.support.served_catalog import TABLES, a_served_lake, expected, joined, serving_catalog
from tests.support.servers.s3 import BUCKET, REGION, moto, s3_client
from tests.support.trino.installed import installed
from tests.support.trino.server import SERVED, Trino, TrinoError, trino

pytest.importorskip("pyiceberg")
ASKED = os.environ.get("LAKE_TEST_TRINO", "")
pytestmark = pytest.mark.skipif(not ASKED, reason="LAKE_TEST_TRINO is not set")

ALL = {**CASES, **BEYOND_SPARK}
QUESTIONS = [(name, *pair) for name, case in ALL.items() for pair in ((None, None), *case.filters)]


@pytest.fixture(scope="module")
def program() -> Path:
    """The folder of Trino's server."""
    return named_or_installed(ASKED, installed)


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    with moto() as address:
        yield address


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """The lake behind the catalog."""
    return a_served_lake(tmp_path_factory.mktemp("served") / "lake")


@pytest.fixture(scope="module")
def server(
    program: Path, bucket: str, lake: Lake, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Trino]:
    of_buckets = {
        "fs.native-s3.enabled": "true",
        "s3.endpoint": bucket,
        "s3.region": REGION,
        "s3.path-style-access": "true",
        "s3.aws-access-key": "test",
        "s3.aws-secret-key": "test",
    }
    folder = tmp_path_factory.mktemp("trino") / "server"
    with (
        serving_catalog(lake.store.uri) as served,
        trino(program, folder, of_buckets, served=served.address) as server,
    ):
        yield server


@pytest.fixture(scope="module")
def tables(server: Trino, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    tables = publish_cases(tmp_path_factory.mktemp("tables"), ALL)
    for name, location in tables.locations.items():
        server.register(name, location)
    return tables


def of_trino(condition: str) -> str:
    """A condition of Spark in Trino's words."""
    return condition.replace("`", '"').replace("timestamp_ntz'", "timestamp '")


@pytest.mark.parametrize(("name", "of_spark", "of_lake"), QUESTIONS)
def test_trino_reads_what_the_lake_gives(
    server: Trino, tables: Tables, name: str, of_spark: str | None, of_lake: str | None
) -> None:
    rows = server.rows(f'SELECT * FROM "{name}" WHERE {of_trino(of_spark or "true")}')
    assert read_as(rows) == tables.expected(name, of_lake)


@pytest.mark.parametrize("name", ["deletes", "upsert", "published twice"])
def test_trino_counts_what_the_lake_gives(server: Trino, tables: Tables, name: str) -> None:
    [counted] = server.rows(f'SELECT count(*) AS records, min(k) AS low, max(k) AS high FROM "{name}"')
    keys = [k for t in tables.pools[name].at().scan(columns=["k"]) for k in t["k"].to_pylist()]
    assert counted == {"records": len(keys), "low": min(keys), "high": max(keys)}


def test_trino_filters_floats_that_became_doubles_if_it_ignores_statistics(
    server: Trino, tmp_path: Path
) -> None:
    single = pa.table({"k": [1, 2], "x": pa.array([0.1, -2.0], pa.float32())})
    pool = a_local_pool(tmp_path, single, {"k": [3, 4], "x": [7.25, -1e300]})
    server.register("widened", publish_iceberg(pool).location)
    rows = server.rows("SELECT * FROM widened WHERE x < 1", parquet_ignore_statistics="true")
    assert read_as(rows) == read_as(pool.at().to_table(where="x < 1").to_pylist())


def test_trino_reads_a_bucket(server: Trino, bucket: str) -> None:
    pool = Lake.create(f"s3://{BUCKET}/trino", options=s3_client(bucket)).create_pool("p", key="k")
    pool.branch().append(pa.table({"k": [1, 2, 3], **TYPES}))
    pool.branch().delete(where="k = 2")
    server.register("of a bucket", publish_iceberg(pool).location)
    rows = server.rows('SELECT * FROM "of a bucket"')
    assert read_as(rows) == read_as(pool.at().to_table().to_pylist())
    assert len(rows) == 2


def test_trino_sees_a_newer_table_after_it_is_registered_again(server: Trino, tmp_path: Path) -> None:
    pool = a_local_pool(tmp_path, numbers(0, 10, s="a"))
    location = publish_iceberg(pool).location
    server.register("again", location)
    pool.branch().append(pa.table(numbers(10, 15, s="b")))
    pool.branch().delete(where="k = 3")
    publish_iceberg(pool)
    assert len(server.rows("SELECT * FROM again")) == 10
    server.rows("CALL iceberg.system.unregister_table('lake', 'again')")
    server.register("again", location)
    assert read_as(server.rows("SELECT * FROM again")) == read_as(pool.at().to_table().to_pylist())


def test_a_table_that_trino_drops_leaves_the_pool_as_it_was(server: Trino, tmp_path: Path) -> None:
    pool = a_local_pool(tmp_path, numbers(0, 10, s="a"))
    location = publish_iceberg(pool).location
    server.register("dropped", location)
    server.rows("DROP TABLE dropped")
    assert not Path(location).exists()
    assert pool.at().to_table().num_rows == 10
    opened_anew = Lake.open(str(tmp_path / "lake")).pool("p")  # a store knows the folders that it has made
    assert publish_iceberg(opened_anew).outcome == "published"
    server.register("dropped", location)
    assert len(server.rows("SELECT * FROM dropped")) == 10


@pytest.mark.parametrize("name", TABLES)
def test_trino_reads_pools_by_name_from_the_catalog(server: Trino, lake: Lake, name: str) -> None:
    rows = server.rows(f'SELECT * FROM {SERVED}.lake."{name.replace("@", ":")}"')
    assert read_as(rows) == expected(lake, name)


def test_trino_joins_two_pools_of_the_catalog(server: Trino, lake: Lake) -> None:
    sql = "SELECT l.k, u.city FROM {0}.lake.logs l JOIN {0}.lake.users u ON l.s = u.s"
    assert read_as(server.rows(sql.format(SERVED))) == joined(lake)


def test_trino_lists_the_pools_of_the_catalog_and_writes_nothing(server: Trino, lake: Lake) -> None:
    tables = {row["Table"] for row in server.rows(f"SHOW TABLES FROM {SERVED}.lake")}
    assert tables >= {"logs", "types", "users", "overlap"}
    with pytest.raises(TrinoError, match="Failed to load table: overlap"):  # it keeps the reason for its log
        server.rows(f"SELECT * FROM {SERVED}.lake.overlap")
    for sql in ("CREATE TABLE {0}.lake.t (a int)", "DELETE FROM {0}.lake.logs", "DROP TABLE {0}.lake.logs"):
        with pytest.raises(TrinoError):
            server.rows(sql.format(SERVED))
    assert {row["Table"] for row in server.rows(f"SHOW TABLES FROM {SERVED}.lake")} == tables
    assert read_as(server.rows(f"SELECT * FROM {SERVED}.lake.logs")) == expected(lake, "logs")
