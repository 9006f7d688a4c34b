"""Runs Chromium from Debian's packages, without a window, through Playwright.

Playwright's own browsers come from a host that not every network reaches.  With LAKE_TEST_BROWSER=1, as in CI,
Chromium is installed if it is missing; otherwise tests that need it are skipped.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.servers.daemons import programs

NAME = "chromium"


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    """Runs the browser (`playwright.sync_api.Browser`) while the block runs."""
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


@contextlib.contextmanager
def watched(browser: Any, *, within_ms: int) -> Iterator[Callable[..., Any]]:
    """Yields a function that opens a page in a context of its own; its arguments are those of
    `Browser.new_context`.

    A page waits at most `within_ms`. At the end no page may have reported an error, and no text of a page may
    have run as a script.
    """
    complaints: list[str] = []
    contexts: list[Any] = []

    def new_page(**how: Any) -> Any:
        context = browser.new_context(**how)
        contexts.append(context)
        context.set_default_timeout(within_ms)
        page = context.new_page()
        page.on("console", lambda m: complaints.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(f"dialog: {dialog.message}"))
        return page

    yield new_page
    for context in contexts:
        assert all(page.title() != "owned" for page in context.pages)
        context.close()
    assert complaints == []
