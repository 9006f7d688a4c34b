"""Runs Trino on loopback with Iceberg's connector alone, and speaks its client protocol: a POST, then GETs.

The folder is an unpacked `trino-server`, from which `lib` and `plugin/iceberg` are used. One catalog,
`iceberg`, keeps its list of tables in files. Tables are in folders of this machine, or in buckets if the
settings name a server. Trino runs on the newest Java of this machine.
"""

from __future__ import annotations

import contextlib
import glob
import json
import os
import shutil
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from local.java import ask, parse
from tests.support.repository import ROOT
from tests.support.servers.daemons import daemon, free_port
from tests.support.trino.values import plain

CATALOG, SCHEMA, SERVED = "iceberg", "lake", "served"
START = ROOT / "tests" / "support" / "trino" / "Start.java"
JAVA = 25
"""The least version of Java that Trino in the version of `pom.xml` needs."""
START_SECONDS = 600.0
ANSWER_SECONDS = 600.0
JVM = ("-Xmx2g", "--add-modules=jdk.incubator.vector")


class TrinoError(Exception):
    """Raised if a query failed; the message is Trino's."""


@dataclass(frozen=True)
class Trino:
    """A running server."""

    address: str

    def rows(self, sql: str, **session: str) -> list[dict[str, Any]]:
        """Returns the rows of an answer as plain values; `session` has settings of the connector. Raises
        TrinoError."""
        answer, rows = _ask(f"{self.address}/v1/statement", sql, session), []
        while True:  # until the answer ends, or a request gets no answer in time
            if "error" in answer:
                raise TrinoError(f"{answer['error']['message']}, asked {sql!r}")
            for row in answer.get("data") or ():
                columns = zip(answer["columns"], row, strict=True)
                rows.append(
                    {column["name"]: plain(value, column["typeSignature"]) for column, value in columns}
                )
            if "nextUri" not in answer:
                return rows
            answer = _ask(answer["nextUri"])

    def register(self, table: str, location: str) -> None:
        """Makes a table of the schema from the newest metadata at a location."""
        self.rows(f"CALL {CATALOG}.system.register_table('{SCHEMA}', '{table}', '{location}')")


@contextlib.contextmanager
def trino(
    program: Path,
    folder: Path,
    catalog: Mapping[str, str] | None = None,
    *,
    served: str = "",
) -> Iterator[Trino]:
    """Runs a server with an empty schema while the block runs; `catalog` has more settings of the catalog.

    `served`: the address of an Iceberg catalog, which Trino knows as `SERVED`.
    """
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    (folder / "plugins").mkdir(parents=True)
    (folder / "plugins" / "iceberg").symlink_to(program / "plugin" / "iceberg")
    _write(folder / "log.properties", {"": "WARN"})
    _write(
        folder / "config.properties",
        {
            "coordinator": "true",
            "node-scheduler.include-coordinator": "true",
            "node.environment": "test",
            "node.bind-ip": "127.0.0.1",
            "node.internal-address": "127.0.0.1",
            "http-server.http.port": str(port),
            "http-server.log.enabled": "false",
            "discovery.uri": address,
            "plugin.dir": str(folder / "plugins"),
            "catalog.config-dir": str(folder / "catalogs"),
        },
    )
    (folder / "catalogs").mkdir()
    (folder / "tables").mkdir()
    _write(
        folder / "catalogs" / f"{CATALOG}.properties",
        {
            "connector.name": "iceberg",
            "iceberg.catalog.type": "TESTING_FILE_METASTORE",
            "hive.metastore.catalog.dir": f"file://{folder / 'tables'}",
            "iceberg.register-table-procedure.enabled": "true",
            "fs.hadoop.enabled": "true",  # only Hadoop knows paths without a scheme
            **(catalog or {}),
        },
    )
    if served:
        _write(
            folder / "catalogs" / f"{SERVED}.properties",
            {
                "connector.name": "iceberg",
                "iceberg.catalog.type": "rest",
                "iceberg.rest-catalog.uri": served,
                "iceberg.rest-catalog.case-insensitive-name-matching": "true",
                "fs.hadoop.enabled": "true",
            },
        )
    with daemon(
        *(newest_java(), *JVM, "-cp", f"{program}/lib/*"),
        *(f"-Dconfig={folder}/config.properties", f"-Dlog.levels-file={folder}/log.properties"),
        *(START, version_of(program)),
        log=folder / "log",
        ready=lambda: _is_up(address),
        within=START_SECONDS,
    ):
        server = Trino(address)
        server.rows(f"CREATE SCHEMA {CATALOG}.{SCHEMA}")
        yield server


def version_of(program: Path) -> str:
    """The version of an unpacked server."""
    (jar,) = (program / "lib").glob("*trino-main-*.jar")
    return jar.stem.rpartition("-")[2]


def newest_java() -> Path:
    """Returns the `java` of the newest Java on this machine (JAVA_HOME, PATH, /usr/lib/jvm); skips the test if all
    are too old."""
    homes = [os.environ.get("JAVA_HOME", ""), *glob.glob("/usr/lib/jvm/*")]
    candidates = [Path(home) / "bin" / "java" for home in homes if home]
    candidates += [Path(java) for java in [shutil.which("java")] if java]
    majors = {java: parsed[0] for java in candidates if (parsed := parse(ask(java))) is not None}
    if max(majors.values(), default=0) < JAVA:
        pytest.skip(f"Trino needs Java {JAVA}, which is not here")
    return max(majors, key=majors.__getitem__)


def _is_up(address: str) -> bool:
    """Whether the server answers, and knows a node on which queries can run: itself."""
    with contextlib.suppress(OSError, TrinoError):
        with urllib.request.urlopen(f"{address}/v1/info", timeout=5) as answer:
            starts = json.load(answer)["starting"]
        active = "SELECT node_id FROM system.runtime.nodes WHERE state = 'active'"
        return not starts and len(Trino(address).rows(active)) > 0
    return False


def _ask(address: str, sql: str | None = None, session: Mapping[str, str] | None = None) -> dict[str, Any]:
    headers = {
        "X-Trino-User": "test",
        "X-Trino-Catalog": CATALOG,
        "X-Trino-Schema": SCHEMA,
        "X-Trino-Time-Zone": "UTC",
        "X-Trino-Session": ",".join(f"{CATALOG}.{name}={value}" for name, value in (session or {}).items()),
        "X-Trino-Client-Capabilities": "PARAMETRIC_DATETIME",  # otherwise times have milliseconds
    }
    body = None if sql is None else sql.encode()
    request = urllib.request.Request(address, data=body, headers=headers)
    with urllib.request.urlopen(request, timeout=ANSWER_SECONDS) as answer:
        parsed: dict[str, Any] = json.load(answer)
    return parsed


def _write(path: Path, properties: Mapping[str, str]) -> None:
    path.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
