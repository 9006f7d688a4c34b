"""The journal: what an acknowledged append means, whatever the store and other writers do in between.

The journal here holds notes and folds them into the tuple of their texts; the text `misfit` does not fold.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from lake_core import naming
from lake_core.errors import AlreadyExists, Conflict, Corrupt, OutcomeUnknown, Unavailable
from lake_core.journal import Appended, LoadedState, NextEntry, Retry, purge, write_state
from lake_core.journal.hints import write_head_hint
from lake_core.journal.listed import MOST
from lake_core.journal.windows import LARGEST_WINDOW
from lake_core.records.codec import checksum_of
from lake_core.store import Created
from log_lake.stores.local import LocalStore
from log_lake.stores.memory import MemoryStore
from tests.support.notes import CODEC, Note, State, journal, texts, write
from tests.support.stores import ALWAYS, ScriptedStore, lost, unavailable

FIRST, SECOND = naming.entry("j", 1), naming.entry("j", 2)


class ListsWhole(ScriptedStore):
    """A store that cannot list from a name on, so a reader asks for windows of entries."""

    @property
    def lists_from_name(self) -> bool:
        return False


@pytest.fixture
def store() -> ScriptedStore:
    return ScriptedStore()


# ---------------------------------------------------------------- entries and states


def test_an_empty_journal_is_in_its_initial_state_at_number_0(store: ScriptedStore) -> None:
    assert journal(store).load() == LoadedState(0, ())


@pytest.mark.parametrize("local", [False, True])
def test_an_entry_that_appears_behind_one_that_was_not_there_yet_is_not_taken_for_it(
    local: bool, tmp_path: Path
) -> None:
    store = ListsWhole(LocalStore(tmp_path) if local else None)
    store.local_path = store.behind.local_path  # type: ignore[method-assign]
    reader, other = journal(store), journal(store.behind)
    write(other, "a")
    write_head_hint(store, "j", 9)  # so that several are asked for at once

    def meanwhile(found: bytes | None) -> bytes | None:
        write(other, "b")
        write(other, "c")
        return found

    store.on("get", SECOND, answer=meanwhile)
    assert reader.load().state in [("a",), ("a", "b", "c")]
    assert reader.load().state == ("a", "b", "c")


def test_entries_are_numbered_from_1_without_a_gap(store: ScriptedStore) -> None:
    ours = journal(store)
    assert [write(ours, text).version for text in "abc"] == [1, 2, 3]
    assert [o.name for o in store.list("j") if o.name.endswith(".txn")] == [
        naming.entry("j", n) for n in (1, 2, 3)
    ]


def test_an_append_answers_with_the_state_that_it_made(store: ScriptedStore) -> None:
    write(journal(store), "a")
    assert write(journal(store), "b") == Appended(2, ("a", "b"), tries=1)


def test_a_load_sees_what_others_appended_before_it_began(store: ScriptedStore) -> None:
    reader = journal(store)
    reader.load()
    write(journal(store), "a")
    assert reader.load() == LoadedState(1, ("a",))


def test_a_load_without_news_is_one_listing_where_that_begins_at_a_name(store: ScriptedStore) -> None:
    reader = journal(store)
    for text in "abc":
        write(reader, text)
    reader.load()
    before = len(store.requests)
    reader.load()
    assert store.requests[before:] == [("list", "j")]


def test_a_load_with_news_reads_what_the_listing_names_and_nothing_else(store: ScriptedStore) -> None:
    ours = journal(store)
    ours.load()
    for text in "abc":
        write(journal(store.behind), text)
    store.requests.clear()
    assert ours.load().state == ("a", "b", "c")
    names = [naming.entry("j", n) for n in (1, 2, 3)]
    listed, *read = store.requests
    assert listed == ("list", "j")
    assert sorted(read) == [("get", name) for name in names]  # read side by side


def test_an_open_is_one_listing_and_the_entries(store: ScriptedStore) -> None:
    for text in "abcdefghij":
        write(journal(store.behind), text)
    assert journal(store).load().state == tuple("abcdefghij")
    listed, *read = store.requests
    assert listed == ("list", "j")
    assert sorted(read) == [("get", naming.entry("j", n)) for n in range(1, 11)]


def test_an_open_at_a_checkpoint_is_one_listing_the_checkpoint_and_what_follows(store: ScriptedStore) -> None:
    ours = journal(store.behind)
    for text in "abcde":
        write(ours, text)
    mark = write_state(ours, ours.load(), id="0" * 27, now=0.0)
    write(ours, "f")
    assert journal(store).load().state == tuple("abcdef")
    assert [request for request in store.requests if request[0] != "open_input"] == [
        ("list", "j"),
        ("get", naming.entry("j", 6)),
    ]
    assert {name for request, name in store.requests if request == "open_input"} == {mark.name}


@pytest.mark.parametrize("news", [False, True])
def test_an_entry_that_is_not_the_one_that_was_listed_is_not_folded(store: ScriptedStore, news: bool) -> None:
    """It was purged between the listing and the read, and a stalled writer put another one there."""
    behind, ours, other = store.behind, journal(store), journal(store.behind)
    write(other, "a")
    if news:
        ours.load()
    write(other, "b")

    def purged_and_written_again() -> None:
        write_state(other, other.load(), id="0" * 27, now=0.0)
        purge(other, until=2)
        stalled = Note("late", "of a stalled writer", previous=checksum_of(first or b""))
        behind.create(SECOND, CODEC.encode(stalled))

    first = behind.get(FIRST)
    store.on("get", SECOND, before=purged_and_written_again)
    assert ours.load().state == ("a", "b")


def test_a_long_journal_is_listed_from_its_checkpoint_on(store: ScriptedStore) -> None:
    ours = journal(store.behind)
    for n in range(1, MOST + 1):
        store.behind.create(naming.entry("j", n), CODEC.encode(Note(str(n), str(n))))
    write_state(ours, ours.load(), id="0" * 27, now=0.0)
    write(ours, "last")
    assert len(journal(store).load().state) == MOST + 1
    assert store.asked("list") == 3
    assert store.asked("get") == 1


def test_news_of_more_entries_than_are_asked_for_at_once_is_found(store: ScriptedStore) -> None:
    ours = journal(store)
    ours.load()
    written = [str(n) for n in range(LARGEST_WINDOW + 3)]
    for text in written:
        write(journal(store.behind), text)
    assert ours.load().state == tuple(written)


def test_every_earlier_state_can_be_had(store: ScriptedStore) -> None:
    ours = journal(store)
    for text in "abc":
        write(ours, text)
    for reader in (ours, journal(store)):
        assert [reader.load_version(n) for n in (0, 2, 1, 3)] == [
            LoadedState(0, ()),
            LoadedState(2, ("a", "b")),
            LoadedState(1, ("a",)),
            LoadedState(3, ("a", "b", "c")),
        ]
        assert reader.load_version(4) is None


def test_the_journal_does_not_end_where_a_later_entry_is_seen(store: ScriptedStore) -> None:
    write(journal(store), "a")
    store.create(naming.entry("j", 3), CODEC.encode(Note("x", "beyond the hole")))
    store.put("j/HEAD", b"3")
    with pytest.raises(Corrupt, match=f"{naming.entry('j', 2)}: missing, and not purged"):
        journal(store).load()


def test_a_journal_longer_than_the_widest_window_is_read_whole(store: ScriptedStore) -> None:
    for n in range(1, 201):
        store.create(naming.entry("j", n), CODEC.encode(Note(str(n), str(n))))
    assert texts(store) == tuple(str(n) for n in range(1, 201))


def test_an_entry_that_can_be_read_is_not_acknowledged_before_the_store_says_that_it_is_durable(
    store: ScriptedStore,
) -> None:
    """A folder whose sync fails shows the entry, and may forget it in a crash."""
    store.on("create", FIRST, answer=lost, times=ALWAYS)
    with pytest.raises(OutcomeUnknown):
        write(journal(store), "a")
    assert texts(store.behind) == ("a",)


def test_a_change_that_somebody_else_commits_at_the_last_lost_race_is_committed(store: ScriptedStore) -> None:
    ours = journal(store, races=2)
    store.on("create", FIRST, before=lambda: write(journal(store.behind), "a"))
    store.on("create", SECOND, before=lambda: write(journal(store.behind), "b", "our id"))
    ours_and_another = Note("our id", "b, with others")
    appended = ours.append(lambda head: ours_and_another, id="our id")
    assert appended == Appended(2, ("a", "b"), tries=2)


# ---------------------------------------------------------------- hints


HINTS = {
    "missing": None,
    "stale": b"2",
    "far too high": b"99999999999999999999",
    "longer than any number": b"1" * 500,
    "negative": b"-3",
    "empty": b"",
    "garbage": b"\x00\xff garbage",
    "digits that are not ASCII": "\u0663".encode(),
}


@pytest.mark.parametrize("hint", HINTS.values(), ids=HINTS.keys())
def test_no_hint_changes_what_is_read_and_written(store: ScriptedStore, hint: bytes | None) -> None:
    for text in "abcde":
        write(journal(store), text)
    for name in ("j/HEAD", "j/TAIL"):
        store.delete(name)
        if hint is not None:
            store.put(name, hint)
    assert texts(store) == tuple("abcde")
    assert write(journal(store), "f").version == 6


def test_hints_that_can_neither_be_read_nor_written_cost_nothing_but_speed(store: ScriptedStore) -> None:
    for request in ("get", "put"):
        store.on(request, "HEAD", instead=unavailable, times=ALWAYS)
        store.on(request, "TAIL", instead=unavailable, times=ALWAYS)
    assert write(journal(store), "a").version == 1
    assert texts(store) == ("a",)


def test_head_is_left_behind_so_that_a_reader_asks_for_many_entries_at_once(store: ScriptedStore) -> None:
    for n in range(1, 18):
        write(journal(store), str(n))
    assert store.get("j/HEAD") == b"16"


# ---------------------------------------------------------------- races


def test_who_loses_a_race_proposes_again_on_what_won(store: ScriptedStore) -> None:
    store.on("create", FIRST, before=lambda: write(journal(store.behind), "theirs"))
    proposed_on: list[State] = []

    def propose(head: LoadedState[State]) -> Note:
        proposed_on.append(head.state)
        return Note("our id", "ours")

    assert journal(store).append(propose, id="our id") == Appended(2, ("theirs", "ours"), tries=2)
    assert proposed_on == [(), ("theirs",)]
    assert texts(store) == ("theirs", "ours")


def test_races_are_bounded_and_end_in_conflict(store: ScriptedStore) -> None:
    other, numbers = journal(store.behind), count(1)
    theirs = partial(write, other, "theirs")
    store.on("create", ".txn", before=lambda: theirs(f"id {next(numbers)}"), times=ALWAYS)
    with pytest.raises(Conflict, match="lost 3 races"):
        write(journal(store, races=3), "ours")
    assert texts(store.behind) == ("theirs",) * 3
    assert store.asked("delete") == 0


def test_a_writer_pauses_between_races_longer_and_longer_up_to_a_bound() -> None:
    slept: list[float] = []
    retry = Retry(first_pause=0.002, longest_pause=0.25, sleep=slept.append, jitter=lambda: 1.0)
    for attempt in range(12):
        retry.pause(attempt)
    assert slept[:3] == [0.002, 0.004, 0.008]
    assert slept[-1] == 0.25
    replace(retry, jitter=lambda: 0.5).pause(0)
    assert slept[-1] == 0.001


def test_a_writer_rests_as_long_as_the_store_takes_and_longer_behind_many() -> None:
    slept: list[float] = []
    retry = Retry(first_pause=0.002, longest_rest=2.0, sleep=slept.append, jitter=lambda: 0.5)
    for answer, before in ((0.03, 1), (0.03, 4), (0.03, 8), (0.03, 40), (0.0001, 1), (1.0, 40)):
        retry.rest(answer, before=before)
    assert slept == pytest.approx([0.03, 0.03, 0.06, 0.3, 0.002, 2.0])
    replace(retry, jitter=lambda: 0.0).rest(1.0, before=1)
    replace(retry, jitter=lambda: 1.0).rest(1.0, before=1)
    assert slept[-2:] == [0.5, 1.5]


def test_an_entry_that_the_proposer_has_seen_is_not_read_again(store: ScriptedStore) -> None:
    ours = journal(store)
    ours.load()
    write(journal(store.behind), "theirs")
    seen = ours.read_stored(1)
    assert seen is not None
    store.requests.clear()

    def propose(head: LoadedState[State]) -> Note | NextEntry[Note]:
        return NextEntry(seen) if head.version == 0 else Note("our id", "ours")

    appended = ours.append(propose, id="our id")
    assert appended is not None
    assert (appended.version, appended.state) == (2, ("theirs", "ours"))
    assert store.asked("get") == 0


def test_a_refusal_on_an_old_state_is_asked_again_on_the_newest(store: ScriptedStore) -> None:
    ours = journal(store)
    ours.load()
    write(journal(store), "a")

    def only_after_a(head: LoadedState[State]) -> Note:
        if "a" not in head.state:
            raise AlreadyExists("too early")
        return Note("our id", "b")

    appended = ours.append(only_after_a, id="our id")
    assert appended is not None
    assert appended.version == 2


def test_a_refusal_on_the_newest_state_is_raised_and_writes_nothing(store: ScriptedStore) -> None:
    ours = journal(store)
    ours.load()
    write(journal(store), "a")

    def refuse(head: LoadedState[State]) -> Note:
        raise AlreadyExists(f"after {head.version}")

    with pytest.raises(AlreadyExists, match="after 1"):
        ours.append(refuse, id="our id")
    assert texts(store) == ("a",)


def test_a_proposal_of_nothing_rests_on_the_newest_state_and_writes_nothing(store: ScriptedStore) -> None:
    ours = journal(store)
    ours.load()
    write(journal(store), "a")
    seen: list[int] = []
    assert ours.append(lambda head: seen.append(head.version), id="our id") is None
    assert seen[-1] == 1
    assert texts(store) == ("a",)


@pytest.mark.parametrize("shared", [True, False], ids=["one journal object", "one each"])
def test_16_threads_get_16_numbers(shared: bool) -> None:
    store = MemoryStore()
    one = journal(store, races=1000)
    with ThreadPoolExecutor(16) as pool:
        appended = list(
            pool.map(lambda i: write(one if shared else journal(store, races=1000), str(i)), range(16))
        )
    assert sorted(a.version for a in appended) == list(range(1, 17))
    history = texts(store)
    assert all(
        history[a.version - 1] == str(i) and a.state == history[: a.version] for i, a in enumerate(appended)
    )


# ---------------------------------------------------------------- lost answers


def test_a_write_whose_answer_is_lost_is_known_again_by_its_id(store: ScriptedStore) -> None:
    store.on("create", FIRST, answer=lost)
    assert write(journal(store), "a") == Appended(1, ("a",), tries=1)
    assert texts(store) == ("a",)


def test_an_answer_that_is_lost_is_no_lost_race(store: ScriptedStore) -> None:
    races: list[int] = []
    note = Note("our id", "ours")
    store.on("create", FIRST, answer=lost)
    journal(store).append(lambda head: note, id=note.id, lost=lambda times, head: races.append(times))
    assert (races, texts(store)) == ([], ("ours",))


def test_a_write_that_the_client_repeated_by_itself_exists_and_is_ours(store: ScriptedStore) -> None:
    store.on("create", FIRST, answer=lambda _: Created.EXISTS)
    assert write(journal(store), "a").version == 1
    assert texts(store) == ("a",)


def test_a_request_that_never_arrived_is_repeated_under_the_same_number(store: ScriptedStore) -> None:
    store.on("create", FIRST, instead=lost, times=3)
    assert write(journal(store), "a").version == 1
    assert store.asked("create") == 4
    assert texts(store) == ("a",)


def test_an_answer_lost_in_a_lost_race_sends_the_writer_to_the_next_number(store: ScriptedStore) -> None:
    store.on("create", FIRST, before=lambda: write(journal(store.behind), "theirs"), answer=lost)
    assert write(journal(store), "ours").version == 2
    assert texts(store) == ("theirs", "ours")


def test_a_write_that_arrives_late_is_not_made_twice(store: ScriptedStore) -> None:
    ours, late = journal(store), CODEC.encode(Note("our id", "ours"))
    ours.load()
    store.on("create", FIRST, instead=lost)
    store.on("create", FIRST, before=lambda: store.behind.create(FIRST, late))
    assert write(ours, "ours", "our id").version == 1
    assert texts(store) == ("ours",)


def test_an_outcome_that_stays_unknown_is_said_and_no_other_number_is_tried(store: ScriptedStore) -> None:
    store.on("create", "", instead=lost, times=ALWAYS)
    with pytest.raises(OutcomeUnknown) as caught:
        write(journal(store, repeats=4), "a", "our id")
    assert (caught.value.version, caught.value.entry_id) == (1, "our id")
    assert [name for request, name in store.requests if request == "create"] == [FIRST] * 4
    assert store.asked("delete") == 0


def test_a_write_that_cannot_be_read_back_has_an_unknown_outcome(store: ScriptedStore) -> None:
    ours = journal(store)
    ours.load()
    store.on("create", FIRST, answer=lost, times=ALWAYS)
    store.on("get", FIRST, instead=unavailable, times=ALWAYS)
    with pytest.raises(OutcomeUnknown):
        write(ours, "a")
    assert texts(store.behind) == ("a",)


def test_a_refusal_after_an_unanswered_try_does_not_make_the_outcome_known(store: ScriptedStore) -> None:
    store.on("create", FIRST, instead=lost)
    store.on("create", FIRST, instead=unavailable, times=ALWAYS)
    with pytest.raises(OutcomeUnknown):
        write(journal(store), "a")


def test_a_store_that_refuses_the_first_try_is_unavailable_and_nothing_was_written(
    store: ScriptedStore,
) -> None:
    store.on("create", FIRST, instead=unavailable)
    with pytest.raises(Unavailable):
        write(journal(store), "a")
    assert texts(store) == ()


def test_the_same_entry_tried_again_after_an_unknown_outcome_is_in_the_history_once(
    store: ScriptedStore,
) -> None:
    ours = journal(store)
    ours.load()
    store.on("create", FIRST, answer=lost, times=4)
    store.on("get", FIRST, instead=unavailable, times=4)
    with pytest.raises(OutcomeUnknown):
        write(ours, "a", "our id")
    write(journal(store), "b")
    assert write(ours, "a", "our id").version == 1
    assert texts(store) == ("a", "b")


def test_after_the_faults_a_new_writer_commits_at_once(store: ScriptedStore) -> None:
    ours = journal(store)
    ours.load()
    store.on("create", FIRST, answer=lost, times=ALWAYS)
    store.on("get", FIRST, instead=unavailable, times=ALWAYS)
    with pytest.raises(OutcomeUnknown):
        write(ours, "a")
    assert write(journal(store.behind), "b", "another id").tries == 1
    assert texts(store.behind) == ("a", "b")


def test_a_store_that_denies_and_does_not_have_an_entry_is_named_and_nothing_is_called_damaged(
    store: ScriptedStore,
) -> None:
    """A false 412: nothing is there."""
    ours = journal(store)
    store.on("create", FIRST, instead=lambda: Created.EXISTS, times=ALWAYS)
    with pytest.raises(OutcomeUnknown, match=r"refused to create .* cache or proxy .* --token") as raised:
        write(ours, "a")
    assert raised.value.version == 1
    assert store.asked("create") == ours.retry.repeats
    store.forget()
    assert write(journal(store), "b").version == 1
    assert texts(store.behind) == ("b",)


def test_a_false_denial_that_ends_costs_a_try(store: ScriptedStore) -> None:
    store.on("create", FIRST, instead=lambda: Created.EXISTS, times=2)
    assert write(journal(store), "a").version == 1
    assert texts(store.behind) == ("a",)


# ---------------------------------------------------------------- what does not fold


def test_what_does_not_fit_the_state_is_refused_before_it_is_written(store: ScriptedStore) -> None:
    with pytest.raises(Corrupt, match="misfit"):
        write(journal(store), "misfit")
    assert store.asked("create") == 0
    assert write(journal(store), "a").version == 1


def test_a_stored_entry_that_does_not_fit_is_an_error_and_never_skipped(store: ScriptedStore) -> None:
    store.create(FIRST, CODEC.encode(Note("x", "misfit")))
    store.create(SECOND, CODEC.encode(Note("y", "b")))
    for _ in range(2):
        with pytest.raises(Corrupt, match="misfit"):
            journal(store).load()
    with pytest.raises(Corrupt, match="misfit"):
        write(journal(store), "c")


@pytest.mark.parametrize("data", [b"", b"LKJ", b"garbage", CODEC.encode(Note("x", "a"))[:-1]])
def test_a_damaged_entry_is_corrupt_and_named(store: ScriptedStore, data: bytes) -> None:
    store.create(FIRST, data)
    with pytest.raises(Corrupt, match=FIRST):
        journal(store).load()
