"""Whoever is killed: retention and erasures delete nothing that is needed, and leave nothing over."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.kills.killed_keepers import stress


@pytest.mark.slow
def test_nothing_that_is_needed_is_deleted_and_nothing_is_left_over_whoever_is_killed(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    done = stress(str(tmp_path / "lake"), seconds=30, folder=notes, moment=3.0, pause=0.3, grace=6)
    assert done["reads"] > 0
    assert done["leased reads"] > 0
    assert done["vacuumed"] > 0
    assert done["erasures"] > 0
