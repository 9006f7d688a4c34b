"""The changes that `make mutants` makes, and the list of those that live for a reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from local.mutation.__main__ import FOLDERS, survivors
from local.mutation.changes import changed, changes

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
