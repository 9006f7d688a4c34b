"""One application on every kind of Spark: submitted locally, on a cluster, and over Spark Connect.

What connects is a process of its own, since a process has either a Spark of its own or a connection to one.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from local.services import Services
from tests.spark.conftest import Landing
from tests.support.repository import ROOT
from tests.support.spark.answers import assert_same
from tests.support.spark.door import Door
from tests.support.spark.queries import records
from tests.support.spark.standalone import cluster
from tests.support.spark.submitted import LONGEST, submit

pytestmark = pytest.mark.spark

RECORDS = [{"k": n * 37 % 500, "n": n, "x": {"y": [n]}, "mixed": n if n % 2 else str(n)} for n in range(500)]


@pytest.fixture
def landed(landing: Landing) -> Landing:
    """A pool, and files whose records come to 500."""
    landing.pool()
    for i in range(5):
        landing.file(f"{i}.ndjson", RECORDS[i * 100 : (i + 1) * 100])
    return landing


def words(landing: Landing, *more: str) -> list[str]:
    """The application's command line."""
    return ["--lake", landing.uri, "--pool", "p", *more, str(landing.folder / "*")]


def test_submitted_locally_it_reports_as_lake_load_does_and_once_for_a_token(
    landed: Landing, spark_environ: dict[str, str], tmp_path: Path
) -> None:
    arguments = words(landed, "--token", "t", "--message", "by hand")
    with submit(arguments, environ=spark_environ, folder=tmp_path) as submitted:
        status, first, said = submitted.outcome()
    assert (status, first and first["records"], first and first["version"]) == (0, 500, 1), said
    with submit(arguments, environ=spark_environ, folder=tmp_path) as submitted:
        status, again, said = submitted.outcome()
    assert (status, again) == (0, {**(first or {}), "repeated": True}), said
    assert landed.keys("p") == list(range(500))
    assert [transaction.message for _, transaction in landed.lake.pool("p").log()] == ["by hand"]


def test_submitted_with_bad_input_it_says_one_line_and_commits_nothing(
    landed: Landing, spark_environ: dict[str, str], tmp_path: Path
) -> None:
    bad = landed.file("9.ndjson", '{"k": 1}\n{"k": 2]\n')
    with submit(words(landed), environ=spark_environ, folder=tmp_path) as submitted:
        status, result, said = submitted.outcome()
    assert (status, result) == (9, None)
    assert f"ingest: {bad}, line 2" in said, said
    assert "Traceback" not in said
    assert landed.transactions("p") == 0


def test_on_a_standalone_cluster_the_application_ingests_and_the_data_source_reads_writes_and_streams(
    landed: Landing, spark_environ: dict[str, str], tmp_path: Path
) -> None:
    around = roundtrip_words(landed, tmp_path)
    application = str(ROOT / "tests/support/spark/roundtrip.py")
    with cluster(spark_environ, tmp_path) as master:
        with submit(words(landed), environ=spark_environ, folder=tmp_path, master=master) as submitted:
            status, result, said = submitted.outcome()
        assert (status, result and result["records"]) == (0, 500), said
        assert landed.keys("p") == list(range(500))
        with submit(
            around, environ=spark_environ, folder=tmp_path, master=master, application=application
        ) as submitted:
            status, _, said = submitted.outcome()
        assert status == 0, said
    assert_went_around(landed, tmp_path)


def roundtrip_words(landing: Landing, folder: Path) -> list[str]:
    """For tests.support.spark.roundtrip: from the pool `p` to two new ones."""
    landing.pool("copy")
    landing.pool("streamed")
    return [landing.uri, "p", "copy", "streamed", str(folder / "checkpoint"), str(folder / "answer.arrow")]


def assert_went_around(landing: Landing, folder: Path) -> None:
    """What was read, written and streamed is what the pool holds; what was written twice is there once."""
    expected = landing.lake.pool("p").at().to_table()
    with pa.ipc.open_file(folder / "answer.arrow") as file:
        assert_same(file.read_all(), expected)
    for pool in ("copy", "streamed"):
        table = landing.lake.pool(pool).at().to_table()
        assert_same(pa.table(table.columns, names=table.schema.names), expected)
        assert landing.transactions(pool) == 1


@pytest.fixture(scope="module")
def connect(spark_environ: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    """A Spark Connect server of its own."""
    with Services(run_dir=tmp_path_factory.mktemp("connect"), airflow=False, silent=True) as services:
        yield services


def connected(
    services: Services, environ: dict[str, str], module: str, *arguments: str
) -> subprocess.CompletedProcess[str]:
    """The module run as a program that finds the server through its environment."""
    return subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=ROOT,
        env={**environ, "LAKE_SPARK_REMOTE": services.spark_remote},
        capture_output=True,
        text=True,
        timeout=LONGEST,
        check=False,
    )


def test_on_spark_connect_the_same_body_ingests_and_the_same_source_reads_writes_and_streams(
    landed: Landing, connect: Services, spark_environ: dict[str, str], tmp_path: Path
) -> None:
    arguments = words(landed, "--token", "t")
    done = connected(connect, spark_environ, "spark_apps.ingest", *arguments)
    assert done.returncode == 0, done.stderr
    first = json.loads(done.stdout)
    assert (first["records"], first["repeated"]) == (500, False)
    again = connected(connect, spark_environ, "spark_apps.ingest", *arguments)
    assert json.loads(again.stdout) == {**first, "repeated": True}
    assert landed.keys("p") == list(range(500))
    around = roundtrip_words(landed, tmp_path)
    done = connected(connect, spark_environ, "tests.support.spark.roundtrip", *around)
    assert done.returncode == 0, done.stderr
    assert_went_around(landed, tmp_path)


def test_on_spark_connect_frames_are_written_merged_and_deleted_and_changes_are_read(
    landing: Landing, connect: Services, spark_environ: dict[str, str]
) -> None:
    for kind in ("append", "upsert"):
        landing.lake.create_pool(kind, key="k", kind=kind)
    done = connected(connect, spark_environ, "tests.support.spark.frames", landing.uri)
    assert done.returncode == 0, done.stderr
    answers = json.loads(done.stdout)
    for pool in ("append", "upsert"):
        assert landing.lake.pool(pool).at().to_table(columns=["k"])["k"].to_pylist() == [0, 2, 3, 50]
        assert landing.transactions(pool) == 4
        answer = answers[pool]
        assert answer["written"] == [1, 5, False]
        assert answer["again"] == [1, 5, True]
        assert answer["got"] == [[2, "new"]]
        assert answer["changes"]["insert"] >= 7
        # a version whose objects a vacuum may take, the same with a lease, and the newest one
        assert answer["ways"] == [False, True, True]
    assert answers["append"]["summary"] == [5, 0, 4]


def test_on_spark_connect_random_queries_over_one_frame_have_the_answers_of_duckdb(
    landing: Landing, connect: Services, spark_environ: dict[str, str]
) -> None:
    table = records(200, seed=5).sort_by("k")
    branch = landing.lake.create_pool("p", key="k", kind="upsert").branch()
    for first in (0, 50, 100, 150, 120):  # the last load overlaps two others
        branch.append(table.slice(first, 50))
    done = connected(connect, spark_environ, "tests.support.spark.queries", landing.uri, "p", "3", "10")
    assert (done.returncode, done.stdout) == (0, "2 times 10 agree\n"), done.stderr


def test_a_connect_server_that_goes_away_is_said_and_soon(
    landed: Landing, connect: Services, spark_environ: dict[str, str]
) -> None:
    """The application speaks to the server through a door that the test shuts in the middle."""
    with Door(connect.spark_remote) as door:
        gone = [
            sys.executable,
            "-m",
            "tests.support.spark.gone",
            landed.uri,
            "p",
            *(str(f) for f in landed.folder.iterdir()),
        ]
        process = subprocess.Popen(
            gone,
            cwd=ROOT,
            env={**spark_environ, "LAKE_SPARK_REMOTE": door.remote},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "connected\n"
        door.shut()
        _, said = process.communicate("go on\n", timeout=LONGEST)
    address = door.remote.partition(";")[0].rstrip("/")
    assert process.returncode == 7, said
    assert f"Spark at {address} (LAKE_SPARK_REMOTE) went away: " in said
    assert landed.transactions("p") == 0


def test_on_spark_connect_a_bad_record_is_said_as_everywhere(
    landed: Landing, connect: Services, spark_environ: dict[str, str]
) -> None:
    bad = landed.file("9.ndjson", '{"k": 1}\noops\n')
    done = connected(connect, spark_environ, "spark_apps.ingest", *words(landed))
    assert (done.returncode, done.stdout) == (9, "")
    assert f"ingest: {bad}, line 2" in done.stderr
    assert landed.transactions("p") == 0
