"""Offsets of a stream: committed with the records, from where the newest state ends, by exactly one reader."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lake_core import naming
from lake_core.errors import Conflict, InvalidInput
from lake_core.history import Committed
from lake_core.history.offsets import held_offsets, offsets_source
from lake_core.journal import write_state
from lake_core.naming import MAIN
from lake_core.records import Consume, CreateBranch, Source
from log_lake.stores.memory import MemoryStore
from tests.support import histories
from tests.support.records import add, an_id, draft
from tests.support.stores import ALWAYS, ScriptedStore, unavailable

STREAM = "s/0"


def source(n: int, begin: int, next: int, *, stream: str = STREAM) -> Source:
    return offsets_source(stream, begin, next, id=an_id(n))


def commit(store: MemoryStore | ScriptedStore, n: int, *sources: Source, read_version: int = 0) -> Committed:
    """What a reader commits that has read these offsets."""
    reader = histories.history(store)
    return reader.commit(draft(n, Consume(sources), add(n), read_version=read_version))


def held(store: MemoryStore | ScriptedStore, streams: str = "") -> dict[str, int]:
    state = histories.history(store).load().state
    return {stream: one.size for stream, one in held_offsets(state, streams).items()}


def test_of_two_readers_of_the_same_offsets_the_second_reads_again() -> None:
    store = MemoryStore()
    commit(store, 1, source(1, 0, 10))
    with pytest.raises(Conflict, match=r"offsets up to 10 meanwhile; read again"):
        commit(store, 2, source(2, 0, 15))
    commit(store, 3, source(3, 10, 15))
    assert held(store) == {STREAM: 15}


def test_one_partition_that_moved_on_refuses_all_of_a_batch() -> None:
    store = MemoryStore()
    commit(store, 1, source(1, 0, 10))
    with pytest.raises(Conflict):
        commit(store, 2, source(2, 0, 3, stream="s/1"), source(2, 0, 12))
    assert held(store) == {STREAM: 10}


def test_offsets_may_go_back_and_be_read_again_from_the_same_place() -> None:
    store = MemoryStore()
    commit(store, 1, source(1, 0, 10))
    for n in (2, 4):
        commit(store, n, source(n, 10, 5))
        commit(store, n + 1, source(n + 1, 5, 10))
    assert held(store) == {STREAM: 10}


def test_streams_are_found_by_their_beginning_and_after_a_checkpoint() -> None:
    store = MemoryStore()
    commit(store, 1, source(1, 0, 10), source(1, 0, 4, stream="s/1"), source(1, 0, 7, stream="t/0"))
    commit(store, 2, source(2, 10, 11))
    journal = histories.history(store).journal
    write_state(journal, journal.load(), id=an_id(700), now=histories.NOW)
    commit(store, 3, source(3, 4, 5, stream="s/1"))
    assert held(store, "s/") == {"s/0": 11, "s/1": 5}
    assert held(store) == {"s/0": 11, "s/1": 5, "t/0": 7}
    with pytest.raises(Conflict):
        commit(store, 4, source(4, 10, 12))


def test_only_main_has_offsets() -> None:
    store = MemoryStore()
    histories.history(store).commit(draft(1, CreateBranch(MAIN), branch="dev"))
    with pytest.raises(InvalidInput, match="kept on main only"):
        histories.history(store).commit(draft(2, Consume((source(2, 0, 1),)), branch="dev", read_version=1))


def test_a_reader_that_was_refused_is_not_committed_by_another_one_once_offsets_went_back() -> None:
    """Its request may stay on the store; see `test_refusals_are_final`."""
    store = ScriptedStore()
    commit(store.behind, 1, source(1, 0, 10))
    late = draft(2, Consume((source(2, 5, 15),)), add(2), read_version=1)
    store.on("delete", naming.request(naming.pool_journal("P"), late.id), instead=unavailable, times=ALWAYS)
    crowded = histories.history(store)
    crowded._contended = 1
    with pytest.raises(Conflict):
        crowded.commit(late)
    commit(store.behind, 3, source(3, 10, 5))
    combiner = histories.history(store.behind)
    combiner._contended = 1
    combiner.commit(draft(900, add(900)))
    assert held(store) == {STREAM: 5}
    assert an_id(2) not in histories.transaction_ids(store.behind)


STEPS = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from(["look", "commit"]), st.integers(1, 5)), max_size=40
)


@settings(max_examples=30, deadline=None)
@given(STEPS)
def test_however_readers_take_turns_each_offset_is_committed_once_and_in_order(
    steps: Sequence[tuple[int, str, int]],
) -> None:
    """A reader looks at some time and commits at any later one, as one that was paused does."""
    store = MemoryStore()
    looked: dict[int, tuple[int, int]] = {}
    committed: list[tuple[int, int]] = []
    for n, (reader, step, count) in enumerate(steps, 1):
        if step == "look":
            looked[reader] = held(store).get(STREAM, 0), histories.history(store).load().version
        elif reader in looked:
            begin, version = looked[reader]
            try:
                commit(store, n, source(n, begin, begin + count), read_version=version)
            except Conflict:
                continue
            committed.append((begin, begin + count))
    ends = [0, *(end for _, end in committed)]
    assert [begin for begin, _ in committed] == ends[:-1]
    assert held(store).get(STREAM, 0) == ends[-1]
