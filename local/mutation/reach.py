"""A plugin of pytest that writes the lines that each test reaches, as JSON, to `$LAKE_MUTATION_REACH`.

    {"tests/unit/a/test_a.py::test_x": [seconds, {"lake_core/history/merge.py": [12, 13]}]}

`coverage` traces the files below the folders in `$LAKE_MUTATION_FOLDERS`, in all threads.
"""

from __future__ import annotations

import json
import os
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import coverage
import pytest

FOLDERS = [f"{Path.cwd()}/{folder}/*" for folder in os.environ["LAKE_MUTATION_FOLDERS"].split(":")]
_seconds: dict[str, float] = {}
_coverage = coverage.Coverage(data_file=None, include=FOLDERS, config_file=False)
_coverage.start()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Traces the lines that one test reaches, with its fixtures."""
    _coverage.switch_context(item.nodeid)
    began = time.perf_counter()
    yield
    _seconds[item.nodeid] = time.perf_counter() - began
    _coverage.switch_context("")


def pytest_sessionfinish() -> None:
    """Writes which lines each test reached."""
    _coverage.stop()
    data = _coverage.get_data()
    files: dict[str, dict[str, list[int]]] = defaultdict(dict)
    for file in data.measured_files():
        name = os.path.relpath(file)
        for line, tests in sorted(data.contexts_by_lineno(file).items()):
            for test in filter(None, tests):
                files[test].setdefault(name, []).append(line)
    reach = {test: (seconds, files[test]) for test, seconds in _seconds.items()}
    Path(os.environ["LAKE_MUTATION_REACH"]).write_text(json.dumps(reach))
