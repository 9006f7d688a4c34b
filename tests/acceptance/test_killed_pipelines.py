"""Pipelines of dlt: killed midway and run again, they load once; two at once load beside each other."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

STRIDE = 23
"""The run is killed before one in so many of its changes to the file system, which are about 160."""


def run(folder: Path, *numbers: int) -> dict[str, Any]:
    alone = {
        "RUNTIME__DLTHUB_TELEMETRY": "false",
        "RUNTIME__LOG_LEVEL": "CRITICAL",
        "PROVIDERS__ENABLE_AIRFLOW_SECRETS": "false",
        "DLT_DATA_DIR": str(folder / "home"),
    }
    command = [sys.executable, "-m", "tests.support.kills.killed_pipelines", str(folder / "runs")]
    done = subprocess.run(
        [*command, *map(str, numbers)],
        env={**os.environ, **alone},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


@pytest.mark.slow
def test_a_pipeline_that_is_killed_and_run_again_loads_once(tmp_path: Path) -> None:
    found = run(tmp_path, 11, STRIDE)
    assert found["wrong"] == []
    assert found["killed"] >= 3


@pytest.mark.slow
def test_two_pipelines_load_into_the_same_tables_at_once(tmp_path: Path) -> None:
    assert run(tmp_path, 3) == {"rounds": 3, "wrong": []}
