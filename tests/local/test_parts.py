"""What `make check` and `make test` say: a line a folder; failures named at once, and shown whole at the end."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.support.repository import ROOT

GOOD = """
import pytest

def test_one(): pass

@pytest.mark.skip
def test_two(): pass

@pytest.mark.xfail
def test_three(): assert False
"""
BAD = """
import pytest

@pytest.fixture
def early(): raise OSError("early")

@pytest.fixture
def late():
    yield
    raise OSError("late")

def test_call(): assert 1 == 2
def test_setup(early): pass
def test_teardown(late): pass
"""


def run(folder: Path, **files: str) -> tuple[int, str]:
    """pytest's status and output, on these files of tests; each in a folder with a conftest of its own."""
    for name, text in files.items():
        (folder / "tests" / name).mkdir(parents=True)
        (folder / "tests" / name / "conftest.py").touch()
        (folder / "tests" / name / f"test_{name}.py").write_text(text)
    options = [
        "-q",
        "-p",
        "tests.support.parts",
        "-o",
        "console_output_style=classic",
        "--import-mode=importlib",
    ]
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "tests",
            *options,
            "--rootdir",
            str(folder),
            "-p",
            "no:cacheprovider",
        ],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_a_folder_is_a_line_with_its_tests_and_its_seconds(tmp_path: Path) -> None:
    status, said = run(tmp_path, first=GOOD, second=GOOD)
    first, second, *rest = said.splitlines()
    for name, line in (("first", first), ("second", second)):
        assert re.fullmatch(rf"tests/{name} +1 passed, 1 skipped, 1 xfailed +\d+ s", line)
    assert (status, rest[0]) == (0, "")
    assert rest[1].startswith("2 passed, 2 skipped, 2 xfailed in ")


def test_a_failure_is_named_at_once_and_shown_at_the_end(tmp_path: Path) -> None:
    status, said = run(tmp_path, bad=BAD, good=GOOD)
    lines = said.splitlines()
    assert status == 1
    assert [line.rstrip() for line in lines[:4]] == [
        "tests/bad",
        "failed: tests/bad/test_bad.py::test_call",
        "error: tests/bad/test_bad.py::test_setup",
        "error: tests/bad/test_bad.py::test_teardown",
    ]
    assert re.fullmatch(r"tests/bad +2 error, 1 failed, 1 passed +\d+ s", lines[4])
    assert re.fullmatch(r"tests/good +1 passed, 1 skipped, 1 xfailed +\d+ s", lines[5])
    for shown in (
        "assert 1 == 2",
        "OSError: early",
        "OSError: late",
        "FAILED tests/bad/test_bad.py::test_call",
    ):
        assert shown in said
