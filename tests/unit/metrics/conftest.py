"""Prometheus' own checker, from Debian; `LAKE_TEST_PROMETHEUS=1` installs it if it is missing, as root."""

from __future__ import annotations

import os
import shutil

import pytest

from tests.support.servers.daemons import programs


@pytest.fixture(scope="session")
def promtool() -> str:
    """The program `promtool`."""
    if os.environ.get("LAKE_TEST_PROMETHEUS"):
        return programs(("promtool",), packages=("prometheus",))["promtool"]
    found = shutil.which("promtool")
    if found is None:
        pytest.skip("promtool is not installed; LAKE_TEST_PROMETHEUS=1 installs it, as root")
    return found
