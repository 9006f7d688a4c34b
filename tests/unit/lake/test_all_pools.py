"""One tag on every pool: all or none, on the versions that were read first."""

from __future__ import annotations

import logging

import pyarrow as pa
import pytest

from lake_core import naming
from lake_core.errors import AlreadyExists, NotFound, Unavailable
from log_lake.lake import Lake
from log_lake.lake.all_pools import delete_from_all, tag_all
from tests.support.stores import ALWAYS, ScriptedStore, unavailable

POOLS = ("a", "b", "c")


def load(lake: Lake, pool: str, *keys: int) -> None:
    lake.pool(pool).branch().append(pa.table({"k": list(keys)}))


def lake_of(store: ScriptedStore, *, empty: tuple[str, ...] = ()) -> Lake:
    lake = Lake.create_on(store.behind)
    for name in (*POOLS, *empty):
        lake.create_pool(name, key="k")
    for name in POOLS:
        load(lake, name, 1)
    return Lake.open_on(store)


def tagged(store: ScriptedStore) -> list[str]:
    lake = Lake.open_on(store.behind)
    return [name for name in POOLS if "close" in lake.pool(name).tags]


def keys(lake: Lake, revision: str) -> list[list[int]]:
    return [lake.pool(name).at(revision).to_table()["k"].to_pylist() for name in POOLS]


@pytest.fixture
def store() -> ScriptedStore:
    return ScriptedStore()


def entry(lake: Lake, pool: str, version: int) -> str:
    return naming.entry(lake.pool(pool).history.journal.name, version)


def test_every_pool_has_the_tag_on_its_newest_version(store: ScriptedStore) -> None:
    lake = lake_of(store, empty=("d",))
    lake.pool("b").create_branch("dev")
    done = tag_all(lake, "close", reason="the books are closed")
    assert (sorted(done.pools), done.empty) == (list(POOLS), ("d",))
    load(lake, "a", 2)
    assert keys(lake, "close") == [[1], [1], [1]]
    assert keys(lake, "main") == [[1, 2], [1], [1]]
    assert lake.pool("b").tags["close"].branch == "main"
    assert lake.pool("c").tags["close"].reason == "the books are closed"


def test_a_load_that_begins_after_all_pools_were_read_is_in_no_tag(store: ScriptedStore) -> None:
    lake = lake_of(store)
    other = Lake.open_on(store.behind)

    def elsewhere() -> None:
        for name in POOLS:
            load(other, name, 2)

    store.on("create", entry(lake, "a", 2), before=elsewhere)
    tag_all(lake, "close")
    assert keys(lake, "close") == [[1], [1], [1]]
    assert keys(lake, "main") == [[1, 2], [1, 2], [1, 2]]


def test_a_name_that_one_pool_has_is_refused_before_anything_is_set(store: ScriptedStore) -> None:
    lake = lake_of(store)
    lake.pool("c").create_branch("close")
    with pytest.raises(AlreadyExists, match="pools c have a tag or a branch 'close' already"):
        tag_all(lake, "close")
    assert tagged(store) == []


def test_if_one_pool_fails_no_pool_keeps_the_tag(
    store: ScriptedStore, caplog: pytest.LogCaptureFixture
) -> None:
    lake = lake_of(store)
    store.on("create", entry(lake, "c", 2), instead=unavailable, times=ALWAYS)
    with caplog.at_level(logging.WARNING), pytest.raises(Unavailable):
        tag_all(lake, "close")
    assert tagged(store) == []


def test_what_cannot_be_taken_back_is_said_and_deleted_later(
    store: ScriptedStore, caplog: pytest.LogCaptureFixture
) -> None:
    lake = lake_of(store)
    store.on("create", entry(lake, "c", 2), instead=unavailable, times=ALWAYS)
    taking_back = entry(lake, "a", 3)
    store.on("create", taking_back, instead=unavailable, times=ALWAYS)
    with pytest.raises(Unavailable):
        tag_all(lake, "close")
    assert tagged(store) == ["a"]
    assert "pool 'a' may keep the tag 'close'" in caplog.text
    lake = Lake.open_on(store.behind)
    assert list(delete_from_all(lake, "close").pools) == ["a"]
    with pytest.raises(NotFound, match="no pool has a tag 'close'"):
        delete_from_all(lake, "close")
    assert len(tag_all(lake, "close").pools) == 3


def test_a_lake_without_a_transaction_has_nothing_to_tag(store: ScriptedStore) -> None:
    lake = Lake.create_on(store)
    lake.create_pool("a", key="k")
    with pytest.raises(NotFound, match="nothing to tag"):
        tag_all(lake, "close")
