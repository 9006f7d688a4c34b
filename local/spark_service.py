"""A Spark Connect server on this machine, from the installed package: its command, its settings, its health.

It runs `local[2,4]`: two cores, and four tries for a task, as on a cluster (plain `local[2]` tries once).  It
listens on loopback only and requires a token.  The address names `localhost`, because for any other name,
127.0.0.1 included, Spark's client insists on TLS if there is a token.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import util
from pathlib import Path

from local.errors import LocalError
from local.java import Java
from local.ports import LOOPBACK, is_answered

NAME = "spark"
USUAL_PORT = 15002
USUAL_UI_PORT = 4040
HEALTHY_WITHIN = 600.0
"""Seconds within which the server must be healthy: it takes six on two idle cores, and took over 300 beside 80
busy processes."""
SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"


def remote(port: int, *, token: str, session: str = "") -> str:
    """The address for clients, token included; clients that name the same `session` (a UUID) share it."""
    return f"sc://localhost:{port}/;token={token}" + (f";session_id={session}" if session else "")


def url(port: int) -> str:
    """The address of Spark's page of jobs."""
    return f"http://{LOOPBACK}:{port}"


def home() -> Path:
    """SPARK_HOME: the folder of the installed package."""
    spec = util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise LocalError("pyspark is not installed here: run `make env`")
    return Path(spec.origin).parent


def settings(*, token: str, java: Java) -> Mapping[str, str]:
    return {
        "JAVA_HOME": str(java.home),
        "SPARK_HOME": str(home()),
        "SPARK_LOCAL_IP": LOOPBACK,
        "SPARK_CONNECT_AUTHENTICATE_TOKEN": token,
        # Without it the workers run the system's python3.
        "PYSPARK_PYTHON": sys.executable,
    }


def command(*, port: int, ui_port: int, folder: Path, conf: Mapping[str, str]) -> tuple[str, ...]:
    """The server's command line; `conf` adds to these settings and overrides them."""
    options = {
        "spark.connect.grpc.binding.address": LOOPBACK,
        "spark.connect.grpc.binding.port": str(port),
        # A session that ended leaves its Python processes behind, and its id is never taken again: the one
        # that Airflow's tasks share does not end.
        "spark.connect.session.manager.defaultSessionTimeout": "-1",
        "spark.driver.host": LOOPBACK,
        "spark.driver.bindAddress": LOOPBACK,
        "spark.driver.memory": "2g",
        "spark.local.dir": str(folder / "scratch"),
        "spark.log.level": "WARN",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.ui.port": str(ui_port),
        **conf,
    }
    flags = [part for key, value in options.items() for part in ("--conf", f"{key}={value}")]
    submit = str(home() / "bin" / "spark-submit")
    return (submit, "--master", "local[2,4]", "--class", SERVER, *flags, "spark-internal")


def is_healthy(port: int) -> bool:
    return is_answered(port)
