"""The tests pass where whoever starts them ignores SIGINT: nohup, a background job, some runners."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from tests.support.repository import ROOT


def test_a_process_that_a_test_starts_can_be_interrupted() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", "import time; print(flush=True); time.sleep(600)"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdout is not None
        try:
            process.stdout.read(1)  # it has begun
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=600) == -signal.SIGINT
        finally:
            process.kill()


def test_so_it_can_below_a_pytest_that_ignores_it() -> None:
    name = test_a_process_that_a_test_starts_can_be_interrupted.__name__
    words = "trap '' INT; exec \"$@\""
    pytest = [sys.executable, "-m", "pytest", "-q", f"{Path(__file__).relative_to(ROOT)}::{name}"]
    done = subprocess.run(
        ["sh", "-c", words, "sh", *pytest], cwd=ROOT, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout
