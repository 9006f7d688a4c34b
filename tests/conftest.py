"""What all tests share."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.support.rotation import chosen

# What fails on one machine fails on all, however slow it is and whatever folders were asked for.
settings.register_profile("same everywhere", derandomize=True, database=None, deadline=None)
settings.load_profile("same everywhere")


def pytest_configure(config: pytest.Config) -> None:
    """Processes that tests start can be interrupted, also where pytest itself was started to ignore that.

    A process below nohup, or in the background of a script, ignores SIGINT, and its children inherit it.  A handler
    that does nothing ignores as well, and is not inherited.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, lambda *_: None)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what another part of a rotation runs."""
    choice = chosen(os.environ)
    if choice is None:
        return
    left_out = [item for item in items if not choice.runs(item.nodeid)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if choice.runs(item.nodeid)]


@pytest.fixture(autouse=True)
def root_logger_as_it_was() -> None:
    """Airflow sets the root logger's level where a test imports it, and so for all tests that follow."""
    logging.root.setLevel(logging.WARNING)


@pytest.fixture
def without_warnings() -> Iterator[None]:
    """Warnings that a test expects, perhaps thousands of them, are not printed."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)
