"""The packages that only some lakes need, and the extra of log-lake that installs each.

`pip install log-lake` installs what a lake on local files needs.  Code that is about to use another package calls
`need` first, so that a person reads which extra to install instead of a traceback.  Called by the stores in a
cloud, by files that are loaded from one, by locks on PostgreSQL, by the Spark applications, by `lake ui` and
`lake serve`, and by code that publishes Iceberg tables, uses dlt or reads Kafka.
"""

from __future__ import annotations

import importlib
from typing import Literal

from lake_core.errors import InvalidInput

Extra = Literal["s3", "gcs", "locks", "spark", "iceberg", "ui", "serve", "dlt", "kafka"]

_PACKAGES: dict[Extra, tuple[str, ...]] = {
    "s3": ("s3fs",),
    "gcs": ("gcsfs",),
    "locks": ("psycopg",),
    "spark": ("pyspark",),
    "iceberg": ("pyiceberg",),
    "ui": ("fastapi", "uvicorn"),
    "serve": ("uvicorn", "pyiceberg", "prometheus_client"),
    "dlt": ("dlt",),
    "kafka": ("confluent_kafka",),
}


def need(extra: Extra, subject: str) -> None:
    """Imports the packages of an extra.  Raises InvalidInput, beginning with `subject`, if one is missing."""
    for package in _PACKAGES[extra]:
        try:
            importlib.import_module(package)
        except ImportError as error:  # absent, or present without a library of its own
            raise InvalidInput(
                f"{subject} needs the package {package} ({error}); run: pip install 'log-lake[{extra}]'"
            ) from error


def need_of_bucket(uri: str) -> None:
    """Imports the package that reads and writes a bucket's URI (s3, s3a, gs, gcs).  Raises as `need` does."""
    need("s3" if uri.startswith("s3") else "gcs", uri)
