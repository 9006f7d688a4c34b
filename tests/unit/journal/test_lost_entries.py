"""An entry is lost, and a writer that cannot see what lies behind puts another one in its place.

What lies behind was decided on the lost entry.  No reader folds it onto the other one: it says so (decision 64).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from lake_core import naming
from lake_core.errors import Corrupt
from lake_core.journal import Journal, purge, write_state
from lake_core.records.codec import Codec, checksum_of
from lake_core.store import Created, Store
from log_lake.stores.local import LocalStore
from tests.support.damage import lose_and_replace
from tests.support.histories import retry
from tests.support.notes import CODEC, FORMAT, Note, State, fold, journal, write
from tests.support.records import an_id
from tests.support.stores import InPlaceStore, ScriptedStore, lost

THIRD = naming.entry("j", 3)


@pytest.fixture
def store() -> ScriptedStore:
    """A journal of five notes."""
    store = ScriptedStore(InPlaceStore())
    for text in "abcde":
        write(journal(store.behind), text)
    return store


def checksum(store: Store, version: int) -> int:
    return checksum_of(store.get(naming.entry("j", version)) or b"")


def checkpointed(store: Store) -> None:
    write_state(journal(store), journal(store).load(), id=an_id(1), now=0.0)


def replaced(store: ScriptedStore, version: int, text: str = "x") -> None:
    """The entry of the version is lost, and a new process writes another one there."""
    lose_and_replace(store.behind, "j", version, lambda: write(journal(store.behind), text))


def old_journal(store: Store) -> Journal[Note, State]:
    """The journal as a process of a lake of format version 1 writes it."""
    return Journal(store, "j", Codec(Note, version=1), (), fold, retry(), format=FORMAT)


# ---------------------------------------------------------------- who names what


def test_every_entry_names_the_checksum_of_the_one_before_it(store: ScriptedStore) -> None:
    entries = [journal(store).read_stored(n) for n in range(1, 6)]
    names = [entry.entry.previous for entry in entries if entry is not None]
    assert names == [0, *(checksum(store, n) for n in range(1, 5))]
    assert journal(store).load().checksum == checksum(store, 5)


def test_a_checkpoint_tells_the_checksum_of_its_entry(store: ScriptedStore) -> None:
    checkpointed(store)
    purge(journal(store), until=5)
    assert write(journal(store), "f").version == 6
    stored = journal(store).read(6)
    assert stored is not None
    assert stored.previous == journal(store).restore(journal(store).marks().checkpoints[0]).checksum != 0


def test_who_loses_a_race_names_the_winner(store: ScriptedStore) -> None:
    store.on("create", naming.entry("j", 6), before=lambda: write(journal(store.behind), "theirs"))
    assert write(journal(store), "ours").version == 7
    ours = journal(store).read(7)
    assert ours is not None
    assert ours.previous == checksum(store, 6)
    assert journal(store).load().state == (*"abcde", "theirs", "ours")


def test_an_entry_whose_answer_is_lost_is_told_from_another_one(store: ScriptedStore) -> None:
    sixth = naming.entry("j", 6)
    store.on("create", sixth, answer=lost)
    assert write(journal(store), "f").version == 6
    seventh = naming.entry("j", 7)
    store.on(
        "create", seventh, before=lambda: write(journal(store.behind), "g"), answer=lambda _: Created.UNKNOWN
    )
    assert write(journal(store), "h").version == 8
    assert journal(store).load().state == tuple("abcdefgh")


# ---------------------------------------------------------------- the hole is seen


@pytest.mark.parametrize("version", [1, 2, 3, 4])
@pytest.mark.parametrize("held", [False, True], ids=["a new process", "one that has read the entries before"])
def test_a_hole_on_local_files_stops_readers_and_writers(tmp_path: Path, version: int, held: bool) -> None:
    store = LocalStore(tmp_path)
    process = journal(store)
    for number, text in enumerate("abcde", start=1):
        if number == version and held:
            process.load()
        write(journal(store), text)
    store.delete(naming.entry("j", version))
    names = {info.name for info in store.list("")}
    for act in (lambda: process.load(), lambda: write(process, "x"), lambda: write(journal(store), "y")):
        with pytest.raises(Corrupt, match=f"{naming.entry('j', version)}: missing, and not purged"):
            act()
    assert {info.name for info in store.list("")} == names


def test_a_hole_that_the_listing_for_news_shows_stops_readers_and_writers() -> None:
    store = ScriptedStore(InPlaceStore())
    process = journal(store)
    write(journal(store.behind), "a")
    process.load()
    for text in "bcd":
        write(journal(store.behind), text)
    store.behind.delete(naming.entry("j", 2))
    for act in (lambda: process.load(), lambda: write(process, "x")):
        with pytest.raises(Corrupt, match=f"{naming.entry('j', 2)}: missing, and not purged"):
            act()
    assert store.asked("create") == 0


def test_a_hole_that_a_purge_has_made_is_none(store: ScriptedStore) -> None:
    """The reader stalled between its look at the marks and its reads."""
    reader = journal(store)
    store.put("j/HEAD", b"5")

    def meanwhile() -> None:
        checkpointed(store.behind)
        purge(journal(store.behind), until=4)
        write(journal(store.behind), "f")
        for version in (1, 2, 3, 4):
            store.behind.delete(naming.entry("j", version))
        purge(journal(store.behind), until=5)

    store.on("get", naming.entry("j", 1), before=meanwhile)
    assert reader.load().state == tuple("abcdef")


# ---------------------------------------------------------------- the entry in the middle is another one


READS: dict[str, Callable[[Journal[Note, State]], object]] = {
    "load": lambda ours: ours.load(),
    "load a version behind it": lambda ours: ours.load_version(4),
    "append": lambda ours: write(ours, "y"),
    "list from the newest on": lambda ours: list(ours.backwards()),
    "list from the oldest on": lambda ours: list(ours.between(0, 5)),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_every_read_and_write_names_the_entry_and_says_what_to_do(
    store: ScriptedStore, read: Callable[[Journal[Note, State]], object]
) -> None:
    replaced(store, 3)
    before = len(store.requests)
    with pytest.raises(Corrupt, match=f"{THIRD}: .* put the lost one back from a backup") as caught:
        read(journal(store))
    assert "\n" not in str(caught.value)
    assert not {"create", "put", "delete"} & {request for request, _ in store.requests[before:]}


def test_the_versions_before_it_are_read_as_before(store: ScriptedStore) -> None:
    replaced(store, 3)
    two = journal(store).load_version(2)
    assert two is not None
    assert two.state == ("a", "b")


def test_putting_the_lost_entry_back_heals_the_journal(store: ScriptedStore) -> None:
    backup = store.get(THIRD) or b""
    replaced(store, 3)
    store.put(THIRD, backup)
    assert journal(store).load().state == tuple("abcde")
    assert write(journal(store), "f").version == 6


def test_several_lost_entries_are_noticed_at_the_first_one_that_is_left(store: ScriptedStore) -> None:
    def write_two() -> None:
        write(journal(store.behind), "x")
        write(journal(store.behind), "y")

    store.behind.delete(naming.entry("j", 3))
    lose_and_replace(store.behind, "j", 2, write_two)
    with pytest.raises(Corrupt, match=THIRD):
        journal(store).load()


def test_a_reader_that_has_folded_the_entries_before_it_notices() -> None:
    store = ScriptedStore(InPlaceStore())
    held = journal(store)
    for text in "abcde":
        write(journal(store.behind), text)
        if text == "b":
            held.load()
    replaced(store, 3)
    with pytest.raises(Corrupt, match=THIRD):
        held.load()


def test_a_reader_that_has_folded_the_lost_entry_does_not_go_on_behind_another_one(
    store: ScriptedStore,
) -> None:
    """It was the newest: nothing on the store tells that it was there."""
    held = journal(store)
    assert held.load().state == tuple("abcde")
    replaced(store, 5)
    write(journal(store.behind), "y")
    for _ in range(2):
        with pytest.raises(Corrupt, match=naming.entry("j", 5)):
            held.load()
    with pytest.raises(Corrupt, match=naming.entry("j", 5)):
        write(held, "z")
    assert journal(store).load().state == (*"abcd", "x", "y")


def test_a_writer_that_has_folded_the_lost_entry_spoils_no_state(store: ScriptedStore) -> None:
    held = journal(store)
    held.load()
    replaced(store, 5)
    write(held, "f")
    with pytest.raises(Corrupt, match=naming.entry("j", 5)):
        journal(store).load()
    assert held.load().state == tuple("abcdef")


# ---------------------------------------------------------------- checkpoints behind it


def test_who_begins_at_a_checkpoint_behind_it_is_right(store: ScriptedStore) -> None:
    checkpointed(store)
    write(journal(store), "f")
    replaced(store, 3)
    assert journal(store).load().state == tuple("abcdef")
    assert write(journal(store), "g").version == 7


@pytest.mark.parametrize("version", [3, 4])
def test_an_earlier_version_that_rests_on_it_is_not_given_for_history(
    store: ScriptedStore, version: int
) -> None:
    checkpointed(store)
    replaced(store, 3)
    ours = journal(store)
    assert ours.load().state == tuple("abcde")
    with pytest.raises(Corrupt, match=THIRD):
        ours.load_version(version)


def test_the_entry_of_the_checkpoint_itself_is_another_one(store: ScriptedStore) -> None:
    checkpointed(store)
    replaced(store, 5)
    ours = journal(store)
    assert ours.load().state == tuple("abcde")
    with pytest.raises(Corrupt, match=naming.entry("j", 5)):
        next(ours.backwards())


def test_the_first_entry_behind_a_fence_is_another_one(store: ScriptedStore) -> None:
    three = journal(store).load_version(3)
    assert three is not None
    write_state(journal(store), three, id=an_id(1), now=0.0)
    purge(journal(store), until=3)
    replaced(store, 4)
    with pytest.raises(Corrupt, match=naming.entry("j", 4)):
        journal(store).load()


# ---------------------------------------------------------------- format version 1


def test_a_lake_of_version_1_has_no_links(store: ScriptedStore) -> None:
    old = ScriptedStore(InPlaceStore())
    for text in "ab":
        write(old_journal(old), text)
    assert old.get(naming.entry("j", 2)) == Codec(Note, version=1).encode(Note("id of b", "b"))
    mark = write_state(old_journal(old), old_journal(old).load(), id=an_id(1), now=0.0)
    assert old_journal(old).restore(mark).checksum == 0
    assert journal(old).load().state == ("a", "b")


def test_the_first_entry_after_an_upgrade_names_the_last_one_before_it() -> None:
    store = ScriptedStore(InPlaceStore())
    for text in "ab":
        write(old_journal(store), text)
    write(journal(store), "c")
    lose_and_replace(store, "j", 2, lambda: write(old_journal(store), "x"))
    with pytest.raises(Corrupt, match=naming.entry("j", 2)):
        journal(store).load()


def test_a_writer_of_version_1_that_fills_the_hole_is_noticed(store: ScriptedStore) -> None:
    lose_and_replace(store.behind, "j", 3, lambda: write(old_journal(store.behind), "x"))
    with pytest.raises(Corrupt, match=THIRD):
        journal(store).load()


def test_what_rests_on_a_checkpoint_of_version_1_is_read_and_linked_from_there_on() -> None:
    store = ScriptedStore(InPlaceStore())
    for text in "ab":
        write(old_journal(store), text)
    write_state(old_journal(store), old_journal(store).load(), id=an_id(1), now=0.0)
    for text in "cd":
        write(journal(store), text)
    assert journal(store).load().state == tuple("abcd")
    entries = [journal(store).read(n) for n in (3, 4)]
    assert [entry.previous for entry in entries if entry is not None] == [0, checksum(store, 3)]


def test_an_entry_of_the_same_id_and_other_content_is_another_one(store: ScriptedStore) -> None:
    """Its writer repeats it after the loss, and decides something else: the id alone would not tell."""
    lose_and_replace(store.behind, "j", 3, lambda: write(journal(store.behind), "other", "id of c"))
    with pytest.raises(Corrupt, match=THIRD):
        journal(store).load()


def test_the_same_entry_written_again_is_no_other_one(store: ScriptedStore) -> None:
    third = CODEC.decode(store.get(THIRD) or b"", name=THIRD)
    store.behind.delete(THIRD)
    store.put(THIRD, CODEC.encode(msgspec.structs.replace(third)))
    assert journal(store).load().state == tuple("abcde")
