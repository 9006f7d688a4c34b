"""No file of the product is too long to read at once, and none is so short that its only user could hold it.

A short module has its place if several use it, or if its user is in another folder.  What the tests share counts as
a user, since such a module is then apart for its own sake.
"""

from __future__ import annotations

from pathlib import Path

from tests.support.repository import ROOT
from tests.unit.test_no_circles import FILES, imported

MOST_LINES = 450
FEWEST_LINES = 40
"""Of a module that one module of its folder uses alone."""

MOST_LINES_OF_CORE = 15_000
"""Of `lake_core`, so that an heir reads it whole before changing it (decisions 228, 270, 503).  Code that only
log_lake uses goes there."""

PRODUCT = {module: path for module, path in FILES.items() if not module.startswith("benchmarks")}


def lines(path: Path) -> int:
    return len(path.read_text().splitlines())


def test_no_file_has_more_lines_than_a_person_reads_at_once() -> None:
    assert {module: lines(path) for module, path in PRODUCT.items() if lines(path) > MOST_LINES} == {}


def test_the_core_stays_small() -> None:
    core = {module: lines(path) for module, path in PRODUCT.items() if module.split(".")[0] == "lake_core"}
    assert len(core) > 50
    assert sum(core.values()) <= MOST_LINES_OF_CORE


def test_no_short_module_has_a_single_user_beside_it() -> None:
    users: dict[str, set[Path]] = {module: set() for module in FILES}
    for path in (*FILES.values(), *(ROOT / "tests/support").rglob("*.py")):
        for module in imported(path):
            users[module].add(path)
    alone = {
        module: str(using.pop().relative_to(ROOT))
        for module, path in PRODUCT.items()
        if path.name != "__init__.py"
        and lines(path) < FEWEST_LINES
        and len(using := users[module] - {path}) == 1
        and next(iter(using)).parent == path.parent
    }
    assert alone == {}
