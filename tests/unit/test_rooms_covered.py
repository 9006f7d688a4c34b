"""`make coverage`: what the fast tests run of each room."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.rooms_covered import Covered, main, read, rooms, table

FILES = [
    Covered("log_lake/lake/pool.py", 30, 30),
    Covered("log_lake/lake/deep/er.py", 10, 0),
    Covered("lake_core/keys/text.py", 10, 9),
    Covered("lake_core/naming.py", 4, 4),
    Covered("lake_core/faces.py", 4, 0),
    Covered("lake_core/values/__init__.py", 0, 0),
]


def test_a_room_is_a_package_or_a_sub_package_and_the_least_covered_comes_first() -> None:
    assert rooms(FILES) == [
        Covered("lake_core", 8, 4),
        Covered("log_lake/lake", 40, 30),
        Covered("lake_core/keys", 10, 9),
        Covered("lake_core/values", 0, 0),
    ]


def test_a_line_a_room_and_one_for_all() -> None:
    first, *_, last = table(FILES).splitlines()
    assert first == "lake_core                          8 lines   50.0%"
    assert last == "all                               58 lines   74.1%"


def test_without_figures_there_is_no_table(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="nothing was measured"):
        main(tmp_path / ".coverage")


def test_files_are_read_also_those_of_which_no_line_ran(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.coverage.run]\nsource = ["house"]\n')
    room = tmp_path / "house" / "room"
    room.mkdir(parents=True)
    for folder in (room.parent, room):
        (folder / "__init__.py").write_text("")
    (room / "used.py").write_text("def f(x):\n    if x:\n        return 1\n    return 2\n\n\nf(0)\n")
    (room / "unused.py").write_text("a = 1\nb = 2\n")
    (tmp_path / "main.py").write_text("import house.room.used\n")
    command = [sys.executable, "-m", "coverage", "run", "main.py"]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=600)
    found = {one.name: (one.lines, one.ran) for one in read(tmp_path / ".coverage", root=tmp_path)}
    assert found["house/room/used.py"] == (5, 4)
    assert found["house/room/unused.py"] == (2, 0)
    assert "main.py" not in found
