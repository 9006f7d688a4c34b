"""Killed writers and a killed purger lose nothing that was acknowledged, and leave nothing in the way."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.kills.killed_writers import stress


@pytest.mark.slow
def test_what_was_acknowledged_is_there_once_whoever_was_killed(tmp_path: Path) -> None:
    notes = tmp_path / "acknowledged"
    notes.mkdir()
    found = stress(str(tmp_path / "lake"), seconds=20, writers=4, folder=notes)
    assert found["acknowledged"] > 0
    assert found["killed"] > 0


@pytest.mark.slow
def test_loads_and_compactions_go_on_beside_each_other_whoever_is_killed(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    found = stress(str(tmp_path / "lake"), seconds=30, writers=4, folder=notes, compactors=2, moment=3.0)
    assert found["acknowledged"] > 0
    assert found["compactions"] > 0
