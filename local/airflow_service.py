"""Airflow on this machine: its settings, its command, its health.

The environment holds all its settings, so it neither reads nor changes the files of a user's own Airflow.  Its
database, logs and generated configuration are in one folder, and it listens on loopback only.  The database is
SQLite, whose writers wait up to a minute for each other: five seconds are too few on a busy machine.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from local.api import AirflowApi, ApiError
from local.credentials import Credentials
from local.ports import LOOPBACK

NAME = "airflow"
USUAL_PORT = 18080
HEALTHY_WITHIN = 600.0
"""Seconds within which Airflow must be healthy. A first start makes the database: half a minute on two idle cores,
minutes on busy ones. If Airflow ends by itself, that is noticed at once."""
COMMAND = (sys.executable, "-m", "local.airflow_standalone")
OWN_SETTINGS = Path(__file__).with_name("airflow_settings")
"""The folder of airflow_local_settings.py, which Airflow imports into each of its processes."""
COMPONENTS = ("metadatabase", "scheduler", "triggerer", "dag_processor")

OUTLASTING_A_COLD_START = {
    "AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT": "60",
    "AIRFLOW__WORKERS__EXECUTION_API_RETRIES": "12",
    "AIRFLOW__WORKERS__EXECUTION_API_RETRY_WAIT_MAX": "15",
    "AIRFLOW__CORE__DAGBAG_IMPORT_TIMEOUT": "120",
    "AIRFLOW__DAG_PROCESSOR__DAG_FILE_PROCESSOR_TIMEOUT": "180",
    "AIRFLOW__DAG_PROCESSOR__STALE_DAG_THRESHOLD": "180",
}
"""Longer limits than Airflow's own, which suit warm servers and idle machines. By default a task waits 5 s for an
answer of the API, five times, and reading a DAG file may take 30 s. The API's first answer to a task takes 5 s
of processor time (decision 45)."""


def url(port: int) -> str:
    return f"http://{LOOPBACK}:{port}"


def settings(
    *, home: Path, dags: Path, plugins: Path, port: int, credentials: Credentials
) -> Mapping[str, str]:
    """The environment in which an `airflow` command, or standalone, uses this Airflow."""
    api = url(port)
    return {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(plugins),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
        "AIRFLOW__CORE__PARALLELISM": "4",
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{api}/execution/",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": f"{credentials.user}:admin",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(credentials.password_file),
        "AIRFLOW__API__HOST": LOOPBACK,
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__API__BASE_URL": api,
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__API_AUTH__JWT_SECRET": credentials.jwt_secret,
        **OUTLASTING_A_COLD_START,
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home / 'airflow.db'}?timeout=60",
        "AIRFLOW__DATABASE__LOAD_DEFAULT_CONNECTIONS": "False",
    }


def is_healthy(api: AirflowApi) -> bool:
    """Whether every component reported its health a moment ago, and the API that tasks use answers.

    Airflow builds that API at the first request, and answers nothing else meanwhile.  So this check asks for
    it, and the first task need not wait.
    """
    try:
        api.wake_task_api()
        health = api.health()
    except ApiError:
        return False
    return all((health.get(name) or {}).get("status") == "healthy" for name in COMPONENTS)
