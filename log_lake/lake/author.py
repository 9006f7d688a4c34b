"""Finds the author of transactions, and the metadata of a task of Airflow, in the environment."""

from __future__ import annotations

import getpass
import os

AIRFLOW = {
    "dag": "AIRFLOW_CTX_DAG_ID",
    "run": "AIRFLOW_CTX_DAG_RUN_ID",
    "task": "AIRFLOW_CTX_TASK_ID",
    "try": "AIRFLOW_CTX_TRY_NUMBER",
}
"""For each metadata about the Airflow task that runs this process, the variable that Airflow sets."""


def default_metadata() -> dict[str, str]:
    """Returns metadata that name the Airflow task in which this process runs; empty outside of Airflow."""
    return {name: os.environ[variable] for name, variable in AIRFLOW.items() if os.environ.get(variable)}


def default_author() -> str:
    """Returns LAKE_AUTHOR if it is set, otherwise the user who runs the process."""
    try:
        return os.environ.get("LAKE_AUTHOR") or getpass.getuser()
    except (KeyError, OSError):  # no such user in this container
        return f"uid-{os.getuid()}"
