"""A package that only an extra installs: its absence is one line that names the extra."""

from __future__ import annotations

import subprocess
import sys

import pytest

from lake_core.errors import InvalidInput
from log_lake.extras import need
from log_lake.loading.opening import remote
from log_lake.stores import open_store


@pytest.mark.parametrize(
    ("scheme", "package", "extra"),
    [("s3", "s3fs", "s3"), ("s3a", "s3fs", "s3"), ("gs", "gcsfs", "gcs"), ("gcs", "gcsfs", "gcs")],
)
def test_a_bucket_of_a_lake_or_of_a_file_names_the_extra_that_is_missing(
    monkeypatch: pytest.MonkeyPatch, scheme: str, package: str, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    for opened in (open_store, remote):
        with pytest.raises(
            InvalidInput, match=rf"^{scheme}://b/x needs .*; run: pip install 'log-lake\[{extra}\]'$"
        ):
            opened(f"{scheme}://b/x")


def test_what_is_installed_is_not_complained_of() -> None:
    need("spark", "a Spark application")


SERVING = """
import sys
for absent in ("fastapi", "starlette", "pyspark", "airflow", "s3fs", "dlt", "confluent_kafka"):
    sys.modules[absent] = None
import log_lake.cli.serving, log_lake.iceberg_catalog.serving, log_lake.service.app, log_lake.publish.run
"""


def test_the_extra_serve_is_enough_for_lake_serve() -> None:
    """Another process, since this one has imported what the other extras install."""
    done = subprocess.run([sys.executable, "-c", SERVING], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
