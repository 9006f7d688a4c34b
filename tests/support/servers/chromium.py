"""Chromium of Debian's packages, without a window, driven by Playwright.

Playwright's own browsers come from a host that not every network reaches.  With LAKE_TEST_BROWSER=1, as in CI,
Chromium is installed if it is missing; otherwise tests that need it are skipped.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.servers.daemons import programs

NAME = "chromium"


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    """The browser (`playwright.sync_api.Browser`), from its start to its end."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="no playwright here: run make env")
    program = shutil.which(NAME)
    if program is None:
        if os.environ.get("LAKE_TEST_BROWSER") != "1":
            pytest.skip(f"no {NAME} here; with LAKE_TEST_BROWSER=1 it is installed, as root")
        program = programs((NAME,), packages=(NAME,))[NAME]
    with sync_api.sync_playwright() as playwright:
        # as root, Chromium runs only without its own sandbox; the pages are this machine's
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()
