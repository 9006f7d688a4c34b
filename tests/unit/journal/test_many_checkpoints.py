"""Thousands of checkpoints that nobody can read: each reader and each purge opens a few of them, and no more.

Who may write below one pool's folder can put them there, and each process that lists all pools reads that pool.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from lake_core import naming
from lake_core.errors import Corrupt
from lake_core.journal import JOURNAL_LIMITS, purge, write_state
from lake_core.journal.purge import is_kept
from tests.support.damage import turn_a_bit
from tests.support.notes import journal, write
from tests.support.records import an_id
from tests.support.stores import InPlaceStore, ScriptedStore

MOST = 4
LIMITS = replace(JOURNAL_LIMITS, checkpoints_tried=MOST)


@pytest.fixture
def store() -> ScriptedStore:
    """A journal of five notes, with a sound checkpoint at each but the last."""
    store = ScriptedStore(InPlaceStore())
    for text in "abcde":
        write(journal(store.behind), text)
    for version in range(1, 5):
        write_checkpoint(store, at=version, id=version)
    return store


def write_checkpoint(store: ScriptedStore, *, at: int, id: int) -> str:
    loaded = journal(store.behind).load_version(at)
    assert loaded is not None
    return write_state(journal(store.behind), loaded, id=an_id(id), now=0.0).name


def forge(store: ScriptedStore, count: int, *, version: int) -> None:
    for number in range(count):
        store.behind.put(naming.checkpoint("j", version, an_id(1_000 + number)), b"no checkpoint")


def opened(store: ScriptedStore) -> int:
    """Checkpoints that were opened."""
    return store.asked("open_input", ".checkpoint")


def state_of(store: ScriptedStore) -> tuple[str, ...]:
    return journal(store, limits=LIMITS).load().state


@pytest.mark.parametrize("count", [1, MOST - 1, MOST, 50])
def test_entries_are_folded_if_no_checkpoint_that_is_tried_can_be_read(
    store: ScriptedStore, count: int
) -> None:
    for name in [info.name for info in store.behind.list("j/marks")]:
        store.behind.put(name, b"no checkpoint")
    forge(store, count, version=5)
    assert state_of(store) == tuple("abcde")
    assert opened(store) == MOST


@pytest.mark.parametrize("version", [4, 5])
def test_the_checkpoint_of_the_fence_is_read_behind_any_number_of_others(
    store: ScriptedStore, version: int
) -> None:
    purge(journal(store.behind), until=2)
    forge(store, 50, version=version)
    assert state_of(store) == tuple("abcde")
    assert opened(store) <= MOST


def test_a_pool_is_corrupt_if_none_that_is_tried_can_be_read(store: ScriptedStore) -> None:
    purge(journal(store.behind), until=4)
    forge(store, 50, version=5)
    store.behind.put(naming.checkpoint("j", 4, an_id(4)), b"no checkpoint")
    with pytest.raises(Corrupt) as raised:
        state_of(store)
    assert str(raised.value) == (
        "j: purged up to version 4, and of 51 checkpoints from there on, the 4 that were tried cannot be read; "
        "delete damaged ones, which lake fsck names"
    )
    assert opened(store) <= 2 * MOST  # by one listing, then by requests


def test_a_purge_and_a_writer_of_checkpoints_try_no_more(store: ScriptedStore) -> None:
    forge(store, 50, version=5)
    ours = journal(store, limits=LIMITS)
    assert purge(ours, until=5).fence == 0, "the sound ones are behind the forged ones"
    assert opened(store) == MOST
    store.requests.clear()
    assert not is_kept(ours, 5)
    assert opened(store) == MOST
    assert purge(ours, until=4).fence == 4


def test_damage_that_is_found_in_a_row_group_lets_no_others_follow(store: ScriptedStore) -> None:
    name = write_checkpoint(store, at=5, id=5)
    purge(journal(store.behind), until=5)
    turn_a_bit(store.behind, name, section="note")
    data = store.behind.get(name) or b""
    for number in range(50):
        store.behind.put(naming.checkpoint("j", 5, an_id(1_000 + number)), data)
    store.behind.delete(name)
    ours = journal(store, limits=LIMITS)
    for _ in range(5):
        with pytest.raises(Corrupt):
            ours.load()
    assert opened(store) == MOST
