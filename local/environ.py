"""The environment that services inherit: the caller's, without variables that would mislead them.

A user's own Airflow and Spark settings are left out, and so are pytest's; connections and variables of Airflow
that the environment defines are kept.  The project's `.venv` comes first on PATH, because Airflow looks for
itself there.  No address on this machine is reached through a proxy.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

LEFT_OUT = ("AIRFLOW", "_AIRFLOW", "SPARK_", "PYSPARK_", "PYTEST_", "LAKE_SPARK_REMOTE")
KEPT = ("AIRFLOW_CONN_", "AIRFLOW_VAR_")
HERE = "localhost,127.0.0.1,::1"


def inherited(environ: Mapping[str, str], *, prefix: Path) -> dict[str, str]:
    """The part of `environ` that a service gets; `prefix` is the Python environment in which it runs."""
    kept = {
        name: value
        for name, value in environ.items()
        if name.startswith(KEPT) or not name.startswith(LEFT_OUT)
    }
    path = environ.get("PATH", os.defpath)
    direct = ",".join(part for part in (environ.get("NO_PROXY") or environ.get("no_proxy"), HERE) if part)
    return {
        **kept,
        "NO_COLOR": "1",
        "NO_PROXY": direct,
        "no_proxy": direct,
        "PATH": f"{prefix / 'bin'}{os.pathsep}{path}",
        "PYTHONUNBUFFERED": "1",
        "VIRTUAL_ENV": str(prefix),
    }
