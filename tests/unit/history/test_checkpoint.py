"""A pool's state in a checkpoint: all that a later writer needs, read where it is needed.

That it is the same state as the folded one, whatever happened to the pool, is tests/properties/test_checkpoints.py.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from lake_core.checkpoints import CheckpointFile, CheckpointLimits
from lake_core.errors import (
    CheckpointDamaged,
    CheckpointGone,
    Conflict,
    Corrupt,
    NotFound,
    Unavailable,
)
from lake_core.history import History, HistoryLimits, PoolState, Snapshot
from lake_core.history.snapshot.fixed import CheckpointReferences
from lake_core.history.tombstone import Tombstone
from lake_core.ids import IdSource
from lake_core.journal import JournalLimits, purge, write_state
from lake_core.journal.marks import Mark
from lake_core.keys import KeyRange
from lake_core.keys.encoding import encode_value
from lake_core.keys.ranges import EVERYTHING
from lake_core.records import Consume, RemoveReference, Source
from lake_core.records.conditions import IsNull, Unless
from lake_core.records.transactions import sequence
from lake_core.store import Store
from log_lake.lake.named import resolve_revision
from tests.support import histories
from tests.support.clocks import DAY
from tests.support.crafted import craft
from tests.support.damage import turn_a_bit
from tests.support.records import add, an_id, draft
from tests.support.stores import ALWAYS, InPlaceStore, ScriptedStore, unavailable

FILE = Source("landing/a", 7, "etag")

LIMITS = HistoryLimits(journal=JournalLimits(checkpoints=CheckpointLimits(group_rows=2, kept_groups=0)))
"""Checkpoints of many row groups, of which none is kept in memory."""

history = partial(histories.history, limits=LIMITS)

pytestmark = pytest.mark.usefixtures("without_warnings")


def checkpoint(store: Store, *, now: float = 0.0, token_keep: float = 30 * DAY, id: int = 1) -> Mark:
    ours = history(store, token_keep=token_keep)
    return write_state(ours.journal, ours.load(), id=an_id(id), now=now, forget=1 << 40)


def restored(store: Store, mark: Mark) -> PoolState:
    return history(store).journal.restore(mark).state


def file_of(state: PoolState) -> CheckpointFile:
    base = snapshot(state).checkpoint
    assert isinstance(base, CheckpointReferences)
    return base.file


def snapshot(state: PoolState) -> Snapshot:
    return state.branches["main"].snapshot


@pytest.fixture
def store() -> ScriptedStore:
    return ScriptedStore(InPlaceStore())


# ---------------------------------------------------------------- what is kept


def test_a_pool_opens_from_its_checkpoint_as_it_was(store: ScriptedStore) -> None:
    history(store).commit(draft(1, add(1), Consume((FILE,)), token="t"))
    history(store).commit(draft(2, add(2, sub_pool="$nokey")))
    state = restored(store, checkpoint(store))
    folded = history(store).load_version(2).state
    assert snapshot(state).overlapping() == snapshot(folded).overlapping()
    assert snapshot(state).sub_pools() == ["$nokey"]
    assert (len(snapshot(state)), snapshot(state).records) == (2, 2)
    assert state.branches["main"].tip == 2
    assert state.tokens.get("t") == folded.tokens.get("t")
    assert state.ingested("main", FILE.uri) == FILE
    assert dict(state.schemas) == dict(folded.schemas)
    assert set(state.pool_schemas) == set(folded.pool_schemas)


def test_an_empty_pool_opens_from_its_checkpoint(store: ScriptedStore) -> None:
    state = restored(store, checkpoint(store))
    assert state.branches["main"].tip == 0
    assert snapshot(state).overlapping() == []


@pytest.mark.parametrize("kept", ["tombstones", "settled"])
def test_a_checkpoint_holds_no_condition_of_a_filter(store: ScriptedStore, kept: str) -> None:
    history(store).commit(draft(1, add(1)))
    loaded = history(store).load()
    main = loaded.state.branches["main"]
    forged = Tombstone("t", 1, sequence(1, 0), 0, an_id(1), 0, condition=Unless(IsNull(("a",))))
    branch = replace(main, **{kept: getattr(main, kept).insert("t", forged)})
    state = replace(loaded.state, branches=loaded.state.branches.insert("main", branch))
    mark = write_state(
        history(store).journal, replace(loaded, state=state), id=an_id(1), now=0.0, forget=1 << 40
    )
    with pytest.raises(Corrupt, match="the condition of a filter"):
        restored(store, mark)


def test_what_a_checkpoint_knows_decides_what_lands(store: ScriptedStore) -> None:
    history(store).commit(draft(1, add(1), Consume((FILE,)), token="t"))
    checkpoint(store)
    purge(history(store).journal, until=1)
    later = history(store)
    assert later.commit(draft(2, add(2), token="t")).repeated is not None
    with pytest.raises(Conflict, match=FILE.uri):
        later.commit(draft(3, add(3), Consume((FILE,))))
    with pytest.raises(Corrupt, match="added, but the branch has it already"):
        later.commit(draft(4, add(1)))
    with pytest.raises(Conflict, match="taken by another compaction"):
        later.commit(draft(5, RemoveReference(an_id(9), encode_value(0))))
    assert later.commit(draft(6, RemoveReference(an_id(1), encode_value(0)))).version == 2
    assert later.commit(draft(7, add(1, low=3))).version == 3
    assert [r.low for r in snapshot(history(store).load().state).overlapping()] == [encode_value(3)]


# ---------------------------------------------------------------- reading only what is needed


def test_opening_and_appending_read_no_references(store: ScriptedStore) -> None:
    for n in range(1, 9):
        history(store).commit(draft(n, add(n, low=n, high=n + 1)))
    checkpoint(store)
    ours = history(store)
    opened = file_of(ours.load().state).groups_read
    assert ours.commit(draft(100, add(100, low=50, high=51))).version == 9
    references = sum(g.section == "reference" for g in file_of(ours.load().state).footer.groups)
    assert references == 4
    assert file_of(ours.load().state).groups_read - opened == 0


def test_a_key_range_reads_the_row_groups_that_hold_it(store: ScriptedStore) -> None:
    for n in range(1, 9):
        history(store).commit(draft(n, add(n, low=n, high=n + 1)))
    state = restored(store, checkpoint(store))
    before = file_of(state).groups_read
    found = snapshot(state).overlapping(KeyRange(encode_value(5), encode_value(6)))
    assert [r.object for r in found] == [an_id(5)]
    assert file_of(state).groups_read - before == 1


def test_what_is_newer_than_a_sequence_is_read_from_the_row_groups_that_hold_such(
    store: ScriptedStore,
) -> None:
    for n in range(1, 9):  # four row groups by key; the newer of each two is in the same one
        history(store).commit(draft(n, add(n, low=n, high=n + 1)))
    state = restored(store, checkpoint(store))
    references = snapshot(state).overlapping()
    for version, groups in ((8, 0), (7, 1), (4, 2), (0, 4)):
        before = file_of(state).groups_read
        newer = snapshot(state).newer_than(sequence(version + 1) - 1)
        assert newer == [r for r in references if r.seq >= sequence(version + 1)]
        looked_at = 4 if groups else 0
        assert file_of(state).groups_read - before == looked_at + groups


def test_a_token_and_a_source_are_looked_up_in_one_row_group_each(store: ScriptedStore) -> None:
    for n in range(1, 9):
        history(store).commit(draft(n, add(n), Consume((Source(f"s{n}", n),)), token=f"t{n}"))
    state = restored(store, checkpoint(store))
    for ask in (lambda: state.tokens.get("t5"), lambda: state.sources.get(("main", "s5"))):
        before = file_of(state).groups_read
        assert ask() is not None
        assert file_of(state).groups_read - before == 1
    assert state.tokens.get("t") is None
    assert state.sources.get(("main", "s")) is None


def test_references_of_one_low_bound_are_kept_in_the_order_of_arrival_across_row_groups(
    store: ScriptedStore,
) -> None:
    for n in range(1, 6):
        history(store).commit(draft(n, add(n, low=3, high=4 + n)))
        checkpoint(store, id=n)
    file = file_of(history(store).load().state)
    rows = [row for table in file.scan("reference", branch="main") for row in table["object"].to_pylist()]
    assert rows == [an_id(n) for n in range(1, 6)]


# ---------------------------------------------------------------- tokens


def test_a_token_is_remembered_in_checkpoints_as_long_as_the_policy_says(store: ScriptedStore) -> None:
    history(store, clock=0.0).commit(draft(1, add(1), token="old"))
    history(store, clock=DAY).commit(draft(2, add(2), token="young"))
    for id, (now, known) in enumerate(
        ((10 * DAY, {"old", "young"}), (10.5 * DAY, {"young"}), (99 * DAY, set()))
    ):
        mark = checkpoint(store, now=now, token_keep=10 * DAY, id=id + 1)
        assert {token for token, _ in restored(store, mark).tokens.items()} == known


@pytest.mark.parametrize("checkpoints", [1, 2], ids=["at the first checkpoint", "at a later one"])
def test_a_token_is_kept_long_enough_though_its_writers_clock_is_behind(
    store: ScriptedStore, checkpoints: int
) -> None:
    """The history knows better: the token came after what others wrote, whose clocks are right."""
    history(store, clock=100 * DAY).commit(draft(1, add(1)))
    history(store, clock=0.0).commit(draft(2, add(2), token="t"))
    for day, id in ((101, 1), (109, 2))[:checkpoints]:
        checkpoint(store, now=day * DAY, token_keep=10 * DAY, id=id)
        purge(history(store).journal, until=9)
        assert history(store, clock=0.0).commit(draft(50 + id, token="t", read_version=0)).version == 2
        history(store, clock=day * DAY).commit(draft(2 + id, add(2 + id)))
    checkpoint(store, now=111 * DAY, token_keep=10 * DAY, id=3)
    purge(history(store).journal, until=9)
    assert history(store).load().state.tokens.get("t") is None


def test_a_token_is_kept_long_enough_though_a_clock_is_behind_since_the_last_checkpoint(
    store: ScriptedStore,
) -> None:
    day = 20_000
    history(store, clock=day * DAY).commit(draft(1, add(1)))
    ours = history(store)
    made = IdSource(clock=lambda: day * DAY).new()
    write_state(ours.journal, ours.load(), id=made, now=day * DAY)
    history(store, clock=0.0).commit(draft(2, add(2), token="t"))
    checkpoint(store, now=(day + 9) * DAY, token_keep=10 * DAY, id=2)
    purge(history(store).journal, until=9)
    assert history(store).load().state.tokens.get("t") is not None


def test_a_clock_that_is_ahead_makes_no_other_token_old(store: ScriptedStore) -> None:
    history(store, clock=100 * DAY).commit(draft(1, add(1), token="t"))
    history(store, clock=900 * DAY).commit(draft(2, add(2)))
    history(store, clock=101 * DAY).commit(draft(3, add(3), token="u"))
    checkpoint(store, now=102 * DAY, token_keep=10 * DAY)
    purge(history(store).journal, until=9)
    assert sorted(token for token, _ in history(store).load().state.tokens.items()) == ["t", "u"]
    newest = history(store).load().state.tokens.get("u")
    assert newest is not None
    assert newest.time == 102 * DAY * 1e6


def test_a_token_that_was_forgotten_can_be_used_again_and_everybody_can_fold_it(store: ScriptedStore) -> None:
    remembers = history(store)
    remembers.commit(draft(1, add(1), token="t"))
    mark = checkpoint(store, now=99 * DAY)
    assert history(store).commit(draft(2, add(2), token="t")).repeated is None
    assert remembers.load().version == 2
    store.delete(mark.name)
    whole = history(store)
    assert whole.load().version == 2
    first = whole.load().state.tokens.get("t")
    assert first is not None
    assert first == remembers.load().state.tokens.get("t")
    assert first.version == 2


def test_a_token_that_is_remembered_answers_though_its_entry_is_purged(store: ScriptedStore) -> None:
    first = history(store).commit(draft(1, add(1), token="t"))
    history(store).commit(draft(2, add(2)))
    checkpoint(store)
    purge(history(store).journal, until=2)
    again = history(store).commit(draft(3, add(3), token="t"))
    assert (again.version, again.transaction_id) == (first.version, first.transaction_id)
    assert again.repeated is not None
    assert again.repeated.records == 1


# ---------------------------------------------------------------- looking back past the fence


@pytest.fixture
def purged(store: ScriptedStore) -> History:
    """Transactions 1 to 4 at the seconds 10 to 40, purged up to 2."""
    for n in (1, 2):
        history(store, clock=10.0 * n).commit(draft(n, add(n)))
    checkpoint(store)
    for n in (3, 4):
        history(store, clock=10.0 * n).commit(draft(n, add(n)))
    purge(history(store).journal, until=2)
    return history(store)


@pytest.mark.parametrize("revision", ["1", an_id(1), "main@1970-01-01T00:00:15Z"])
def test_a_revision_before_the_fence_gives_one_clear_line(purged: History, revision: str) -> None:
    with pytest.raises(NotFound, match="the history begins after 2") as caught:
        resolve_revision(purged, revision)
    assert "purged" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("revision", "n"), [("2", 2), ("3", 3), (an_id(4), 4), ("main@1970-01-01T00:00:35Z", 3), ("main", 4)]
)
def test_a_revision_from_the_fence_on_is_there(purged: History, revision: str, n: int) -> None:
    head, _ = resolve_revision(purged, revision)
    assert head.version == n
    assert len(snapshot(head.state)) == n


def test_the_log_goes_back_to_the_fence(purged: History) -> None:
    assert [n for n, _ in purged.read_transactions()] == [4, 3]


# ---------------------------------------------------------------- a checkpoint that fails later


def damaged_late(store: Store, mark: Mark, section: str = "reference") -> None:
    """The checkpoint with damage that is seen only when a section is read."""
    turn_a_bit(store, mark.name, section=section)
    with pytest.raises(CheckpointDamaged):
        CheckpointFile(store, mark.name).verify()


def found(state: PoolState) -> list[str]:
    return [r.object for r in snapshot(state).overlapping()]


def test_damage_that_is_found_late_does_not_stop_a_writer(store: ScriptedStore) -> None:
    history(store).commit(draft(1, add(1)))
    damaged_late(store, checkpoint(store))
    removal = draft(2, RemoveReference(an_id(1), encode_value(0)), add(2))
    assert history(store).commit(removal).version == 2
    assert [t.id for _, t in history(store).read_transactions()] == [an_id(2), an_id(1)]


@pytest.mark.parametrize("purged", [False, True], ids=["entries alone", "an older checkpoint and entries"])
def test_a_reader_that_finds_damage_late_reads_the_same_state_from_elsewhere(
    store: ScriptedStore, purged: bool
) -> None:
    for n in range(1, 6):
        history(store).commit(draft(n, add(n, low=n % 2)))
    if purged:
        checkpoint(store, id=1)
        purge(history(store).journal, until=5)
    for n in range(6, 9):
        history(store).commit(draft(n, add(n, low=n % 2)))
    expected = found(history(store).load().state)
    mark = checkpoint(store, id=2)
    damaged_late(store, mark)
    reader = history(store)
    state = reader.load().state
    assert file_of(state).name == mark.name
    assert found(state) == expected
    assert list(snapshot(state).overlapping(KeyRange(b"", encode_value(1)))) != []
    assert snapshot(state).holds(expected[0], encode_value(0))
    assert found(history(store).load().state) == expected
    newest = reader.load()
    assert newest.checkpoint is None or newest.checkpoint.name != mark.name, "from now on it is passed over"


def test_a_row_that_is_no_reference_stops_no_look_at_older_ones(store: ScriptedStore) -> None:
    for n in range(1, 4):
        history(store).commit(draft(n, add(n)))
    writer = history(store)
    state = writer.load().state
    expected = {r.object for r in snapshot(state).reaching(2**62, EVERYTHING)}
    bad = {"value": b"\xc1"}  # no statistics: seen when the row is decoded

    def damage(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        first = next(row for row in rows if row["section"] == "reference")
        return [row | bad if row is first else row for row in rows]

    name = craft(writer.journal, damage, id=an_id(9))
    reader = history(store)
    state = reader.load().state
    assert file_of(state).name == name
    assert {r.object for r in snapshot(state).reaching(2**62, EVERYTHING)} == expected


@pytest.mark.parametrize("section", ["token", "source"])
def test_tokens_and_sources_are_known_although_their_pages_are_damaged(
    store: ScriptedStore, section: str
) -> None:
    for n in range(1, 6):
        file = Source(f"landing/{n}", n, "etag")
        history(store, clock=1e9 * n).commit(draft(n, add(n), Consume((file,)), token=f"t{n}"))
    damaged_late(store, checkpoint(store, now=3e9, token_keep=1e9), section)
    state = history(store).load().state
    kept = [n for n in range(1, 6) if f"t{n}" in state.tokens]
    assert kept[-4:] == [2, 3, 4, 5]
    assert [n for n in range(1, 6) if ("main", f"landing/{n}") in state.sources] == [1, 2, 3, 4, 5]
    assert {uri for (_, uri), _ in state.sources.items()} == {f"landing/{n}" for n in range(1, 6)}


def test_damage_that_nothing_can_mend_is_corrupt_and_named(store: ScriptedStore) -> None:
    history(store).commit(draft(1, add(1)))
    mark = checkpoint(store)
    purge(history(store).journal, until=1)
    damaged_late(store, mark)
    state = history(store).load().state
    with pytest.raises(Corrupt, match=f"{mark.name}: row group .* is damaged"):
        snapshot(state).overlapping()


@pytest.mark.parametrize("section", ["reference", "token", "source"])
def test_a_purge_rests_on_no_checkpoint_of_which_a_page_is_damaged(
    store: ScriptedStore, section: str
) -> None:
    """Also where it can be opened, and its damage would be found much later, when the entries are gone."""
    for n in range(1, 4):
        file = Source(f"landing/{n}", n, "etag")
        history(store).commit(draft(n, add(n), Consume((file,)), token=f"t{n}"))
    sound = checkpoint(store, id=1)
    history(store).commit(draft(4, add(4), token="t4"))
    damaged_late(store, checkpoint(store, id=2), section)
    assert purge(history(store).journal, until=4).fence == sound.version
    state = history(store).load().state
    assert found(state) == [an_id(n) for n in range(1, 5)]
    assert [n for n in range(6) if f"t{n}" in state.tokens] == [1, 2, 3, 4]


def test_a_store_that_does_not_answer_while_damage_is_mended_is_unavailable(store: ScriptedStore) -> None:
    history(store).commit(draft(1, add(1)))
    damaged_late(store, checkpoint(store))
    state = history(store).load().state
    store.on("get", ".txn", instead=unavailable, times=ALWAYS)
    with pytest.raises(Unavailable):
        snapshot(state).overlapping()
    store.forget()
    assert found(state) == [an_id(1)]


def test_every_turned_bit_is_passed_over_by_a_new_process(store: ScriptedStore) -> None:
    """Wherever a checkpoint is damaged: all that can be asked is answered as the entries say."""
    stride = 61  # a prime, to meet all kinds of bytes
    for n in range(1, 5):
        history(store).commit(draft(n, add(n), Consume((Source(f"f{n}", 1, ""),)), token=f"t{n}"))
    mark = checkpoint(store)
    whole = store.get(mark.name) or b""
    healed = 0
    for at in range(0, len(whole), stride):
        store.put(mark.name, whole[:at] + bytes((whole[at] ^ 1 << at % 8,)) + whole[at + 1 :])
        reader = history(store)
        state = reader.load().state
        assert found(state) == [an_id(n) for n in range(1, 5)], f"byte {at}"
        assert [n for n in range(6) if f"t{n}" in state.tokens] == [1, 2, 3, 4], f"byte {at}"
        assert [n for n in range(6) if ("main", f"f{n}") in state.sources] == [1, 2, 3, 4], f"byte {at}"
        healed += bool(reader.journal._damaged)
    assert healed > len(whole) / stride / 8


def test_a_state_whose_checkpoint_was_purged_says_load_again_and_then_can_be_read(
    store: ScriptedStore,
) -> None:
    history(store).commit(draft(1, add(1)))
    checkpoint(store)
    reader = history(store)
    old = reader.load().state
    history(store).commit(draft(2, add(2)))
    checkpoint(store, id=2)
    purge(history(store).journal, until=2)
    with pytest.raises(CheckpointGone, match="load again"):
        snapshot(old).overlapping()
    assert len(snapshot(reader.load().state).overlapping()) == 2


def test_a_writer_whose_checkpoint_was_purged_goes_on_from_the_next(store: ScriptedStore) -> None:
    history(store).commit(draft(1, add(1), token="t"))
    checkpoint(store)
    ours = history(store)
    ours.load()
    history(store).commit(draft(2, add(2)))
    checkpoint(store, id=2)
    purge(history(store).journal, until=2)
    assert ours.commit(draft(3, add(3), token="t")).repeated is not None
    assert ours.commit(draft(4, add(4), token="u")).version == 3


def test_a_checkpoint_keeps_the_source_files_of_each_branch(store: ScriptedStore) -> None:
    ours = history(store)
    ours.commit(draft(1, add(1), Consume((FILE,))))
    loaded = ours.load()
    branches = loaded.state.branches.insert("z", loaded.state.branches["main"])
    state = replace(loaded.state, branches=branches)
    mark = write_state(ours.journal, replace(loaded, state=state), id=an_id(1), now=0.0)
    assert restored(store, mark).ingested("main", FILE.uri) == FILE
    assert restored(store, mark).sources.get(("z", FILE.uri)) is None
