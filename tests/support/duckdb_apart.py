"""Installs a DuckDB with its extension for Iceberg, which has no release for the project's DuckDB. Both come from
PyPI and run in another process."""

from __future__ import annotations

import subprocess
import venv
from pathlib import Path

import pytest

from tests.support.apart import uv

VERSION = "1.5.5"
EXTENSIONS = ("httpfs", "avro", "iceberg")
PACKAGES = (
    f"duckdb=={VERSION}",
    *(f"duckdb-extension-{name}=={VERSION}" for name in EXTENSIONS),
    "pytz",
)
INSTALL_SECONDS = 300
COPY_EXTENSIONS = f"""
import duckdb, shutil, sys
from importlib.util import find_spec
from pathlib import Path

platform = duckdb.sql("PRAGMA platform").fetchone()[0]
there = Path(sys.argv[1]) / "v{VERSION}" / platform
there.mkdir(parents=True)
for name in {EXTENSIONS!r}:
    package = Path(find_spec("duckdb_extension_" + name).origin).parent
    shutil.copy(package / "extensions" / "v{VERSION}" / f"{{name}}.duckdb_extension", there)
"""
"""A program that copies the extensions to a folder that DuckDB accepts as its `extension_directory`."""
LOAD = f"""
import json, pickle, sys
from importlib.util import find_spec
from pathlib import Path

import duckdb

connection = duckdb.connect()
for name in {EXTENSIONS!r}:
    folder = Path(find_spec("duckdb_extension_" + name).origin).parent
    connection.execute(f"LOAD '{{folder}}/extensions/v{VERSION}/{{name}}.duckdb_extension'")
connection.execute("SET TimeZone = 'UTC'")


def rows_of(sql):
    answer = connection.execute(sql)
    names = [column[0] for column in answer.description]
    is_map = [str(column[1]).startswith("MAP(") for column in answer.description]
    rows = ([list(v.items()) if m and v else v for m, v in zip(is_map, row)] for row in answer.fetchall())
    return [dict(zip(names, row)) for row in rows]
"""
"""The beginning of a program for that process: it opens a connection with the extensions, and defines `rows_of`,
which returns plain rows."""


def duckdb_apart(folder: Path, *more: str) -> str:
    """Returns a Python that has DuckDB, its extensions and more packages, in a folder. Skips the test if it cannot
    be installed.

    On a busy machine pip needed more than `INSTALL_SECONDS` for what uv installs in 15 s.
    """
    venv.create(folder)
    python = str(folder / "bin" / "python")
    into = ["pip", "install", "--quiet", "--no-config", "--python", python, "--only-binary", ":all:"]
    words = [uv(), *into, *PACKAGES, *more]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=INSTALL_SECONDS)
    if done.returncode:
        pytest.skip(f"DuckDB's extension for Iceberg cannot be installed: {done.stderr[-300:]}")
    return python
