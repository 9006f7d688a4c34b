"""What `make check` and `make test` say: a line a folder; failures named at once, and shown whole at the end."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.repository import ROOT
from tests.support.rotation import LAST, Choice
from tests.support.side_by_side import GROUPS, groups, main
from tests.support.side_by_side import run as run_commands

PLAIN = ("-p", "no:cacheprovider", "-p", "no:randomly")
"""Tests in their order, for who has pytest-randomly too."""

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


def run(folder: Path, silence: str = "3600", /, **files: str) -> tuple[int, str]:
    """pytest's status and output, on these files of tests; each in a folder with a conftest of its own."""
    make(folder, **files)
    options = [
        "-q",
        "-p",
        "tests.support.parts",
        "-o",
        "console_output_style=classic",
        "--import-mode=importlib",
    ]
    words = ["tests", *options, "--rootdir", str(folder), *PLAIN]
    return finished(folder, "pytest", *words, LAKE_TEST_SILENCE=silence)


def make(folder: Path, **files: str) -> None:
    for name, text in files.items():
        (folder / "tests" / name).mkdir(parents=True)
        (folder / "tests" / name / "conftest.py").touch()
        (folder / "tests" / name / f"test_{name}.py").write_text(text)


def finished(folder: Path, module: str, *words: str, **environ: str) -> tuple[int, str]:
    """The status and the output of a module that is run in the folder."""
    done = subprocess.run(
        [sys.executable, "-m", module, *words],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), **environ},
        capture_output=True,
        text=True,
        timeout=600,
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


SLOW = """
import time

def test_slow(capfd):
    time.sleep(1.5)  # several times LAKE_TEST_SILENCE

def test_quick(): pass
"""


def test_a_part_that_is_silent_for_long_says_which_test_it_is_at(tmp_path: Path) -> None:
    _, said = run(tmp_path, "0.2", slow=SLOW)
    lines = said.splitlines()
    assert lines[0].rstrip() == "tests/slow"
    assert re.fullmatch(r"still: tests/slow/test_slow.py::test_slow, after 0 tests, \d+ s", lines[1])
    assert re.search(r"^tests/slow +2 passed +\d+ s$", said, re.MULTILINE)


def side_by_side(folder: Path, *words: str, **files: str) -> tuple[int, list[str]]:
    """The status and the lines of `make test` on these files."""
    make(folder, **files)
    (folder / "pytest.ini").write_text(f"[pytest]\naddopts = {' '.join(PLAIN)}\n")
    status, said = finished(folder, "tests.support.side_by_side", *words, LAKE_TEST_SILENCE="3600")
    return status, [line.rstrip() for line in said.splitlines()]


ONE = "def test_one(): pass\n"


@pytest.mark.parametrize("at_once", [1, 9])
def test_side_by_side_every_folder_is_a_line_and_the_end_of_each_process_another(
    tmp_path: Path, at_once: int
) -> None:
    files = dict.fromkeys(("airflow", "spark", "unit", "another", "other"), ONE)
    status, lines = side_by_side(tmp_path, f"--at-once={at_once}", **files)
    parts = [re.sub(r" +\d+ s$", "", line) for line in lines if line.startswith("tests/")]
    assert status == 0
    assert sorted(parts) == [f"tests/{name:12} 1 passed" for name in sorted(files)]
    if at_once == 1:
        begun = [line.split()[0].removeprefix("tests/") for line in parts]
        assert begun == ["unit", "spark", "another", "other", "airflow"], "in the order of the groups"
    rest = [re.sub(r"[\d.]+s$", "", line) for line in lines if line and not line.startswith("tests/")]
    assert sorted(rest) == ["1 passed in "] * 3 + ["2 passed in "]


def test_every_test_is_in_one_group_whatever_the_rotation_chose() -> None:
    """Of this repository: folders and files that a group names are left out by those around them."""
    there = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("tests/**/test_*.py"))
    for containers in (None, Choice(frozenset(), ""), Choice(frozenset([f"tests/{LAST}/"]), "")):
        asked = groups("tests", containers)
        taken = sorted(path for words in asked for path in there if takes(words, path))
        assert taken == there
        assert len(asked) == len(GROUPS) + bool(containers and containers.slow)


def takes(words: list[str], path: str) -> bool:
    """Whether pytest finds the file by these arguments."""
    left_out = [word.removeprefix("--ignore=") for word in words if word.startswith("--ignore=")]
    begins = [word for word in words if not word.startswith("--")]
    within = [
        any(path == begin or path.startswith(f"{begin}/") for begin in some) for some in (begins, left_out)
    ]
    return within == [True, False]


def test_each_name_of_a_group_is_there() -> None:
    assert [name for group in GROUPS for name in group if not (ROOT / "tests" / name).exists()] == []


def test_side_by_side_says_first_which_slow_tests_run(tmp_path: Path) -> None:
    make(tmp_path, other=ONE)
    (tmp_path / "pytest.ini").write_text(f"[pytest]\naddopts = {' '.join(PLAIN)}\n")
    for part in ("1/5", "5/5"):  # whatever the diff of HEAD asks for; there are no containers in this folder
        status, said = finished(tmp_path, "tests.support.side_by_side", LAKE_TEST_PART=part)
        assert status == 0
        assert re.match(rf"slow tests: \d+ minutes of \d+; (containers/ in place of )?part {part}", said)
    status, said = finished(tmp_path, "tests.support.side_by_side", LAKE_TEST_PART="6/5")
    assert status == 2
    assert said.splitlines()[-1].endswith("a part is a number and how many there are, such as 1/5")


@pytest.mark.parametrize("bad", ["spark", "unit"])
def test_side_by_side_a_failure_of_any_process_fails_the_whole_and_is_shown(tmp_path: Path, bad: str) -> None:
    files = dict.fromkeys(("airflow", "spark", "unit", "other"), ONE) | {
        bad: "def test_bad():\n    assert 1 == 2\n"
    }
    status, lines = side_by_side(tmp_path, **files)
    name = f"tests/{bad}/test_{bad}.py::test_bad"
    assert status == 1
    assert lines.count(f"failed: {name}") == 1
    assert "E       assert 1 == 2" in lines
    assert any(line.startswith(f"FAILED {name}") for line in lines)
    assert sum(line.startswith("tests/unit ") for line in lines) == 1


def test_side_by_side_a_group_that_finds_no_test_fails_the_whole(tmp_path: Path) -> None:
    status, lines = side_by_side(tmp_path, airflow="", other=ONE)
    assert status == 5
    assert any(line.startswith("no tests ran") for line in lines)


LONGEST = 600.0


def python(text: str) -> list[str]:
    return [sys.executable, "-c", text]


FINE = python("print('tests/fine  1 passed  1 s')")


@pytest.mark.parametrize("at_once", [1, 2])
def test_side_by_side_bytes_that_are_no_text_are_shown_and_the_status_counts(
    at_once: int, capfd: pytest.CaptureFixture[str]
) -> None:
    bad = python("import os; os.write(1, b'failed: a\\xff\\n'); os._exit(3)")
    assert run_commands([bad, FINE, FINE], seconds=LONGEST, at_once=at_once) == 3
    said = capfd.readouterr().out
    assert r"failed: a\xff" in said
    assert said.count("tests/fine") == 2, "those that waited run as well"


@pytest.mark.parametrize("at_once", [1, 2])
def test_side_by_side_what_cannot_be_begun_has_failed_and_the_others_run(
    tmp_path: Path, at_once: int, capfd: pytest.CaptureFixture[str]
) -> None:
    missing = str(tmp_path / "no-such")
    assert run_commands([[missing], FINE, FINE], seconds=LONGEST, at_once=at_once) == 1
    out, err = capfd.readouterr()
    assert out.count("tests/fine") == 2
    assert err.startswith(f"cannot begin {missing}: ")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_side_by_side_what_cannot_be_shown_has_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (tmp_path / "closed").open("w") as closed:
        monkeypatch.setattr(sys, "stdout", closed)
    assert run_commands([FINE], seconds=LONGEST, at_once=1) == 1


def test_side_by_side_without_a_process_at_once_nothing_is_green(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_commands([FINE], seconds=LONGEST, at_once=0) == 1
    for number in ("0", "-1"):
        with pytest.raises(SystemExit) as refused:
            main([f"--at-once={number}"])
        assert refused.value.code == 2
        assert f"--at-once={number}: how many" in capsys.readouterr().err


def wait_until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LONGEST
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.05)


ENDLESS = """
import os, pathlib, time

def test_endless():
    pathlib.Path("begun-{name}").write_text(str(os.getpid()))
    time.sleep(600)
"""


def test_side_by_side_all_processes_end_when_their_time_is_over_and_no_other_begins(tmp_path: Path) -> None:
    files = {name: ENDLESS.replace("{name}", name) for name in ("other", "spark", "unit")}
    status, lines = side_by_side(tmp_path, "--seconds=0.5", "--at-once=2", **files)
    assert status == 124
    assert not any(line.startswith("tests/unit") for line in lines)
    assert "stopped after 0 s (TEST_SECONDS sets the bound)" in lines


def test_side_by_side_all_processes_end_when_it_is_terminated(tmp_path: Path) -> None:
    make(tmp_path, **{name: ENDLESS.replace("{name}", name) for name in ("other", "spark")})
    command = [sys.executable, "-m", "tests.support.side_by_side", "--at-once=2"]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, cwd=tmp_path, env=environ, stdout=subprocess.DEVNULL) as running:
        begun = [tmp_path / "begun-spark", tmp_path / "begun-other"]
        wait_until(lambda: all(path.exists() and path.read_text() for path in begun))
        running.terminate()
        assert running.wait(LONGEST) == 143
    assert not any(Path("/proc", path.read_text()).exists() for path in begun)
