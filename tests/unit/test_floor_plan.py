"""The rooms of lake_core are listed in three places, which must say the same."""

from __future__ import annotations

import doctest
import re
import tomllib

import pytest

import lake_core
from tests.support.repository import ROOT

CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
(LAYERS,) = [contract["layers"] for contract in CONTRACTS if contract["type"] == "layers"]
FLOORS = [re.split(r"\s*\|\s*", layer) for layer in LAYERS]
"""From the top down; rooms of one floor do not import each other."""


def test_every_room_stands_on_a_floor() -> None:
    there = {
        path.stem
        for path in (ROOT / "lake_core").iterdir()
        if not path.name.startswith("_") and (path.is_dir() or path.suffix == ".py")
    }
    assert sorted(room for floor in FLOORS for room in floor) == sorted(there)


def test_the_tour_of_the_package_lists_the_rooms_from_the_top_down() -> None:
    told = re.findall(r"^    ([a-z_]+)  +[^ ]", lake_core.__doc__ or "", re.MULTILINE)
    assert told == [room for floor in FLOORS for room in floor]


def test_the_example_of_the_tour_runs() -> None:
    results = doctest.testmod(lake_core)
    assert results.attempted
    assert not results.failed


@pytest.mark.parametrize("floor", FLOORS, ids=lambda floor: "-".join(floor))
def test_the_architecture_page_names_every_room(floor: list[str]) -> None:
    page = (ROOT / "docs/architecture.md").read_text()
    assert all(f"`{room}`" in page or f"`{room}/`" in page for room in floor)
