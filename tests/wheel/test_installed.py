"""`pip install 'log-lake[s3]'` in an empty environment: `lake` works there, and says what is missing for more."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.servers.s3 import BUCKET, REGION, moto
from tests.support.wheel import Built, Environment

pytestmark = pytest.mark.slow

ABSENT = (
    "airflow",
    "boto3",
    "gcsfs",
    "google",
    "pandas",
    "psycopg",
    "pyspark",
    "pytest",
    "pytz",
    "local",
    "dags",
)
KEYS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_DEFAULT_REGION": REGION}


@pytest.fixture
def s3() -> Iterator[dict[str, str]]:
    """The variables that lead to moto's S3 server with one bucket."""
    with moto() as address:
        yield {**KEYS, "AWS_ENDPOINT_URL": address}


def test_the_environment_holds_nothing_but_what_the_extra_asks_for(with_s3: Environment) -> None:
    ask = "import json, sys; from importlib.util import find_spec; "
    ask += "print(json.dumps([name for name in sys.argv[1:] if find_spec(name)]))"
    assert json.loads(with_s3.run("-c", ask, *ABSENT, "s3fs").stdout) == ["s3fs"]


def test_the_command_says_its_version(with_s3: Environment, built: Built) -> None:
    assert with_s3.lake("--version").stdout == f"lake {built.metadata['Version']}\n"
    assert "COMMAND" in with_s3.lake("--help").stdout


@pytest.fixture(scope="module")
def folder(with_s3: Environment, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake on local files, with the pool `logs`."""
    folder = tmp_path_factory.mktemp("lake")
    done(with_s3.lake("init", LAKE=str(folder)))
    done(with_s3.lake("create", "logs", "--key", "ts", LAKE=str(folder)))
    return folder


def done(command: subprocess.CompletedProcess[str]) -> list[Any]:
    """What a command printed; fails the test if the command failed.  A line of JSON is a value."""
    assert (command.returncode, "Traceback" in command.stderr) == (0, False), command.stderr
    return [json.loads(line) for line in command.stdout.splitlines() if line.startswith("{")]


def land(folder: Path, name: str, *keys: int) -> str:
    """A file of records with these keys."""
    file = folder / f"{name}.ndjson"
    file.write_text("".join(json.dumps({"ts": key, "from": name, "share": key / 4}) + "\n" for key in keys))
    return str(file)


def test_records_come_back_sorted_queried_compacted_and_deleted(
    with_s3: Environment, folder: Path, tmp_path: Path
) -> None:
    def lake(*words: str) -> list[Any]:
        return done(with_s3.lake(*words, LAKE=str(folder)))

    lake("load", "logs", land(tmp_path, "a", 3, 1))
    lake("load", "logs", land(tmp_path, "b", 4, 2))
    assert [record["ts"] for record in lake("scan", "logs")] == [1, 2, 3, 4]
    lake("compact", "logs", "--strategy", "full")
    lake("delete", "logs", "--where", "share > 0.6 and \"from\" = 'a'")
    assert lake("query", 'SELECT count(*) AS n, max("from") AS last FROM "logs"') == [{"n": 3, "last": "b"}]


def test_pools_are_made_as_a_policy_file_says(with_s3: Environment, folder: Path, tmp_path: Path) -> None:
    other = {"LAKE": str(tmp_path / "other")}
    done(with_s3.lake("init", **other))
    exported = with_s3.lake("export", LAKE=str(folder)).stdout
    (tmp_path / "pools.yaml").write_text(exported)
    done(with_s3.lake("apply", str(tmp_path / "pools.yaml"), **other))
    assert with_s3.lake("export", **other).stdout == exported
    assert exported.startswith("pools:\n  logs:\n    key: ts\n")


def test_a_lake_in_a_bucket_is_made_loaded_and_read(
    with_s3: Environment, s3: dict[str, str], tmp_path: Path
) -> None:
    environ = {"LAKE": f"s3://{BUCKET}/lake", **s3}
    done(with_s3.lake("init", **environ))
    done(with_s3.lake("create", "logs", "--key", "ts", **environ))
    done(with_s3.lake("load", "logs", land(tmp_path, "a", 3, 1), **environ))
    assert [record["ts"] for record in done(with_s3.lake("scan", "logs", **environ))] == [1, 3]


@pytest.mark.parametrize(
    ("extra", "words", "lock"),
    [
        ("gcs", ["lake", "ls", "--lake", "gs://bucket/lake"], ""),
        ("gcs", ["lake", "load", "logs", "gs://bucket/file.ndjson"], ""),
        ("locks", ["lake", "ls"], "postgresql://user@host/database"),
        ("spark", ["-m", "spark_apps.fsck", "--lake", "LAKE", "logs"], ""),
    ],
)
def test_what_needs_another_extra_says_which_in_one_line(
    with_s3: Environment, folder: Path, extra: str, words: list[str], lock: str
) -> None:
    environ = {"LAKE": str(folder), "LAKE_LOCK": lock}
    given = [str(folder) if word == "LAKE" else word for word in words]
    if given[0] == "lake":
        failed = with_s3.lake(*given[1:], **environ)
    else:
        failed = with_s3.run(*given, **environ)
    assert failed.returncode == 9
    assert failed.stderr.endswith(f"; run: pip install 'log-lake[{extra}]'\n")
    assert failed.stderr.count("\n") == 1
