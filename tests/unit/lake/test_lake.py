"""Making and opening a lake."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lake_core.errors import AlreadyExists, Conflict, Corrupt, InvalidInput, NotFound, Unavailable
from lake_core.store import Created
from log_lake.lake import Lake
from tests.support.stores import ALWAYS, ScriptedStore, lost

HEAD = "lake.json"


@pytest.fixture
def store() -> ScriptedStore:
    return ScriptedStore()


def test_a_lake_is_made_once(store: ScriptedStore) -> None:
    made = Lake.create_on(store)
    with pytest.raises(AlreadyExists):
        Lake.create_on(store)
    assert Lake.open_on(store).id == made.id


@pytest.mark.parametrize("answer", [lost, lambda _: Created.EXISTS], ids=["lost", "repeated by the client"])
def test_a_lake_whose_making_was_not_answered_is_known_again(
    store: ScriptedStore, answer: Callable[[object], Created]
) -> None:
    store.on("create", HEAD, answer=answer)
    made = Lake.create_on(store)
    assert Lake.open_on(store).id == made.id


def test_a_lake_that_somebody_else_made_just_then_is_a_conflict(store: ScriptedStore) -> None:
    store.on("create", HEAD, before=lambda: Lake.create_on(store.behind))
    with pytest.raises(Conflict, match="open that one"):
        Lake.create_on(store)


def test_a_lake_that_may_not_have_been_made_is_not_claimed(store: ScriptedStore) -> None:
    store.on("create", HEAD, instead=lost, times=ALWAYS)
    with pytest.raises(Unavailable):
        Lake.create_on(store)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"garbage",
        b"[]",
        b"{}",
        b'{"magic": "lake", "version": "x", "id": "i"}',
        b'{"magic": "lake", "version": 3, "id": "i"}',
        b'{"magic": "pond", "version": 1, "id": "i"}',
    ],
    ids=repr,
)
def test_a_head_that_is_damaged_or_newer_is_corrupt(store: ScriptedStore, data: bytes) -> None:
    store.create(HEAD, data)
    with pytest.raises(Corrupt):
        Lake.open_on(store)


def test_where_there_is_no_lake_none_is_opened(store: ScriptedStore) -> None:
    with pytest.raises(NotFound, match="lake init"):
        Lake.open_on(store)


def test_a_pool_of_an_unknown_kind_is_refused(store: ScriptedStore) -> None:
    with pytest.raises(InvalidInput, match="unknown kind 'log': use append, upsert or aggregate"):
        Lake.create_on(store).create_pool("p", key="k", kind="log")
