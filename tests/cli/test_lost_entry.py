"""An entry of a pool is lost, and a load puts another one in its place: every command says so, none guesses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lake_core import naming
from log_lake.stores.local import LocalStore
from tests.support.command import CORRUPT, DONE, Command
from tests.support.damage import lose_and_replace

COMMANDS = [
    ("scan", "p"),
    ("get", "p", "3"),
    ("query", 'select count(*) from "p"'),
    ("query", 'select * from "p:log"'),
    ("log", "p"),
    ("compact", "p"),
    ("delete", "p", "--where", "k = 3"),
    ("checkpoint", "p"),
    ("vacuum", "p", "--dry-run"),
]


@pytest.fixture
def journal(lake: Command) -> str:
    """A pool of the keys 0 to 5, one a load; the third entry is lost, and another load has taken its version."""
    lake.pool("p")
    for k in range(6):
        lake.load_records("p", [{"k": k}], f"{k}.ndjson")
    (folder,) = Path(lake.uri).glob("*/journal")
    name = str(folder.relative_to(lake.uri))
    replace(lake, name, 3, lambda: lake.load_records("p", [{"k": 9}], "9.ndjson"))
    return name


def replace(lake: Command, journal: str, version: int, load: Callable[[], object]) -> None:
    lose_and_replace(LocalStore(Path(lake.uri)), journal, version, load)


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words))
def test_no_command_folds_what_follows_onto_the_other_entry(
    lake: Command, journal: str, words: tuple[str, ...]
) -> None:
    before = sorted(Path(lake.uri).rglob("*.txn"))
    failed = lake.run(*words)
    assert failed.status == CORRUPT
    assert naming.entry(journal, 3) in failed.err
    assert "lake fsck POOL" in failed.err
    assert sorted(Path(lake.uri).rglob("*.txn")) == before


def test_a_load_is_refused_and_fsck_says_what_to_do(lake: Command, journal: str) -> None:
    file = lake.folder / "0.ndjson"
    assert lake.run("load", "p", str(file)).status == CORRUPT
    checked = lake.run("fsck", "p")
    assert checked.status == CORRUPT
    first = checked.out.splitlines()[0]
    assert first.startswith(f"damage: entry_replaced: {naming.entry(journal, 3)}: ")
    assert "lake rebuild p --name NEW" in first


def test_a_rebuilt_pool_has_the_records_of_both_entries(lake: Command, journal: str) -> None:
    assert lake.run("rebuild", "p", "--name", "q", "--yes").status == DONE
    assert lake.run("scan", "q").records == [{"k": k} for k in (0, 1, 2, 3, 4, 5, 9)]
    assert lake.run("fsck", "q").status == DONE


def test_the_list_of_pools_is_held_to_the_same(lake: Command) -> None:
    for name in ("a", "b", "c"):
        lake.pool(name)
    replace(lake, naming.POOLS_JOURNAL, 2, lambda: lake.pool("other"))
    for words in (("ls",), ("create", "d", "--key", "k"), ("scan", "c")):
        failed = lake.run(*words)
        assert failed.status == CORRUPT
        assert naming.entry(naming.POOLS_JOURNAL, 2) in failed.err
    assert lake.run("fsck", "lake:pools").out.startswith("damage: entry_replaced: ")
