"""Runs YARN on this machine: Hadoop's own resource manager and node manager, in one JVM (`MiniYarn.java`).

Hadoop makes this cluster for its own tests. It accepts, places and ends applications as a large one does; but
it has no other machines, and no Kerberos.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from local.java import provide
from local.spark_service import home
from tests.support.apart import named_or_installed
from tests.support.repository import ROOT
from tests.support.spark.processes import await_true, end_all, in_session

PACKAGES = (
    "org.apache.hadoop:hadoop-client-minicluster:3.5.0",  # of the version of the Hadoop that PySpark brings
    "org.junit.jupiter:junit-jupiter-api:5.10.1",  # what its classes for tests need
    "org.mockito:mockito-core:4.11.0",
    "org.assertj:assertj-core:3.25.3",
    "org.bouncycastle:bcprov-jdk18on:1.78.1",
    "org.bouncycastle:bcpkix-jdk18on:1.78.1",
)
JARS = ROOT / ".run" / "yarn-jars"


def jars() -> Path:
    """The folder of Hadoop's jars: the one that LAKE_TEST_YARN names; if that is 1, Spark fetches them once."""
    return named_or_installed(os.environ["LAKE_TEST_YARN"], _fetched)


def _fetched() -> Path:
    folder, stamp = JARS / "jars", JARS / "stamp"
    if not (stamp.exists() and stamp.read_text() == "\n".join(PACKAGES)):
        flags = [
            f"spark.jars.ivy={JARS}",
            f"spark.jars.packages={','.join(PACKAGES)}",
            "spark.ui.enabled=false",
        ]
        confs = [word for flag in flags for word in ("--conf", flag)]
        application = str(ROOT / "tests/support/yarn/nothing.py")
        command = [str(home() / "bin" / "spark-submit"), "--master", "local[1]", *confs, application]
        subprocess.run(command, check=True, capture_output=True, env=_environ())
        stamp.write_text("\n".join(PACKAGES))
    return folder


def _environ() -> dict[str, str]:
    return {**os.environ, "JAVA_HOME": str(provide(os.environ).home), "PYSPARK_PYTHON": sys.executable}


@contextmanager
def yarn(folder: Path, *, conf: Path, port: int) -> Iterator[None]:
    """Runs YARN in `folder` while the block runs. The folder `conf` gets what a client reads; the REST API listens
    on the port."""
    found: Sequence[Path] = [*jars().glob("*.jar"), *(home() / "jars").glob("*.jar")]
    java = provide(os.environ).home / "bin" / "java"
    if not java.with_name("javac").exists():
        pytest.skip("YARN needs a JDK: java runs MiniYarn.java as a source")
    folder.mkdir()
    conf.mkdir(exist_ok=True)
    source, site = ROOT / "tests/support/yarn/MiniYarn.java", conf / "yarn-site.xml"
    site.unlink(missing_ok=True)
    log = folder / "yarn.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [
                str(java),
                "-Xmx512m",
                "-cp",
                os.pathsep.join(map(str, found)),
                str(source),
                str(site),
                str(port),
            ],
            cwd=folder,
            env=_environ(),
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        await_true(
            lambda: site.exists() or process.poll() is not None,
            seconds=600,
            what="YARN is up",
        )
        assert process.poll() is None, log.read_text()[-4_000:]
        yield
    finally:
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
        end_all(in_session(process.pid))
