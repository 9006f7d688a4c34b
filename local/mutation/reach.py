"""A plugin of pytest that writes the lines that each test reaches, as JSON, to `$LAKE_MUTATION_REACH`.

    {"tests/unit/a/test_a.py::test_x": [seconds, {"lake_core/history/merge.py": [12, 13]}]}

`sys.settrace` does it, in all threads.  Files below the folders in `$LAKE_MUTATION_FOLDERS`
are traced by line.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

HERE = f"{Path.cwd()}/"
FOLDERS = tuple(f"{HERE}{folder}" for folder in os.environ["LAKE_MUTATION_FOLDERS"].split(":"))
_reached: dict[str, set[int]] = defaultdict(set)
_tests: dict[str, tuple[float, dict[str, list[int]]]] = {}


def _lines(frame: FrameType, event: str, arg: object) -> Any:
    if event == "line":
        _reached[frame.f_code.co_filename].add(frame.f_lineno)
    return _lines


def _calls(frame: FrameType, event: str, arg: object) -> Any:
    return _lines if frame.f_code.co_filename.startswith(FOLDERS) else None


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Trace one test with its fixtures."""
    _reached.clear()
    threading.settrace(_calls)
    sys.settrace(_calls)
    began = time.perf_counter()
    yield
    sys.settrace(None)
    threading.settrace(None)
    files = {name.removeprefix(HERE): sorted(lines) for name, lines in _reached.items()}
    _tests[item.nodeid] = time.perf_counter() - began, files


def pytest_sessionfinish() -> None:
    """Write what was reached."""
    Path(os.environ["LAKE_MUTATION_REACH"]).write_text(json.dumps(_tests))
