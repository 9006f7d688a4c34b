"""What is in the wheel and in the source distribution, and what they say of themselves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from tests.support.repository import DAGS, ROOT
from tests.support.wheel import Built, build, contents

pytestmark = pytest.mark.slow

PACKAGES = ("airflow_lake", "lake_core", "log_lake", "pyspark_lake", "spark_apps")
CORE = {
    "argcomplete", "datafusion", "duckdb", "fastavro", "fsspec", "lz4", "msgspec", "numpy", "pyarrow", "pyorc",
    "pyyaml", "rich", "rpds-py", "sqlglot", "xxhash",
}  # fmt: skip
EXTRAS = {
    "s3": {"s3fs"},
    "gcs": {"gcsfs"},
    "locks": {"psycopg"},
    "spark": {"pyspark", "pandas"},
    "iceberg": {"pyiceberg"},
    "ui": {"fastapi", "uvicorn"},
    "serve": {"uvicorn", "pyiceberg", "prometheus-client"},
    "otel": {"opentelemetry-api"},
    "kafka": {"confluent-kafka"},
    "dlt": {"dlt"},
    "airflow": {"apache-airflow", "apache-airflow-providers-standard", "pyspark", "pandas"},
    "airflow-spark": {
        "apache-airflow",
        "apache-airflow-providers-standard",
        "apache-airflow-providers-apache-spark",
        "pyspark",
        "pyspark-client",
        "pandas",
    },
}
LOAD = """
import json, sys
from airflow.dag_processing.dagbag import DagBag
bag = DagBag(dag_folder=sys.argv[1])
import airflow_lake
print("LOADED " + json.dumps([bag.import_errors, sorted(bag.dags), airflow_lake.__file__]))
"""


def of_the_project(*folders: str) -> set[str]:
    """The files of folders of the project, but for those that Python leaves behind."""
    return {
        str(path.relative_to(ROOT))
        for folder in folders
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and path.parent.name != "__pycache__"
    }


def test_the_wheel_holds_the_four_packages_and_nothing_else(built: Built) -> None:
    info = f"log_lake-{built.metadata['Version']}.dist-info"
    files = set(contents(built.wheel))
    assert {name.partition("/")[0] for name in files} == {*PACKAGES, info}
    dags = {f"airflow_lake/{name}" for name in of_the_project("dags")}
    assert {name for name in files if not name.startswith(info)} == of_the_project(*PACKAGES) | dags


def test_the_wheel_built_from_the_source_distribution_is_the_same(built: Built, tmp_path: Path) -> None:
    with tarfile.open(built.sdist) as files:
        safely: Any = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # Python 3.11.2 has none
        files.extractall(tmp_path, **safely)
    (source,) = tmp_path.iterdir()
    assert {path.name for path in source.iterdir()} >= {"LICENSE", "README.md", "pyproject.toml", "lake_core"}
    assert not {path.name for path in source.iterdir()} & {"local", "tests", "benchmarks", "docs", "plugins"}
    assert contents(build(source, tmp_path / "again").wheel) == contents(built.wheel)


def test_the_metadata_says_what_the_project_says(built: Built) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    said = built.metadata
    assert (said["Name"], said["Version"]) == ("log-lake", project["version"])
    assert (said["License-Expression"], said["License-File"]) == ("Apache-2.0", "LICENSE")
    assert said["Requires-Python"] == ">=3.11"
    assert str(said.get_payload()).startswith("# log-lake")


def test_airflow_finds_the_provider_and_the_view_in_the_wheel(built: Built) -> None:
    with zipfile.ZipFile(built.wheel) as files:
        info = f"log_lake-{built.metadata['Version']}.dist-info"
        text = files.read(f"{info}/entry_points.txt").decode()
    lines = text.split("\n")
    assert lines[lines.index("[airflow.plugins]") + 1] == "lake_view = airflow_lake.view.plugin:LakeView"
    assert "provider_info = airflow_lake.provider:get_provider_info" in text


def test_the_wheel_carries_its_licence_and_its_types(built: Built) -> None:
    files = contents(built.wheel)
    licence = files[f"log_lake-{built.metadata['Version']}.dist-info/licenses/LICENSE"]
    assert licence == (ROOT / "LICENSE").read_bytes()
    assert b"Apache License" in licence
    assert "lake_core/py.typed" in files


def test_without_extras_nothing_is_asked_for_that_local_files_do_not_need(built: Built) -> None:
    asked = [Requirement(text) for text in built.metadata.get_all("Requires-Dist") or []]
    assert {one.name for one in asked if one.marker is None} == CORE
    found = {
        extra: {one.name for one in asked if one.marker is not None and one.marker.evaluate({"extra": extra})}
        for extra in built.metadata.get_all("Provides-Extra") or []
    }
    assert found == {**EXTRAS, "all": set().union(*EXTRAS.values())}


@pytest.mark.airflow
def test_an_airflow_finds_the_agents_by_the_two_lines_of_the_package(built: Built, tmp_path: Path) -> None:
    with zipfile.ZipFile(built.wheel) as files:
        files.extractall(tmp_path / "packages")
    import airflow_lake

    lines = [text.strip() for text in (airflow_lake.__doc__ or "").splitlines()]
    lines = [text for text in lines if text.startswith("from airflow_lake.dags import")]
    (tmp_path / "dags").mkdir()
    (tmp_path / "dags" / "lake.py").write_text("\n".join([*lines, ""]))
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "LAKE"))}
    done = subprocess.run(
        [sys.executable, "-c", LOAD, str(tmp_path / "dags")],
        env={
            **clean,
            "PYTHONPATH": str(tmp_path / "packages"),
            "AIRFLOW_HOME": str(tmp_path / "home"),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    lines = [text for text in done.stdout.splitlines() if text.startswith("LOADED ")]
    assert lines, done.stderr
    errors, dags, package = json.loads(lines[-1].removeprefix("LOADED "))
    assert errors == {}
    assert dags == [f"lake_{name}" for name in DAGS]
    assert Path(package).is_relative_to(tmp_path), "the package must be the wheel's, not the repository's"
