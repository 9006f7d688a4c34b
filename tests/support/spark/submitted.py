"""Runs an application as a process of its own, by the real spark-submit."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from local.spark_service import home
from tests.support.repository import ROOT
from tests.support.spark.processes import await_true, end_all, in_session

LONGEST = 600.0
QUIET = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.log.level": "ERROR",
}


@dataclass(frozen=True)
class Submitted:
    """A running application, which leads a session of its own."""

    process: subprocess.Popen[str]

    @property
    def root(self) -> psutil.Process:
        """The Java process that spark-submit has become."""
        return psutil.Process(self.process.pid)

    def driver(self) -> psutil.Process | None:
        """The Python driver below it; None before it is started."""
        for child in self.root.children():
            with contextlib.suppress(psutil.Error):  # it has ended: the shell before the Java had children
                if any(word.endswith("spark_apps/ingest.py") for word in child.cmdline()):
                    return child
        return None

    def outcome(self) -> tuple[int, dict[str, Any] | None, str]:
        """Waits until the application has ended. Returns its exit status, its line of JSON, and all that it has
        printed.

        (What a submitted application writes to standard error, spark-submit writes to standard output.)
        """
        out, err = self.process.communicate(timeout=LONGEST)
        lines = [line for line in out.splitlines() if line.startswith("{")]
        return self.process.returncode, json.loads(lines[-1]) if lines else None, err + out

    def has_ended(self) -> bool:
        """Whether no process of it is left."""
        self.process.poll()
        return not in_session(self.process.pid)


@contextmanager
def submit(
    words: list[str],
    *,
    environ: Mapping[str, str],
    folder: Path,
    master: str = "local[2]",
    application: str = "spark_apps/ingest.py",
) -> Iterator[Submitted]:
    """Runs `spark-submit APPLICATION WORDS` while the block runs; at the end no process of it may be left.

    The repository comes first on its path, because textstat installs a package `tests` too.
    """
    settings = QUIET | {"spark.sql.warehouse.dir": str(folder / "warehouse"), "spark.local.dir": str(folder)}
    flags = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    process = subprocess.Popen(
        [str(home() / "bin" / "spark-submit"), "--master", master, *flags, application, *words],
        cwd=ROOT,
        env={**environ, "PYSPARK_DRIVER_PYTHON": sys.executable, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    submitted = Submitted(process)
    try:
        yield submitted
        await_true(submitted.has_ended, seconds=600, what="the application and all it started have ended")
    finally:
        end_all(in_session(process.pid))
        process.communicate(timeout=10)
