"""Runs `lake serve`, as a person starts it, with a lake for the programs that attach its catalog."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa

from log_lake.lake import Lake
from tests.support.iceberg import TYPES
from tests.support.iceberg_cases import read_as
from tests.support.repository import ROOT

TABLES = {
    name: name.partition("@")[::2]
    for name in ("logs", "logs@v1", "logs@dev", "types", "times", "edited", "edited@v1", "a*..%2Fü.<b>")
}
"""Tables of `a_served_lake`: for each, the pool, and its branch or tag."""


def a_served_lake(folder: Path) -> Lake:
    """Makes a lake with pools of all types, a tag, a branch, edited fields, a strange name, and a pool that Iceberg
    cannot express."""
    lake = Lake.create(str(folder))
    logs = lake.create_pool("logs", key="k")
    logs.branch().append(pa.table({"k": range(1_000), "s": [f"s{k % 7}" for k in range(1_000)]}))
    logs.tag("v1")
    logs.branch().append(pa.table({"k": range(500, 1_500), "s": [f"s{k % 5}" for k in range(1_000)]}))
    logs.branch().delete(where="s = 's3' and k < 1200")
    logs.create_branch("dev")
    logs.branch("dev").delete(where="k >= 100")
    for name, records in (
        ("types", {"k": [1, 2, 3], **{name: TYPES[name] for name in TYPES if name != "time"}}),
        ("times", {"k": [1, 2, 3], "time": TYPES["time"]}),  # which Spark does not know
        ("a*..%2Fü.<b>", {"k": [7]}),
        ("users", {"s": ["s1", "s2"], "city": ["Zürich", None]}),
    ):
        lake.create_pool(name, key="s" if name == "users" else "k").branch().append(pa.table(records))
    edited = lake.create_pool("edited", key="k")
    edited.branch().append(pa.table({"k": [1, 2], "old": ["x", "y"], "gone": [1, 2]}))
    edited.tag("v1")
    edited.rename_field(old="old", new="new")
    edited.drop_field("gone")
    edited.branch().append(pa.table({"k": [3], "new": ["z"], "gone": ["back"], "old": [7]}))
    overlap = lake.create_pool("overlap", key="k", kind="upsert")
    for _ in range(2):
        overlap.branch().append(pa.table({"k": [1]}))
    return lake


def expected(lake: Lake, name: str) -> list[str]:
    """The rows that the lake returns for one of `TABLES`."""
    pool, ref = TABLES[name]
    return read_as(lake.pool(pool).at(ref or "main").to_table().to_pylist())


def joined(lake: Lake) -> list[str]:
    """The rows that the lake returns for the pools `logs` and `users` of `a_served_lake`, joined by `s`: the key
    and the city."""
    cities = {row["s"]: row["city"] for row in lake.pool("users").at().to_table().to_pylist()}
    rows = lake.pool("logs").at().to_table().to_pylist()
    return read_as({"k": row["k"], "city": cities[row["s"]]} for row in rows if row["s"] in cities)


@dataclass(frozen=True)
class ServedCatalog:
    """A running `lake serve`: its address and its process."""

    address: str
    process: subprocess.Popen[str]

    def ask(self, path: str, *, method: str = "GET", **headers: str) -> tuple[int, bytes]:
        """Sends a request, and returns the status and the body of the answer. The path is sent unchanged; the host
        is right unless it is given."""
        place = urlsplit(self.address).netloc
        connection = http.client.HTTPConnection(place, timeout=600)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in {"Host": place, **headers}.items():
                connection.putheader(name.replace("_", "-"), value)
            connection.endheaders()
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()


@contextmanager
def serving_catalog(lake: str, *more: str, **environ: str) -> Iterator[ServedCatalog]:
    """Runs `lake serve` on a free port while the block runs, which begins with its first answer. `more` are
    arguments of the command."""
    words = [
        sys.executable,
        "-m",
        "log_lake.cli.main",
        "serve",
        "--lake",
        lake,
        "--port",
        "0",
        "--json",
        *more,
    ]
    process = subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environ},
    )
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        yield ServedCatalog(json.loads(process.stdout.readline())["address"], process)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait(600)
        process.stdout.close()
        process.stderr.close()
