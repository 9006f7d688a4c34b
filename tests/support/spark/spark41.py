"""Installs Spark 4.1 apart from the project's Spark, for Iceberg's Spark runtime and Delta, which have no jars for
the project's version.

PySpark is in an environment of its own, installed once; Spark fetches the jars from Maven at its first start
and keeps them.
"""

from __future__ import annotations

from pathlib import Path

from tests.support.apart import install_python
from tests.support.repository import ROOT

ICEBERG = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0"
DELTA = "io.delta:delta-spark_4.1_2.13:4.1.0"


def spark41() -> Path:
    """Returns the Python that has it. Raises FileNotFoundError if there is no `uv`, CalledProcessError."""
    return install_python("requirements-bench-spark.txt", ROOT / ".venv" / "spark41")
