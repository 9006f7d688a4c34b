"""A journal of which a part, or all, is gone is never a shorter one: it is Corrupt, also for a first reader."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from lake_core import naming
from lake_core.errors import Corrupt, JournalLost, Unavailable
from lake_core.journal.purge import write_newest
from lake_core.store import Store
from log_lake.cli.main import main
from log_lake.lake import Lake
from log_lake.stores.local import LocalStore
from log_lake.stores.memory import MemoryStore
from tests.support.agents import find
from tests.support.stores import ALWAYS, ScriptedStore, unavailable

STORES: dict[str, Callable[[Path], Store]] = {
    "a store that lists from a name on": lambda folder: MemoryStore(),
    "a folder": LocalStore,
}


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return STORES[request.param](tmp_path)


def filled(store: Store, loads: int) -> str:
    """A pool of so many loads, without a HEAD; returns its journal."""
    pool = Lake.create_on(store).create_pool("p", key="k")
    for number in range(loads):
        pool.branch().append(pa.table({"k": [number]}))
    store.delete(naming.head(pool.history.journal.name))
    return pool.history.journal.name


def read(store: Store) -> list[int]:
    keys: list[int] = Lake.open_on(store).pool("p").at().to_table()["k"].to_pylist()
    return keys


@pytest.mark.parametrize(
    "hole", [[n] for n in range(1, 13)] + [[3, 4], [5, 6, 7], [7, 8, 9, 10, 11], [1, 2, 3]]
)
def test_a_first_reader_without_a_hint_sees_every_hole(store: Store, hole: list[int]) -> None:
    journal = filled(store, 13)
    assert read(store) == list(range(13))
    for version in hole:
        store.delete(naming.entry(journal, version))
    for _ in range(2):  # nothing is remembered of a journal with a hole
        with pytest.raises(Corrupt, match=rf"{hole[0]}\.txn: missing, and not purged"):
            read(store)
    lake = Lake.open_on(store)
    for _ in range(2):
        with pytest.raises(Corrupt):
            lake.pool("p").at()


def test_a_first_read_asks_no_more_for_it() -> None:
    """One listing shows entries and marks; nothing else is asked of a journal with entries."""
    store = ScriptedStore()
    journal = filled(store, 3)
    pool = Lake.open_on(store).pool("p")
    store.requests.clear()
    pool.history.load()
    entries = [("get", naming.entry(journal, version)) for version in (1, 2, 3)]
    assert sorted(store.requests) == sorted([*entries, ("list", journal)])


def test_a_pool_whose_journal_is_gone_is_corrupt_and_not_empty(store: Store) -> None:
    journal = filled(store, 1)
    store.delete_all([info.name for info in store.list(journal)])
    lake = Lake.open_on(store)
    for _ in range(2):
        with pytest.raises(Corrupt, match=r"had entries, and all of it is gone; .* lake rebuild"):
            lake.pool("p").at()
        with pytest.raises(Corrupt, match="all of it is gone"):
            lake.pool("p").branch().append(pa.table({"k": [1]}))
    assert [info.name for info in store.list(journal)] == []


def test_a_reader_whose_question_for_the_sign_fails_asks_again() -> None:
    store = ScriptedStore()
    journal = filled(store, 1)
    store.delete_all([info.name for info in store.list(journal)])
    pool = Lake.open_on(store).pool("p")
    store.on("get", naming.begun(journal), instead=unavailable)
    with pytest.raises(Unavailable):
        pool.history.load()
    with pytest.raises(JournalLost):
        pool.history.load()


def test_a_list_of_pools_that_is_gone_is_corrupt_and_no_new_lake(store: Store) -> None:
    filled(store, 1)
    store.delete_all([info.name for info in store.list("pools")])
    with pytest.raises(Corrupt, match="pools: this journal had entries"):
        Lake.open_on(store).pools()
    with pytest.raises(Corrupt, match="all of it is gone"):
        Lake.open_on(store).create_pool("q", key="k")


def test_a_pool_without_transactions_is_empty_whatever_lies_in_its_folder(store: Store) -> None:
    """A first load is under way, or was killed: its objects, its note and its lease are there, and no entry."""
    pool = Lake.create_on(store).create_pool("p", key="k")
    for name in (
        naming.data_object(pool.config.id, pool.context.ids.new()),
        naming.activity(pool.config.id),
        naming.lease(pool.config.id, pool.context.ids.new()),
    ):
        store.put(name, b"x")
    again = Lake.open_on(store).pool("p")
    assert again.at().to_table().num_rows == 0
    assert again.branch().append(pa.table({"k": [1]})).version == 1


def test_a_pool_whose_first_writer_died_before_the_sign_gets_it_with_a_checkpoint() -> None:
    store = MemoryStore()
    journal = filled(store, 1)
    store.delete(naming.begun(journal))
    branch = Lake.open_on(store).pool("p").branch()
    branch.append(pa.table({"k": [1]}))
    assert store.get(naming.begun(journal)) is None
    write_newest(branch.history.journal, new_id=branch.context.ids.new, now=0.0)
    assert store.get(naming.begun(journal)) is not None


def test_the_first_append_of_a_pool_alone_puts_the_sign() -> None:
    store = ScriptedStore()
    branch = Lake.create_on(store).create_pool("p", key="k").branch()
    signs = []
    for number in range(3):
        store.requests.clear()
        branch.append(pa.table({"k": [number]}))
        signs.append([r for r in store.requests if r[1] == naming.begun(branch.history.journal.name)])
    sign = naming.begun(branch.history.journal.name)
    assert signs[1:] == [[], []]
    assert signs[0] == [("put", sign)]
    store.requests.clear()
    Lake.open_on(store).pool("p").at()
    assert sign not in [name for _, name in store.requests], "only a journal without entries is asked for"


def test_a_first_append_whose_sign_is_refused_is_committed() -> None:
    store = ScriptedStore()
    pool = Lake.create_on(store).create_pool("p", key="k")
    store.on("put", naming.begun(pool.history.journal.name), instead=unavailable, times=ALWAYS)
    assert pool.branch().append(pa.table({"k": [1]})).version == 1
    assert read(store) == [1]


def test_the_command_and_fsck_say_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = LocalStore(tmp_path)
    journal = filled(store, 2)
    store.delete_all([info.name for info in store.list(journal)])
    assert main(["--lake", str(tmp_path), "scan", "p"]) == Corrupt.exit_status
    assert "all of it is gone" in capsys.readouterr().err
    assert main(["--lake", str(tmp_path), "fsck"]) == Corrupt.exit_status
    said = capsys.readouterr()
    assert "all of it is gone" in said.out + said.err
    assert main(["--lake", str(tmp_path), "rebuild", "p", "--name", "q", "--yes"]) == 0
    assert Lake.open(str(tmp_path)).pool("q").at().to_table()["k"].to_pylist() == [0, 1]


def test_the_other_pools_are_looked_at_and_worked_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = LocalStore(tmp_path)
    journal = filled(store, 2)
    sound = Lake.open_on(store).create_pool("sound", key="k")
    for number in range(3):
        sound.branch().append(pa.table({"k": [number]}))
    backup = {info.name: store.get(info.name) or b"" for info in store.list(journal)}
    store.delete_all(list(backup))
    lake = ["--lake", str(tmp_path)]
    assert main([*lake, "ls", "--json"]) == Corrupt.exit_status
    shown = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(one["pool"], one["records"], "lake rebuild" in (one["error"] or "")) for one in shown] == [
        ("p", None, True),
        ("sound", 3, False),
    ]
    assert main([*lake, "fsck", "sound"]) == 0
    data = next(store.list(naming.data(sound.config.id))).name
    kept = store.get(data) or b""
    store.put(data, b"x")
    assert main([*lake, "fsck", "--json"]) == Corrupt.exit_status
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(one["pool"], one["kind"]) for one in found] == [
        ("p", "journal_lost"),
        ("p", "unchecked"),
        ("sound", "object_damaged"),
    ]
    store.put(data, kept)
    work = find("compact", {"lake": str(tmp_path), "strategy": "full"})
    assert {one["title"].partition(",")[0] for one in work} == {"p: cannot be read", "sound: 1 job"}
    for name, content in backup.items():
        store.put(name, content)
    assert read(store) == [0, 1]


def test_a_journal_that_begins_while_it_is_read_is_not_gone() -> None:
    store = ScriptedStore()
    Lake.create_on(store).create_pool("p", key="k")
    reader = Lake.open_on(store).pool("p")
    sign = naming.begun(reader.history.journal.name)

    def begin() -> None:
        Lake.open_on(store.behind).pool("p").branch().append(pa.table({"k": [1]}))

    store.on("get", sign, before=begin)
    assert reader.at().to_table()["k"].to_pylist() == [1]
