"""The changes that `make mutants` makes, and the list of those that live for a reason."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from local.mutation.__main__ import FOLDERS, NoTests, ReachOfTests, batches, is_seen, survivors
from local.mutation.changes import LineChange, changed, changes
from tests.support.repository import ROOT

SOURCE = """
def refuse(a, b, found):
    if a is None or b > a + 1:
        raise ValueError(f"{a == b}")
    check(a)
    log.info("%s", a == b)
    return not found
"""


def test_each_kind_of_change_is_made_and_words_are_left() -> None:
    made = {change.name.removeprefix("refuse: ") for change in changes(SOURCE)}
    assert made == {
        "guard: if a is None or b > a + 1: ... -> if False and (a is None or b > a + 1): ...",
        "join: a is None or b > a + 1 -> a is None and b > a + 1",
        "part: a is None or b > a + 1 -> b > a + 1",
        "part: a is None or b > a + 1 -> a is None",
        "compare: a is None -> a is not None",
        "compare: b > a + 1 -> b >= a + 1",
        "shift: b > a + 1 -> b > a + 1 + 1",
        "one: a + 1 -> a",
        "call: check(a) -> pass",
        "not: not found -> found",
    }


def test_a_change_is_made_in_its_place_alone() -> None:
    change = next(one for one in changes(SOURCE) if one.kind == "call")
    assert "check(a)" not in changed(SOURCE, change)
    assert changed(SOURCE, change).count("pass") == 1
    assert change.line == 5


@pytest.mark.parametrize(
    ("file", "name"),
    [
        (
            "log_lake/vacuum/plan.py",
            "Keeping.keeps: shift: removal.version > self.leased -> removal.version > self.leased + 1",
        ),
        (
            "lake_core/history/vacuuming.py",
            "_check_begun: part: removal is None or removal.version > draft.read_version -> removal is None",
        ),
        (
            "lake_core/history/merge.py",
            "_check_replaces: shift: t.since > fork.parent_boundary -> t.since > fork.parent_boundary + 1",
        ),
    ],
)
def test_lines_that_once_could_break_unseen_are_among_the_changes(file: str, name: str) -> None:
    assert name in [change.name for change in changes(Path(file).read_text())]


def test_every_survivor_is_still_a_change_of_the_code() -> None:
    for one in survivors():
        assert one.file.startswith(FOLDERS)
        assert one.change in [change.name for change in changes(Path(one.file).read_text())], one
        assert len(one.reason) > 20, one


CORE = """
def is_more(a, b):
    return a > b
"""
TESTS_OF_CORE = """
from core import is_more

def test_equal(): assert not is_more(1, 1)

def test_more(): assert is_more(2, 1)
"""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    (tmp_path / "core.py").write_text(CORE)
    (tmp_path / "test_core.py").write_text(TESTS_OF_CORE)
    (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = .\n")
    return tmp_path


def at_least() -> LineChange:
    """`>` becomes `>=`."""
    (change,) = [change for change in changes(CORE) if change.kind == "compare"]
    return change


@pytest.mark.parametrize(("test", "seen"), [("test_equal", True), ("test_more", False)])
def test_a_change_is_seen_if_a_test_fails(copy: Path, test: str, seen: bool) -> None:
    assert is_seen(copy, "core.py", at_least(), [f"test_core.py::{test}"]) is seen
    assert (copy / "core.py").read_text() == CORE


@pytest.mark.parametrize("test", ["test_core.py::test_gone", "test_gone.py::test_equal"])
def test_a_test_that_is_not_there_sees_nothing_and_ends_the_run(copy: Path, test: str) -> None:
    with pytest.raises(NoTests, match=r"core\.py:3: its tests are not there:\n(.|\n)*not found: .*_gone"):
        is_seen(copy, "core.py", at_least(), ["test_core.py::test_more", test])


@pytest.mark.parametrize("importer", ["conftest.py", "test_core.py"])
def test_a_change_that_breaks_an_import_is_seen(copy: Path, importer: str) -> None:
    """pytest ends with 4 if a conftest.py cannot be imported, with 2 if a test cannot."""
    (copy / importer).write_text(f"from core import is_more\nassert not is_more(1, 1)\n{TESTS_OF_CORE}")
    assert is_seen(copy, "core.py", at_least(), ["test_core.py::test_more"])


def test_a_run_on_a_measure_of_tests_that_are_gone_ends_with_an_error(tmp_path: Path) -> None:
    files = [path.relative_to(ROOT).as_posix() for path in (ROOT / "log_lake/leases").glob("*.py")]
    reach = {"tests/unit/test_gone.py::test_it": (0.1, {file: list(range(1, 1000)) for file in files})}
    (tmp_path / "reach.json").write_text(json.dumps(reach))
    words = ["1", "--folder", "log_lake/leases", "--reach", str(tmp_path / "reach.json")]
    command = [sys.executable, "-m", "local.mutation", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 2
    assert "its tests are not there:" in done.stderr
    assert done.stderr.endswith("measure again: --reach with the name of a new file\n")


def test_the_tests_of_a_files_room_run_first_and_none_beyond_their_time() -> None:
    own, other, late = (
        "tests/unit/history/test_a.py::test_a",
        "tests/unit/lake/test_b.py::test_b",
        "tests/unit/history/test_c.py::test_c",
    )
    file = "lake_core/history/merge.py"
    reach: ReachOfTests = {
        late: (9.0, {file: [7]}),
        other: (0.1, {file: [7]}),
        own: (2.0, {file: [7]}),
        "tests/unit/history/test_d.py::test_d": (0.1, {file: [8]}),
    }
    assert batches(reach, file, 7, seconds=20) == [[own, late], [other]]
    assert batches(reach, file, 7, seconds=10) == [[own], [other]]
    assert batches(reach, file, 9, seconds=10) == []


def test_the_lines_that_a_test_reaches_are_measured(tmp_path: Path) -> None:
    (tmp_path / "core").mkdir()
    (tmp_path / "core/rule.py").write_text(CORE)
    (tmp_path / "test_core.py").write_text(TESTS_OF_CORE.replace("from core", "from core.rule"))
    environment = {
        **os.environ,
        "LAKE_MUTATION_FOLDERS": "core",
        "LAKE_MUTATION_REACH": str(tmp_path / "reach.json"),
        "PYTHONPATH": f"{tmp_path}:{ROOT}",
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "local.mutation.reach", "test_core.py"]
    subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True)
    reach = json.loads((tmp_path / "reach.json").read_text())
    assert {test: files for test, (_, files) in reach.items()} == {
        "test_core.py::test_equal": {"core/rule.py": [3]},
        "test_core.py::test_more": {"core/rule.py": [3]},
    }
