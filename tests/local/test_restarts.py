"""A component of the local Airflow that ends by itself is started again, a bounded number of times."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from local.airflow_standalone import MOST, PAUSES, WINDOW, pause_before
from tests.support.repository import ROOT


def test_the_pauses_grow_and_what_ends_too_often_is_given_up() -> None:
    ends: list[float] = []
    pauses = []
    for number in range(MOST + 1):
        ends.append(float(number))
        pauses.append(pause_before(ends, now=ends[-1]))
    assert pauses == [*PAUSES, None]


def test_what_ends_once_a_day_is_started_again_for_ever() -> None:
    ends = [day * 86_400.0 for day in range(1_000)]
    assert pause_before(ends, now=ends[-1]) == PAUSES[0]
    assert pause_before([0.0, WINDOW - 1], now=WINDOW - 1) == PAUSES[1]
    assert pause_before([0.0, WINDOW], now=WINDOW) == PAUSES[0]


PROGRAM = """
import threading
from local.airflow_standalone import Component

class Parent:
    def __init__(self):
        self.output_queue = []
    def print_output(self, name, text):
        print(text, flush=True)

parent = Parent()
component = Component(parent, "scheduler", ["scheduler"], {"PATH": %r})
component.start()
while len(parent.output_queue) < 2:
    threading.Event().wait(0.05)
component.stop()
component.join(600)
print("alive" if component.is_alive() else "stopped", [line for _, line in parent.output_queue])
"""


def test_a_component_whose_process_ends_is_started_again_and_stops_when_it_is_told_to(tmp_path: Path) -> None:
    """A script in the place of `airflow`: its first run leaves a process with its output, its second one stays."""
    script = tmp_path / "airflow"
    script.write_text(
        f"#!/bin/sh\necho $*\n[ -e {tmp_path}/ran ] && exec sleep 60\ntouch {tmp_path}/ran\nsleep 300 &\nexit 3\n"
    )
    script.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM % path],
        cwd=ROOT,
        env={**os.environ, "PATH": path, "AIRFLOW_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "the scheduler ended by itself with status 3; it is started again in 1 s" in done.stdout
    assert "stopped [b'scheduler --skip-serve-logs\\n', b'scheduler --skip-serve-logs\\n']" in done.stdout
