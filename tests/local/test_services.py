"""The services of a run directory: up once, told, used again, down, and nothing left of them."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from local import credentials, ports, services, spark_service
from local.environ import inherited
from local.errors import LocalError
from local.processes import left_of
from tests.support.repository import ROOT


def local(run_dir: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """`python -m local ...`, as make runs it."""
    return subprocess.run(
        [sys.executable, "-m", "local", "--run-dir", str(run_dir), *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


@pytest.fixture
def run_dir(tmp_path: Path) -> Iterator[Path]:
    """A run directory that is down again at the end, whatever the test did."""
    yield tmp_path / "run"
    services.stop_all(tmp_path / "run", silent=True)


@pytest.fixture
def usual_port_taken() -> Iterator[int]:
    """Somebody listens on Spark's usual port, if nobody did."""
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if ports.is_free(spark_service.USUAL_PORT):
            server.bind((ports.LOOPBACK, spark_service.USUAL_PORT))
            server.listen()
        yield spark_service.USUAL_PORT


@pytest.mark.spark
def test_up_again_status_and_down(run_dir: Path, usual_port_taken: int) -> None:
    up = local(run_dir, "up", "--only", "spark")
    assert up.returncode == 0, up.stderr
    assert f"spark: port {usual_port_taken} is taken; its connect port is" in up.stderr
    started = services.running(run_dir, "spark")
    assert started is not None
    assert started.ports["connect"] != usual_port_taken
    assert re.search(
        rf"^Spark: +sc://localhost:{started.ports['connect']}/;token=\S+$", up.stdout, re.MULTILINE
    )
    assert "Airflow:  not running" in up.stdout
    listening = {
        c.laddr for c in java_of(started.keeper.pid).net_connections() if c.status == psutil.CONN_LISTEN
    }
    assert all(address.ip in {"127.0.0.1", "::1", "::ffff:127.0.0.1"} for address in listening), listening

    again = local(run_dir, "up", "--only", "spark")
    assert (again.returncode, "It is up already." in again.stdout) == (0, True)
    assert services.running(run_dir, "spark") == started
    other = local(run_dir, "up", "--only", "spark", "--lake", "/another/lake")
    assert other.returncode == 1
    assert "with other settings" in other.stderr
    assert "stop it first" in other.stderr
    assert "Traceback" not in other.stderr

    status = local(run_dir, "status")
    assert (status.returncode, "Spark: " in status.stdout) == (1, True), "1: Airflow is not up"

    below = psutil.Process(started.keeper.pid).children(recursive=True)
    down = local(run_dir, "down")
    assert (down.returncode, down.stdout) == (0, "Stopped: spark.\n")
    assert not left_of(below, seconds=600)
    assert not ports.is_answered(started.ports["connect"])
    assert list(run_dir.glob("*.json")) == []
    assert local(run_dir, "down").stdout == "Nothing was running.\n"


def java_of(keeper: int) -> psutil.Process:
    """The Java below the keeper."""
    return next(p for p in psutil.Process(keeper).children(recursive=True) if p.name() == "java")


@pytest.mark.spark
def test_a_service_that_cannot_start_says_why_and_leaves_nothing(run_dir: Path) -> None:
    broken = services.Services(
        run_dir=run_dir, airflow=False, spark_conf={"spark.driver.memory": "lots"}, silent=True
    )
    with pytest.raises(LocalError, match=r"(?s)spark ended while it was starting; the end of .*lots"):
        broken.start()
    assert services.running(run_dir, "spark") is None
    assert list(run_dir.glob("*.json")) == []


def test_nothing_is_up_in_a_new_run_directory(run_dir: Path) -> None:
    status = local(run_dir, "status")
    assert status.returncode == 1
    assert status.stdout == "Airflow:  not running\nSpark:    not running\n"
    assert local(run_dir, "down").stdout == "Nothing was running.\n"


def test_an_airflow_command_without_an_airflow_says_how_to_start_one(run_dir: Path) -> None:
    done = local(run_dir, "airflow", "dags", "list")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"airflow: no Airflow is up in {run_dir}: start one (`make up`)\n"


def test_credentials_are_made_once_and_are_their_owners_alone(tmp_path: Path) -> None:
    made = credentials.load_or_make(tmp_path / "c")
    assert credentials.load_or_make(tmp_path / "c") == made
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "c").iterdir()} == {0o600}
    assert (tmp_path / "c").stat().st_mode & 0o777 == 0o700
    assert len(made.jwt_secret) >= 64
    assert all(secret not in repr(made) for secret in (made.password, made.jwt_secret, made.spark_token))


def test_a_service_inherits_no_settings_of_a_persons_own_airflow_or_spark(tmp_path: Path) -> None:
    environ = {
        "AIRFLOW_HOME": "/mine",
        "AIRFLOW__CORE__EXECUTOR": "X",
        "AIRFLOW_CONN_STORE": "kept",
        "SPARK_HOME": "/mine",
        "PYTEST_CURRENT_TEST": "x",
        "HOME": "/home/me",
        "PATH": "/bin",
        "no_proxy": "example.org",
    }
    got = inherited(environ, prefix=tmp_path)
    assert got["AIRFLOW_CONN_STORE"] == "kept"
    assert got["HOME"] == "/home/me"
    assert got["PATH"] == f"{tmp_path / 'bin'}{os.pathsep}/bin"
    assert "127.0.0.1" in got["NO_PROXY"]
    assert "example.org" in got["NO_PROXY"]
    assert not {"AIRFLOW_HOME", "AIRFLOW__CORE__EXECUTOR", "SPARK_HOME", "PYTEST_CURRENT_TEST"} & set(got)
