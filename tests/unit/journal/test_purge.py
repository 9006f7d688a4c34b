"""Checkpoints, fences and purge: what a reader and a writer may believe of a journal whose tail moves.

The journal holds notes and folds them into the tuple of their texts; its checkpoints hold a row a text.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lake_core import naming
from lake_core.errors import Corrupt, InvalidInput, NotFound, OutcomeUnknown, Unavailable
from lake_core.journal import (
    JOURNAL_LIMITS,
    Journal,
    JournalLimits,
    LoadedState,
    NextEntry,
    Purged,
    purge,
    write_state,
)
from lake_core.journal.link import encode_linked
from lake_core.journal.marks import Mark, Marks
from lake_core.journal.purge import taken_back
from lake_core.journal.retry import CONTENDED_FRESH, FRESH
from lake_core.store import Created, Store
from log_lake.stores.local import LocalStore
from log_lake.stores.memory import MemoryStore
from tests.support.notes import CODEC, Note, NotesFormat, State, fold, journal, write
from tests.support.records import an_id
from tests.support.stores import ALWAYS, InPlaceStore, ScriptedStore, lost, unavailable


def checkpoint(
    store: Store, *, at: int | None = None, id: int = 1, limits: JournalLimits = JOURNAL_LIMITS
) -> Mark:
    """A checkpoint of the newest state, or of the state at an entry."""
    ours = journal(store, limits=limits)
    head = ours.load() if at is None else ours.load_version(at)
    assert head is not None
    return write_state(ours, head, id=an_id(id), now=0.0)


def purged(store: Store, *, until: int = 10**9, limits: JournalLimits = JOURNAL_LIMITS) -> Purged:
    return purge(journal(store, limits=limits), until=until)


def checkpointed_and_purged(store: Store, *, limits: JournalLimits = JOURNAL_LIMITS) -> None:
    checkpoint(store, id=len(list(store.list("j/marks"))) + 1, limits=limits)
    purged(store, limits=limits)


def entries(store: Store) -> list[int]:
    """Entries that are on the store."""
    return [n for o in store.list("j") if (n := naming.entry_version(o.name)) is not None]


def fences(store: Store) -> list[int]:
    return [n for o in store.list("j/marks") if (n := naming.fence_version(o.name)) is not None]


@pytest.fixture
def store() -> ScriptedStore:
    """A journal of five notes."""
    store = ScriptedStore(InPlaceStore())
    for text in "abcde":
        write(journal(store.behind), text)
    return store


@pytest.fixture
def warnings(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    caplog.set_level(logging.WARNING)
    return lambda: [record.getMessage() for record in caplog.records]


# ---------------------------------------------------------------- checkpoints


def test_a_reader_begins_with_the_newest_checkpoint(store: ScriptedStore) -> None:
    checkpoint(store.behind, at=2)
    checkpoint(store.behind, at=4)
    head = journal(store).load()
    assert (head.version, head.state) == (5, tuple("abcde"))
    read = {name for request, name in store.requests if request == "get" and naming.entry_version(name)}
    assert naming.entry("j", 4) not in read


def test_a_checkpoint_knows_the_ids_that_the_entries_hold(store: ScriptedStore) -> None:
    mark = checkpoint(store)
    restored, folded = journal(store).restore(mark), journal(store).load()
    assert sorted(restored.recent.items()) == sorted(folded.recent.items())
    assert restored.recent.version_of("id of c") == 3


def test_an_earlier_state_is_had_from_the_checkpoint_before_it(store: ScriptedStore) -> None:
    for at in (2, 4):
        checkpoint(store.behind, at=at)
    for n in range(1, 6):
        head = journal(store).load_version(n)
        assert head == LoadedState(n, tuple("abcde")[:n])
    assert journal(store).load_version(6) is None


def test_an_empty_journal_has_a_checkpoint_too() -> None:
    store = MemoryStore()
    checkpoint(store)
    assert journal(store).load() == LoadedState(0, ())


def test_a_journal_without_a_format_keeps_none_and_reads_none(store: ScriptedStore) -> None:
    bare = journal(store, format=None)
    with pytest.raises(InvalidInput):
        write_state(bare, bare.load(), id=an_id(1), now=0.0)
    checkpoint(store)
    assert journal(store, format=None).load().state == tuple("abcde")


def damaged(store: Store, mark: Mark, how: Callable[[bytes], bytes]) -> None:
    store.put(mark.name, how(store.get(mark.name) or b""))


def turned(data: bytes, *, at: int) -> bytes:
    return data[:at] + bytes((data[at] ^ 0xFF,)) + data[at + 1 :]


def end_of_keys(data: bytes) -> int:
    """The last byte of the first group's column `key`; a load decodes it, and the columns that it needs."""
    group = pq.ParquetFile(pa.BufferReader(data)).metadata.row_group(0)
    column = next(c for c in map(group.column, range(group.num_columns)) if c.path_in_schema == "key")
    start = min(filter(None, (column.dictionary_page_offset, column.data_page_offset)))
    return int(start + column.total_compressed_size - 1)


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "half-written": lambda data: data[: len(data) // 2],
    "empty": lambda data: b"",
    "garbage": lambda data: b"\x00garbage" * 50,
    "a turned bit in a page": lambda data: turned(data, at=end_of_keys(data)),
    "a turned bit in the footer": lambda data: turned(data, at=data.index(b'"journal"') + 12),
}


@pytest.mark.parametrize("older", [None, 2], ids=["entries", "an older checkpoint"])
@pytest.mark.parametrize("how", DAMAGE.values(), ids=DAMAGE.keys())
def test_a_damaged_checkpoint_is_passed_over_with_a_warning(
    store: ScriptedStore, how: Callable[[bytes], bytes], older: int | None, warnings: Callable[[], list[str]]
) -> None:
    if older:
        checkpoint(store, at=older)
    mark = checkpoint(store)
    damaged(store, mark, how)
    assert journal(store).load() == LoadedState(5, tuple("abcde"))
    (warning,) = warnings()
    assert f"{mark.name} is passed over: " in warning
    assert write(journal(store), "f").version == 6


@pytest.mark.parametrize(
    "name", [naming.checkpoint("j", 4, an_id(1)), naming.checkpoint("other", 5, an_id(1))]
)
def test_a_checkpoint_under_another_name_is_passed_over(
    store: ScriptedStore, name: str, warnings: Callable[[], list[str]]
) -> None:
    mark = checkpoint(store)
    store.put(name.replace("other", "j"), store.get(mark.name) or b"")
    if name.startswith("other"):
        other = Journal(store, "other", CODEC, (), fold, format=NotesFormat())
        store.put(name, store.get(mark.name) or b"")
        assert other.load() == LoadedState(0, ())
    else:
        assert journal(store).load_version(4) == LoadedState(4, tuple("abcd"))
    assert len(warnings()) == 1


JUNK = (
    "x",
    ".nfs0001",
    f"{3:020d}.checkpoint",
    f"{3:020d}.toolongid8.checkpoint",
    f"{9:019d}.fence",
    f"{9:020d}.fence.tmp",
    f"{9:020d}.txn",
    "9.fence",
    "\u0663" * 20 + ".fence",
    f"sub/{1:020d}.x",
)


@pytest.mark.parametrize("junk", JUNK)
def test_names_that_are_no_marks_change_nothing(store: ScriptedStore, junk: str) -> None:
    store.put(f"j/marks/{junk}", b"junk")
    store.put("j/.nfs0002", b"left by the file system")
    checkpointed_and_purged(store)
    assert journal(store).marks().fence == 5
    assert entries(store) in ([], [9])
    reader = journal(store)
    assert [reader.load() for _ in range(2)] == [LoadedState(5, tuple("abcde"))] * 2
    assert write(reader, "f").version == 6


# ---------------------------------------------------------------- purge


def test_a_purge_deletes_what_a_checkpoint_covers_and_leaves_the_rest(store: ScriptedStore) -> None:
    checkpoint(store, at=1)
    mark = checkpoint(store, at=3)
    assert purged(store) == Purged(fence=3, entries=3, checkpoints=1)
    assert entries(store) == [4, 5]
    assert journal(store).marks() == Marks((mark,), 3)
    assert journal(store).load() == LoadedState(5, tuple("abcde"))


def test_a_purge_goes_no_further_than_it_may(store: ScriptedStore) -> None:
    for at in (2, 4):
        checkpoint(store, at=at)
    assert purged(store, until=3).fence == 2
    assert entries(store) == [3, 4, 5]
    assert len(journal(store).marks().checkpoints) == 2


def test_without_a_checkpoint_nothing_is_deleted(store: ScriptedStore) -> None:
    assert purged(store) == Purged(0)
    assert entries(store) == [1, 2, 3, 4, 5]


DAMAGE_UNSEEN = DAMAGE | {"a turned bit in a page that no load reads": lambda data: turned(data, at=40)}


@pytest.mark.parametrize("how", DAMAGE_UNSEEN.values(), ids=DAMAGE_UNSEEN.keys())
def test_a_purge_trusts_no_checkpoint_that_it_cannot_read_to_its_end(
    store: ScriptedStore, how: Callable[[bytes], bytes], warnings: Callable[[], list[str]]
) -> None:
    checkpoint(store, at=2)
    mark = checkpoint(store, at=4)
    damaged(store, mark, how)
    assert purged(store).fence == 2
    assert entries(store) == [3, 4, 5]
    assert mark.name in warnings()[0]


def test_a_purge_reads_the_checkpoint_then_puts_the_fence_then_deletes(store: ScriptedStore) -> None:
    checkpoint(store)
    store.requests.clear()
    purged(store)
    order = [request for request, name in store.requests if request in ("open_input", "create", "delete_all")]
    assert list(dict.fromkeys(order)) == ["open_input", "create", "delete_all"]
    created = [name for request, name in store.requests if request == "create"]
    assert created == [naming.fence("j", 5), naming.gate("j", 1)]


@pytest.mark.parametrize("done", range(5))
def test_a_purge_that_dies_half_way_is_finished_by_the_next(store: ScriptedStore, done: int) -> None:
    checkpoint(store)

    def dies_half_way() -> None:
        store.behind.delete_all([naming.entry("j", version) for version in range(1, done + 1)])
        unavailable()

    store.on("delete_all", naming.entry("j", 1), instead=dies_half_way)
    with pytest.raises(Unavailable):
        purged(store)
    assert journal(store).load() == LoadedState(5, tuple("abcde"))
    assert purged(store) == Purged(fence=5, entries=5 - done)
    assert entries(store) == []


def test_a_fence_whose_answer_is_lost_is_asked_for_again(store: ScriptedStore) -> None:
    checkpoint(store)
    store.on("create", ".fence", answer=lost)
    store.on("create", ".fence", instead=lost)
    assert purged(store).fence == 5


@pytest.mark.parametrize("said", [Created.UNKNOWN, Created.EXISTS], ids=["lost", "a false denial"])
def test_nothing_is_deleted_where_the_fence_is_not_known_to_stand(
    store: ScriptedStore, said: Created
) -> None:
    checkpoint(store)
    store.on("create", ".fence", instead=lambda: said, times=ALWAYS)
    with pytest.raises(Unavailable, match="run the purge again"):
        purged(store)
    assert store.asked("delete_all") == store.asked("delete") == 0


def test_two_purgers_at_once_leave_one_history(store: ScriptedStore) -> None:
    checkpoint(store.behind, at=3)
    store.on("create", ".fence", before=lambda: checkpointed_and_purged(store.behind))
    purged(store, until=3)
    assert journal(store).marks().fence == 5
    assert journal(store).load() == LoadedState(5, tuple("abcde"))
    assert write(journal(store), "f").version == 6


def test_the_newest_fences_stay_so_that_no_listing_misses_them_all(store: ScriptedStore) -> None:
    for n in range(6, 20):
        write(journal(store), str(n))
        checkpointed_and_purged(store)
    assert fences(store) == list(range(12, 20))
    assert [c.version for c in journal(store).marks().checkpoints] == [19]


def test_the_tail_is_left_as_a_hint(store: ScriptedStore) -> None:
    checkpointed_and_purged(store)
    assert store.get("j/TAIL") == b"6"


HINTS = (None, b"", b"0", b"2", b"99999999999999999999", b"\x00\xff garbage", b"1" * 400)


@pytest.mark.parametrize("hint", HINTS, ids=repr)
@pytest.mark.parametrize("tail", [False, True], ids=["whole", "purged"])
def test_head_and_tail_deleted_or_garbled_change_nothing(
    store: ScriptedStore, hint: bytes | None, tail: bool
) -> None:
    checkpoint(store, at=3)
    if tail:
        purged(store)
    for name in ("j/HEAD", "j/TAIL"):
        store.delete(name)
        if hint is not None:
            store.put(name, hint)
    assert journal(store).load() == LoadedState(5, tuple("abcde"))
    assert journal(store).load_version(4) == LoadedState(4, tuple("abcd"))
    assert [n for n, _ in journal(store).backwards()] == ([5, 4] if tail else [5, 4, 3, 2, 1])
    assert write(journal(store), "f").version == 6
    assert checkpoint(store, id=2).version == 6
    assert purged(store).fence == 6


# ---------------------------------------------------------------- reading where the tail moves


def test_a_purged_state_is_not_found_and_the_one_at_the_fence_is_there(store: ScriptedStore) -> None:
    checkpoint(store, at=3)
    purged(store)
    with pytest.raises(NotFound, match="version 2 is purged: the history begins after 3"):
        journal(store).load_version(2)
    assert journal(store).load_version(3) == LoadedState(3, tuple("abc"))


def test_a_reader_that_is_purged_past_begins_again(store: ScriptedStore) -> None:
    reader = journal(store)
    store.on("get", naming.entry("j", 3), before=lambda: checkpointed_and_purged(store.behind))
    assert reader.load() == LoadedState(5, tuple("abcde"))


def test_a_reader_that_knows_an_old_state_finds_news_though_all_entries_are_purged(
    store: ScriptedStore,
) -> None:
    reader = journal(store)
    reader.load()
    write(journal(store), "f")
    checkpointed_and_purged(store)
    assert reader.load() == LoadedState(6, tuple("abcdef"))


def test_what_was_written_below_the_fence_is_not_read(store: ScriptedStore) -> None:
    stale = journal(store)
    assert stale.load_version(3) is not None
    idle = journal(store)
    idle._remember(stale.load_version(3))  # type: ignore[arg-type]
    checkpointed_and_purged(store)
    for text in ("a zombie", "misfit"):
        store.delete(naming.entry("j", 4))
        store.create(naming.entry("j", 4), CODEC.encode(Note("x", text)))
        assert idle.load() == LoadedState(5, tuple("abcde"))


def test_a_state_that_rests_on_a_purged_checkpoint_is_not_given_again(store: ScriptedStore) -> None:
    checkpoint(store, at=3)
    idle = journal(store)
    first = idle.load()
    assert first.checkpoint is not None
    assert first.checkpoint.version == 3
    checkpointed_and_purged(store)
    again = idle.load()
    assert again == first
    assert again.checkpoint is not None
    assert store.get(again.checkpoint.name) is not None


def test_the_log_ends_where_it_is_purged_also_when_that_happens_meanwhile(store: ScriptedStore) -> None:
    checkpoint(store, at=3)
    purged(store, until=3)
    assert [n for n, _ in journal(store).backwards()] == [5, 4]

    ours = journal(store)
    ours.load()

    def purged_and_written_again() -> None:
        checkpointed_and_purged(store.behind)
        store.behind.create(naming.entry("j", 4), CODEC.encode(Note("x", "a zombie")))

    store.on("get", naming.entry("j", 4), before=purged_and_written_again)
    told = list(ours.backwards())
    assert [note.text for _, note in told] == ["e"]


def test_a_hole_above_the_fence_is_corrupt_in_the_log(store: ScriptedStore) -> None:
    checkpoint(store)
    store.delete(naming.entry("j", 3))
    with pytest.raises(Corrupt, match=naming.entry("j", 3)):
        list(journal(store).backwards())


def test_a_journal_whose_only_checkpoint_above_the_fence_is_damaged_is_corrupt(store: ScriptedStore) -> None:
    mark = checkpoint(store)
    purged(store)
    damaged(store, mark, DAMAGE["half-written"])
    with pytest.raises(Corrupt, match="purged up to version 5, and no checkpoint from there on can be read"):
        journal(store).load()
    with pytest.raises(Corrupt):
        write(journal(store), "f")
    assert entries(store) == []


def test_a_journal_that_is_purged_again_and_again_is_unavailable_in_the_end(store: ScriptedStore) -> None:
    numbers = count()

    def more() -> None:
        write(journal(store.behind), str(next(numbers)))
        checkpointed_and_purged(store.behind)

    for listed in ("j/marks", "j"):
        store.on("list", listed, before=more, times=ALWAYS)
    store.on("open_input", ".checkpoint", before=more, times=ALWAYS)
    with pytest.raises(Unavailable, match="try again"):
        journal(store).load()


# ---------------------------------------------------------------- writing where the tail moves


def test_a_writer_whose_number_was_purged_is_told_where_its_change_really_stands(
    store: ScriptedStore,
) -> None:
    stalled = journal(store)
    stalled.load()

    def others_go_on() -> None:
        write(journal(store.behind), "f")
        checkpointed_and_purged(store.behind)

    store.on("create", naming.entry("j", 6), before=others_go_on)
    assert write(stalled, "ours").version == 7
    assert journal(store).load() == LoadedState(7, (*"abcdef", "ours"))


def test_a_writer_whose_entry_was_purged_before_it_heard_of_it_is_acknowledged(store: ScriptedStore) -> None:
    ours = journal(store)
    ours.load()

    def purge_it(answer: Created) -> Created:
        checkpointed_and_purged(store.behind)
        return answer

    store.on("create", naming.entry("j", 6), answer=purge_it)
    assert write(ours, "ours").version == 6
    assert journal(store).load() == LoadedState(6, (*"abcde", "ours"))


@pytest.mark.parametrize("answer", [Created.EXISTS, Created.UNKNOWN])
def test_a_lost_answer_of_an_entry_that_is_purged_is_resolved_by_its_id(
    store: ScriptedStore, answer: Created
) -> None:
    ours = journal(store)
    ours.load()

    def purge_it(_: Created) -> Created:
        checkpointed_and_purged(store.behind)
        return answer

    store.on("create", naming.entry("j", 6), answer=purge_it)
    assert write(ours, "ours").version == 6
    assert journal(store).load().state == (*"abcde", "ours")


def test_a_look_back_ends_where_a_purge_ends_that_overtakes_it(store: ScriptedStore) -> None:
    checkpoint(store.behind, at=3)
    ours = journal(store)
    ours.load()
    store.on("get", naming.entry("j", 3), before=lambda: purged(store.behind, until=3))
    assert [n for n, _ in ours.backwards()] == [5, 4]


def test_a_checkpoint_under_the_number_of_another_entry_is_nothing_to_purge_up_to(
    store: ScriptedStore,
) -> None:
    """Whole and readable; but what came between would be gone."""
    mark = checkpoint(store, at=2)
    data = store.behind.get(mark.name)
    assert data is not None
    store.behind.create(naming.checkpoint("j", 4, an_id(7)), data)
    assert purged(store).fence == 2
    assert journal(store).load().state == tuple("abcde")


def forgetting(limits: JournalLimits) -> tuple[ScriptedStore, Journal[Note, State]]:
    """A journal of five notes, and a writer whose next entry comes after a purge of two generations."""
    store = ScriptedStore(InPlaceStore())
    for text in "abcde":
        write(journal(store.behind, limits=limits), text)
    ours, other = journal(store, limits=limits), journal(store.behind, limits=limits)
    ours.load()

    def generations() -> None:
        for n in range(6, 2 * limits.generation_versions + 1):
            write(other, str(n))
        checkpointed_and_purged(store.behind, limits=limits)

    store.on("create", naming.entry("j", 6), before=generations)
    return store, ours


def test_a_writer_that_stalled_too_long_hears_that_nobody_knows() -> None:
    _, ours = forgetting(JOURNAL_LIMITS)
    with pytest.raises(OutcomeUnknown, match="older than the recent ids") as caught:
        write(ours, "ours", "our id")
    assert (caught.value.version, caught.value.entry_id) == (6, "our id")


def test_the_last_entry_of_a_forgotten_generation_is_forgotten_with_it() -> None:
    """A writer of it must not go on to the next number: its change may have been committed and purged."""
    limits = JournalLimits(generation_versions=7)
    store, ours = forgetting(limits)
    with pytest.raises(OutcomeUnknown, match="older than the recent ids"):
        write(ours, "ours", "our id")
    assert journal(store, limits=limits).load().version == 14


@pytest.mark.parametrize("local", [False, True], ids=["a store that lists", "a folder"])
def test_a_slow_writer_whose_number_is_purged_long_since_looks_before_it_writes(
    local: bool, tmp_path: Path
) -> None:
    """Its change is surely not in the history: nothing was written before it looked."""
    store = ScriptedStore(LocalStore(tmp_path) if local else InPlaceStore())
    time = [0.0]
    limits = JournalLimits(generation_versions=8)
    ours, other = journal(store, limits=limits), journal(store.behind, limits=limits)
    ours.retry = replace(ours.retry, clock=lambda: time[0])
    write(other, "1")
    ours.load()
    for n in range(2, 40):
        write(other, str(n))
    checkpointed_and_purged(store.behind, limits=limits)
    time[0] += FRESH * 2
    assert write(ours, "ours").version == 40
    assert store.asked("create") == 1


def test_a_writer_that_has_just_loaded_does_not_look_again(store: ScriptedStore) -> None:
    time = [0.0]
    ours = journal(store)
    ours.retry = replace(ours.retry, clock=lambda: time[0])
    ours.load()
    store.requests.clear()
    time[0] += FRESH / 2
    write(ours, "ours")
    assert store.requests == [("create", naming.entry("j", 6)), ("list", "j/marks")]
    time[0] += FRESH * 2
    write(ours, "later")
    assert store.asked("list") == 3


def test_a_writer_that_met_others_looks_again_much_sooner(store: ScriptedStore) -> None:
    time = [0.0]
    ours = journal(store)
    ours.retry = replace(ours.retry, clock=lambda: time[0])
    ours.load()
    write(journal(store.behind), "of another")
    ours.load()  # meets it
    store.requests.clear()
    time[0] += 2 * CONTENDED_FRESH
    write(ours, "ours")
    assert store.asked("list") == 2  # the look, and that for a fence
    time[0] += 2 * CONTENDED_FRESH
    write(ours, "alone now")
    assert store.asked("list") == 3


def test_a_writer_that_is_said_to_be_contended_begins_with_the_entries_of_others(
    store: ScriptedStore,
) -> None:
    """From a state of some seconds ago it would meet them one after another."""
    time = [0.0]
    ours = journal(store)
    ours.retry = replace(ours.retry, clock=lambda: time[0])
    ours.load()
    for n in range(3):
        write(journal(store.behind), f"of another {n}")
    time[0] += 2 * CONTENDED_FRESH
    begun: list[int] = []

    def propose(head: LoadedState[State]) -> Note:
        begun.append(head.version)
        return Note("ours", "ours")

    ours.append(propose, id="ours", contended=True)
    assert begun == [8]


def test_a_store_that_refuses_the_look_for_a_fence_is_asked_again(store: ScriptedStore) -> None:
    ours = journal(store)
    ours.load()
    store.on("list", "j/marks", instead=unavailable, times=3)
    assert write(ours, "ours").version == 6


def test_what_was_written_is_never_called_unavailable(store: ScriptedStore) -> None:
    ours = journal(store)
    ours.load()
    store.on("list", "j/marks", instead=unavailable, times=ALWAYS)
    with pytest.raises(OutcomeUnknown) as caught:
        write(ours, "ours", "our id")
    assert (caught.value.version, caught.value.entry_id) == (6, "our id")
    assert journal(store.behind).load().state == (*"abcde", "ours")


def test_an_id_that_was_sent_before_with_other_things_stands_as_it_was(store: ScriptedStore) -> None:
    ours = journal(store)
    ours.load()
    early = CODEC.encode(Note("our id", "sent first"))
    store.on("create", naming.entry("j", 6), before=partial(store.behind.create, naming.entry("j", 6), early))
    appended = write(ours, "sent again", "our id")
    assert (appended.version, appended.state) == (6, (*"abcde", "sent first"))
    assert ours.load() == journal(store).load() == LoadedState(6, (*"abcde", "sent first"))


# ---------------------------------------------------------------- following


def followed(store: Store, after: int, until: int) -> list[tuple[int, str]]:
    return [(n, note.text) for n, note in journal(store).between(after, until)]


def test_entries_are_followed_from_a_number_on_oldest_first(store: ScriptedStore) -> None:
    assert followed(store, 0, 5) == list(enumerate("abcde", 1))
    assert followed(store, 3, 4) == [(4, "d")]
    assert followed(store, 5, 5) == []
    for text in map(str, range(200)):
        write(journal(store.behind), text)
    assert [n for n, _ in followed(store, 1, 205)] == list(range(2, 206)), "more than are asked for at once"


def test_who_follows_and_was_overtaken_by_a_purge_hears_of_it(store: ScriptedStore) -> None:
    checkpoint(store.behind, at=3)
    purged(store.behind)
    assert followed(store, 3, 5) == [(4, "d"), (5, "e")]
    with pytest.raises(NotFound, match="version 3 is purged: the history begins after 3"):
        followed(store, 2, 5)


def test_entries_read_while_they_were_purged_are_not_believed(store: ScriptedStore) -> None:
    store.on("get", naming.entry("j", 5), before=lambda: checkpointed_and_purged(store.behind))
    with pytest.raises(NotFound, match="version 1 is purged"):
        followed(store, 0, 5)


@pytest.mark.parametrize("text", ["zombie", "misfit"])
def test_an_entry_that_the_proposer_has_seen_is_not_believed_below_a_fence(
    store: ScriptedStore, text: str
) -> None:
    """As a writer leaves it that stalled until its number was purged, whether it fits what we know or not."""
    ours = journal(store)
    ours.load()
    write(journal(store.behind), "f")
    checkpointed_and_purged(store.behind)

    def propose(head: LoadedState[State]) -> Note | NextEntry[Note]:
        seen = encode_linked(CODEC, Note("z", text), previous=0)
        return NextEntry(seen) if head.version == 5 else Note("our id", "ours")

    appended = ours.append(propose, id="our id")
    assert appended is not None
    assert appended.state == (*"abcdef", "ours")


def test_an_entry_that_the_proposer_has_seen_and_that_does_not_fit_is_corrupt(store: ScriptedStore) -> None:
    ours = journal(store)
    ours.load()
    misfit = Note("m", "misfit")
    store.behind.create(naming.entry("j", 6), CODEC.encode(misfit))
    with pytest.raises(Corrupt, match="a misfit"):
        ours.append(lambda head: NextEntry(encode_linked(CODEC, misfit, previous=0)), id="our id")


def test_a_hole_in_what_is_followed_is_corrupt(store: ScriptedStore) -> None:
    store.behind.delete(naming.entry("j", 3))
    with pytest.raises(Corrupt, match="missing, and not purged"):
        followed(store, 0, 5)


@pytest.mark.parametrize("keeps", [False, True])
def test_a_checkpoint_that_a_purge_has_overtaken_goes_unless_it_is_kept(
    store: ScriptedStore, keeps: bool
) -> None:
    """It was begun before the purge looked, and written below the fence afterwards."""
    checkpoint(store)
    purged(store)
    ours = replace(journal(store), kept=lambda state, now: frozenset([3] if keeps else []))
    late = Mark(3, naming.checkpoint("j", 3, an_id(2)))
    store.put(late.name, b"late")
    assert taken_back(ours, late, now=0.0) is not keeps
    assert (store.get(late.name) is not None) is keeps
    newest = ours.marks().checkpoints[0]
    assert not taken_back(ours, newest, now=0.0), "that of the fence stays"
