"""Gates: an open journal is looked at, and appended to, without a listing; a purge is noticed by its gate."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lake_core import naming
from lake_core.errors import Corrupt, Unavailable
from lake_core.journal import Journal, LoadedState, purge, put_fence, write_state
from lake_core.store import Created
from tests.support import notes
from tests.support.notes import Note, State, write
from tests.support.records import an_id
from tests.support.stores import ALWAYS, InPlaceStore, ScriptedStore, unavailable

Requests = list[tuple[str, str]]


def journal(store: ScriptedStore, *, gated: bool = True) -> Journal[Note, State]:
    """The journal `j`, as a process finds it that has read nothing."""
    return replace(notes.journal(store), gated=gated)


def purged(store: ScriptedStore) -> None:
    """Others write a checkpoint and purge."""
    others = journal(ScriptedStore(store.behind))
    write_state(others, others.load(), id=an_id(len(list(store.behind.list("j/marks"))) + 1), now=0.0)
    purge(others, until=10**9)


def others_write(store: ScriptedStore, text: str) -> None:
    write(journal(ScriptedStore(store.behind)), text)


def entry(version: int) -> str:
    return naming.entry("j", version)


@pytest.fixture
def store() -> ScriptedStore:
    """A journal of five notes, purged once and written to since."""
    store = ScriptedStore(InPlaceStore())
    for text in "abc":
        others_write(store, text)
    purged(store)
    for text in "de":
        others_write(store, text)
    return store


@pytest.fixture
def ours(store: ScriptedStore) -> Journal[Note, State]:
    """A process that has looked twice: it knows the gates."""
    ours = journal(store)
    assert ours.load() == ours.load() == LoadedState(5, tuple("abcde"))
    store.requests.clear()
    return ours


def test_a_look_without_news_reads_the_next_entries_and_then_the_gate(
    store: ScriptedStore, ours: Journal[Note, State]
) -> None:
    assert ours.load().version == 5
    *entries, gate = store.requests
    assert sorted(entries) == [("get", entry(6)), ("get", entry(7))]
    assert gate == ("get", naming.gate("j", 2))


def test_an_append_reads_the_gate_after_its_entry_and_lists_nothing(
    store: ScriptedStore, ours: Journal[Note, State]
) -> None:
    assert write(ours, "f").version == 6
    assert store.requests == [("create", entry(6)), ("get", naming.gate("j", 2))]


def test_the_entries_of_others_are_read_without_a_listing(
    store: ScriptedStore, ours: Journal[Note, State]
) -> None:
    for text in "fgh":
        others_write(store, text)
    assert ours.load() == LoadedState(8, tuple("abcdefgh"))
    assert store.asked("list") == 0


def test_a_writer_whose_version_was_purged_notices_it_by_the_gate(
    store: ScriptedStore, ours: Journal[Note, State]
) -> None:
    def others_go_on() -> None:
        others_write(store, "f")
        purged(store)

    store.on("create", entry(6), before=others_go_on)
    assert write(ours, "ours").version == 7
    assert journal(store).load() == LoadedState(7, (*"abcdef", "ours"))


def test_a_look_during_a_purge_is_not_taken_in_by_missing_entries(
    store: ScriptedStore, ours: Journal[Note, State]
) -> None:
    others_write(store, "f")
    store.on("get", entry(6), before=lambda: purged(store))
    assert ours.load() == LoadedState(6, tuple("abcdef"))
    store.requests.clear()
    ours.load()
    assert store.requests[-1] == ("get", naming.gate("j", 3))  # counted again


def test_a_purge_that_dies_between_its_fence_and_its_gate_has_deleted_nothing(
    store: ScriptedStore, ours: Journal[Note, State]
) -> None:
    others = journal(ScriptedStore(store.behind))
    write_state(others, others.load(), id=an_id(9), now=0.0)
    put_fence(others, 5)
    assert write(ours, "f").version == 6  # the gate is missing: entry 6 was free
    assert ours.load() == LoadedState(6, tuple("abcdef"))
    purge(others, until=0)  # the next purge deletes below that fence, behind a gate
    assert [info.name for info in store.behind.list("j-gates")] == [naming.gate("j", n) for n in (1, 2)]
    assert write(ours, "g").version == 7


def test_a_gate_of_a_purge_that_died_stops_no_writer(
    store: ScriptedStore, ours: Journal[Note, State]
) -> None:
    store.behind.create(naming.gate("j", 2), b"\n")
    assert write(ours, "f").version == 6
    assert ours.load() == LoadedState(6, tuple("abcdef"))
    purged(store)
    assert store.behind.get(naming.gate("j", 3)) is not None
    assert write(ours, "g").version == 7


def test_a_purge_with_nothing_to_delete_makes_no_gate(store: ScriptedStore) -> None:
    purge(journal(store), until=10**9)
    assert not store.asked("create", ".gate")


def test_two_purgers_that_find_one_gate_both_delete(store: ScriptedStore) -> None:
    others = journal(store)
    write_state(others, others.load(), id=an_id(9), now=0.0)
    store.on("create", ".gate", before=lambda: purged(store))
    assert purge(others, until=5).fence == 5
    assert [info.name for info in store.behind.list("j-gates")] == [naming.gate("j", n) for n in (1, 2)]


def test_nothing_is_deleted_if_the_gate_is_not_known_to_stand(store: ScriptedStore) -> None:
    others = journal(store)
    write_state(others, others.load(), id=an_id(9), now=0.0)
    store.on("create", ".gate", instead=lambda: Created.UNKNOWN, times=ALWAYS)
    store.requests.clear()
    with pytest.raises(Unavailable, match="run the purge again"):
        purge(others, until=5)
    assert not store.asked("delete_all")


def test_an_entry_behind_a_missing_one_is_seen(store: ScriptedStore, ours: Journal[Note, State]) -> None:
    others_write(store, "f")
    others_write(store, "g")
    store.behind.delete(entry(6))
    with pytest.raises(Corrupt, match="6"):
        ours.load()


def test_a_store_that_refuses_the_gate_is_asked_again_and_an_entry_is_never_called_unavailable(
    store: ScriptedStore, ours: Journal[Note, State]
) -> None:
    store.on("get", ".gate", instead=unavailable, times=2)
    assert write(ours, "f").version == 6


def test_a_lake_of_version_2_is_listed_since_older_programs_make_no_gates(store: ScriptedStore) -> None:
    ours = journal(store, gated=False)
    for _ in range(3):
        ours.load()
    store.requests.clear()
    assert write(ours, "f").version == 6
    ours.load()
    assert {request for request, _ in store.requests} == {"create", "list"}
    assert not store.asked("get", ".gate")
