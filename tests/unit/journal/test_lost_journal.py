"""A journal of which a part is gone is never a shorter one: it is Corrupt, also for a first reader."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from lake_core import naming
from lake_core.errors import Corrupt
from lake_core.lake import Lake
from lake_core.store import Store
from lake_core.store.local import LocalStore
from lake_core.store.memory import MemoryStore
from tests.support.stores import ScriptedStore

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
    """One listing from the end on, instead of one of the marks; nothing else is asked of a journal with entries."""
    store = ScriptedStore()
    journal = filled(store, 3)
    pool = Lake.open_on(store).pool("p")
    store.requests.clear()
    pool.history.load()
    entries = [("get", naming.entry(journal, version)) for version in (1, 2, 3)]
    around = [("list", naming.marks(journal)), ("get", naming.head(journal)), ("list", journal)]
    beyond = [("get", naming.entry(journal, version)) for version in range(4, 8)]  # the windows grow
    assert sorted(store.requests) == sorted([*entries, *around, *beyond])


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
