"""Runs a standalone cluster of Spark on loopback, such as companies have, as processes of one test."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from local.ports import LOOPBACK, choose, is_answered
from local.spark_service import home
from tests.support.spark.processes import await_true, end_all, in_session

WORKERS = 2


@contextmanager
def cluster(environ: dict[str, str], folder: Path) -> Iterator[str]:
    """Runs a master and two workers with one core each while the block runs. Yields the master's address."""
    port = choose(17077, what="the Spark master")
    ui = choose(18180, what="the master's page")
    deploy = "org.apache.spark.deploy"
    started: list[subprocess.Popen[bytes]] = []

    def start(*command: str) -> Path:
        log = folder / f"{len(started)}.log"
        with log.open("wb") as output:
            started.append(
                subprocess.Popen(
                    [str(home() / "bin" / "spark-class"), *command],
                    cwd=folder,
                    env={**environ, "SPARK_WORKER_DIR": str(folder / "work"), "SPARK_DAEMON_MEMORY": "512m"},
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            )
        return log

    try:
        start(f"{deploy}.master.Master", "--host", LOOPBACK, "--port", str(port), "--webui-port", str(ui))
        await_true(lambda: is_answered(port), seconds=600, what="the master listens")
        master = f"spark://{LOOPBACK}:{port}"
        logs = [
            start(
                *(f"{deploy}.worker.Worker", "--host", LOOPBACK, "--cores", "1", "--memory", "2g"),
                *("--webui-port", str(choose(ui + 1 + number, what="the page of a worker")), master),
            )
            for number in range(WORKERS)
        ]
        await_true(
            lambda: all(b"Successfully registered" in log.read_bytes() for log in logs),
            seconds=600,
            what="the workers are registered",
        )
        yield master
    finally:
        for process in reversed(started):
            process.terminate()
        left = []
        for process in started:
            process.wait(timeout=600)
            left += in_session(process.pid)
        end_all(left)
