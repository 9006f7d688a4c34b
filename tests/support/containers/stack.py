"""Runs docker-compose.yaml by podman-compose, as a user would, and does to its containers what a drill needs.

podman 4.3 cannot wait until a service is healthy, and refuses to start a container whose dependencies have
dependencies. So this module starts the services in order: `setup` with what it needs first, and the others when
it has ended (`--no-deps`). Without systemd, podman has no timer for health checks, so `healthy` runs a check
itself.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
import venv
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from s3fs import S3FileSystem

from local.api import AirflowApi
from tests.support.containers.images import make_stand_ins, podman_environ, said_by
from tests.support.repository import ROOT
from tests.support.servers.daemons import free_port
from tests.support.servers.s3 import s3_client

PODMAN_COMPOSE = "podman-compose==1.6.0"
PROJECT = "lake-test"
SERVICES = (
    *("postgres", "redis", "store", "api-server", "scheduler", "dag-processor", "triggerer", "worker"),
    *("spark-master", "spark-worker", "spark-connect"),
)
FIRST = ("postgres", "redis", "store", "setup")
UP_SECONDS = 900.0
HEALTHY_SECONDS = 600.0
EXEC_SECONDS = 180.0
LOOK_SECONDS = 1.0

Found = TypeVar("Found")


def eventually(
    condition: Callable[[], Found], *, seconds: float, what: str, pause: float = LOOK_SECONDS
) -> Found:
    """Asks a condition again and again, with a pause between. Returns its first true answer; fails after so many
    seconds."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"not within {seconds:.0f} s: {what}"
        time.sleep(pause)
    return found


@dataclass(frozen=True)
class Stack:
    """The running services.  A container is named by its service; the second Spark worker is `spark-worker:2`."""

    environ: Mapping[str, str]
    compose: tuple[str, ...]
    secrets: Mapping[str, str] = field(repr=False)
    api: AirflowApi
    stand_ins: tuple[str, ...]
    begun: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        """How many seconds ago the stack was started."""
        return time.monotonic() - self.begun

    def podman(self, *words: str, seconds: float = EXEC_SECONDS) -> str:
        return said_by(["podman", *words], self.environ, seconds=seconds)

    def exec(self, service: str, *words: str, stdin: bytes = b"") -> str:
        """Runs a command in the service's container. Returns what it prints."""
        done = subprocess.run(
            ["podman", "exec", "--interactive", container(service), *words],
            env=dict(self.environ),
            input=stdin,
            capture_output=True,
            timeout=EXEC_SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{words}: {done.stderr.decode()[-2000:]}"
        return done.stdout.decode()

    def service_log(self, service: str, *, since: str) -> str:
        """Returns what a service has logged since a time in ISO 8601."""
        done = subprocess.run(
            ["podman", "logs", "--since", since, container(service)],
            env=dict(self.environ),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=EXEC_SECONDS,
            check=True,
        )
        return done.stdout

    def lake(self, *words: str) -> str:
        """Runs `lake` in a container of Airflow. Returns what it prints."""
        return self.exec("triggerer", "lake", *words)

    def store_options(self) -> dict[str, Any]:
        """The options by which a program outside of the containers reaches the store, at its address in their
        network."""
        address = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}"
        ip = self.podman("inspect", "--format", address, container("store")).strip()
        keys = self.secrets["AWS_ACCESS_KEY_ID"], self.secrets["AWS_SECRET_ACCESS_KEY"]
        return s3_client(f"http://{ip}:8000", *keys)

    def land(self, uri: str, data: bytes) -> None:
        """Writes an object with that name to the store."""
        S3FileSystem(**self.store_options()).pipe_file(uri, data)

    def kill(self, service: str) -> None:
        """Kills the container's processes (SIGKILL); the container is not started again."""
        self.podman("kill", "--signal", "KILL", container(service))
        eventually(lambda: not self.runs(service), seconds=60, what=f"{service} is dead")

    def start(self, service: str) -> None:
        self.podman("start", container(service))

    def runs(self, service: str) -> bool:
        state = self.podman("inspect", "--format", "{{.State.Status}}", container(service))
        return state.strip() == "running"

    def healthy(self, service: str) -> bool:
        """Runs the service's own health check. Returns whether it succeeds."""
        words = ["podman", "healthcheck", "run", container(service)]
        with contextlib.suppress(subprocess.TimeoutExpired):
            done = subprocess.run(
                words, env=dict(self.environ), capture_output=True, timeout=EXEC_SECONDS, check=False
            )
            return done.returncode == 0
        return False

    def wait_until_healthy(self, *services: str) -> None:
        for service in services:
            eventually(
                lambda service=service: self.healthy(service),
                seconds=HEALTHY_SECONDS,
                what=f"{service} is healthy",
            )


def container(service: str) -> str:
    name, _, number = service.partition(":")
    return f"{PROJECT}_{name}_{number or 1}"


@contextlib.contextmanager
def stack(folder: Path) -> Iterator[Stack]:
    """Runs the whole stack of docker-compose.yaml, with new secrets and volumes, while the block runs."""
    environ = podman_environ(folder)
    stand_ins = make_stand_ins(folder, environ)
    port = free_port()
    env_file = folder / "env"
    said = said_by(["sh", str(ROOT / "deploy" / "secrets.sh")], os.environ)
    # A worker that is killed is missed after a minute, not five.  Ingest has no schedule: with one Airflow makes a
    # run when the DAG is unpaused, and that may take the files from the run that a test asks for.
    env_file.write_text(f"{said}AIRFLOW_PORT={port}\nHEARTBEAT_TIMEOUT=60\nLAKE_INGEST_SCHEDULE=\n")
    secrets = dict(line.split("=", 1) for line in said.splitlines())
    compose = (
        *(_podman_compose(folder / "podman-compose"), "--in-pod=false", "--project-name", PROJECT),
        *("--env-file", str(env_file), "--file", str(ROOT / "docker-compose.yaml")),
    )
    api = AirflowApi(f"http://127.0.0.1:{port}", user="admin", password=secrets["AIRFLOW_PASSWORD"])
    running = Stack(environ, compose, secrets, api, tuple(stand_ins))
    up = [*compose, "up", "--detach", "--no-deps"]
    down = [*compose, "down", "--volumes", "--timeout", "5"]
    try:
        said_by([*compose, "build"], environ, seconds=UP_SECONDS)
        said_by(
            down, environ, seconds=UP_SECONDS
        )  # what a run that was killed has left: its secrets are others
        said_by([*up, *FIRST], environ, seconds=UP_SECONDS)
        eventually(lambda: not running.runs("setup"), seconds=UP_SECONDS, what="setup ended")
        said_by(up, environ, seconds=UP_SECONDS)
        running.wait_until_healthy(*SERVICES)
        yield running
    finally:
        said_by(down, environ, seconds=UP_SECONDS)


def _podman_compose(folder: Path) -> str:
    """Returns the path of podman-compose in an environment of its own, because it is no dependency of the
    project."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    said_by([str(python), "-m", "pip", "install", "--quiet", PODMAN_COMPOSE], os.environ)
    return str(folder / "bin" / "podman-compose")
