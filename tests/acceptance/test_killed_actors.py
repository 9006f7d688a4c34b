"""Loads, deletes, replaces, compactions and applied deletes beside each other are as one after the other."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.kills.killed_actors import stress


@pytest.mark.slow
def test_the_state_is_the_replay_of_what_landed_whoever_was_killed(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    found = stress(str(tmp_path / "lake"), seconds=30, folder=notes, moment=3.0, pause=0.3)
    assert found["acknowledged"] > 0
    assert found["killed"] > 0
    assert found["compactions"] > 0
