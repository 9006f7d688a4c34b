"""The rooms of both packages are listed in three places, which must say the same."""

from __future__ import annotations

import doctest
import re
from types import ModuleType

import pytest

import lake_core
import log_lake
from local import picture
from tests.support.repository import ROOT

PACKAGES = (lake_core, log_lake)


def rooms(package: ModuleType) -> list[str]:
    return [room for floor in picture.floors(package.__name__) for room in floor]


@pytest.mark.parametrize("package", PACKAGES)
def test_every_room_stands_on_a_floor(package: ModuleType) -> None:
    there = {
        path.stem
        for path in (ROOT / package.__name__).iterdir()
        if not path.name.startswith("_") and (path.is_dir() or path.suffix == ".py")
    }
    assert sorted(rooms(package)) == sorted(there)


@pytest.mark.parametrize("package", PACKAGES)
def test_the_tour_of_a_package_lists_the_rooms_from_the_top_down(package: ModuleType) -> None:
    listed = re.findall(r"^    ([a-z_]+)  +[^ ]", package.__doc__ or "", re.MULTILINE)
    assert listed == rooms(package)


def test_the_example_of_the_tour_runs() -> None:
    results = doctest.testmod(log_lake)
    assert results.attempted
    assert not results.failed


@pytest.mark.parametrize("package", PACKAGES)
def test_the_architecture_page_names_every_room(package: ModuleType) -> None:
    page = (ROOT / "docs/architecture.md").read_text()
    assert [room for room in rooms(package) if f"`{room}`" not in page and f"`{room}/`" not in page] == []


def test_the_picture_of_the_architecture_page_is_that_of_the_code() -> None:
    text = picture.PAGE.read_text()
    assert picture.with_picture(text) == text, "draw it anew: python -m local.picture"


def test_each_step_of_the_paths_names_files_that_exist() -> None:
    page = (ROOT / "docs/architecture.md").read_text()
    paths = page.partition("## Four paths")[2].partition("## Four ideas")[0]
    steps = re.findall(r"^\d+\. .*(?:\n(?!\d+\. |\n).*)*", paths, re.MULTILINE)
    assert len(steps) >= 20
    named = re.findall(r"`((?:lake_core|log_lake|spark_apps)/[\w/.]+)`", paths)
    assert [name for name in named if not (ROOT / name).exists()] == []
    assert len(named) >= 20
