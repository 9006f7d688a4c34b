"""Group commit: who has lost two races asks the winner of the next, and everybody learns the own outcome."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from lake_core import naming
from lake_core.checkpoints import CheckpointLimits
from lake_core.errors import Conflict, NotFound, OutcomeUnknown, Unavailable
from lake_core.history import Committed, History, HistoryLimits
from lake_core.history.group_commit.attempt import MAX_PAUSES, PAUSES_PER_WRITER
from lake_core.history.group_commit.requests import (
    MAX_REQUEST_BYTES,
    MAX_REQUESTS,
    MAX_WAIT_MICROSECONDS,
    DraftRequest,
    Requests,
    request_of,
)
from lake_core.history.history import CONTENDED_COMMITS
from lake_core.journal import JournalLimits, purge, write_state
from lake_core.keys.encoding import encode_value
from lake_core.records import AddTombstone, Consume, Entry, RemoveReference, RemoveTombstone, Source
from lake_core.records.codec import Codec
from lake_core.store import Created, Store
from log_lake.stores.local import LocalStore
from tests.support import histories
from tests.support.histories import transaction_ids
from tests.support.records import SCHEMA, add, an_id, draft, transaction
from tests.support.stores import ALWAYS, ScriptedStore, lost, opened, raising, unavailable

JOURNAL = "P/journal"
FILE = Source("landing/a", 7, "etag")
NOW = int(histories.NOW * 1e6)
CODEC = Codec(DraftRequest)
GENERATION = 4
LIMITS = HistoryLimits(
    journal=JournalLimits(generation_versions=GENERATION, checkpoints=CheckpointLimits(kept_groups=0))
)
"""Ids are soon forgotten, and checkpoints read again whenever they are asked."""

history = partial(histories.history, limits=LIMITS)


def entry(n: int) -> str:
    return naming.entry(JOURNAL, n)


def crowded(store: Store, *, company: int = CONTENDED_COMMITS) -> History:
    """A writer that knows of a crowd, and so looks for the requests of others."""
    ours = history(store)
    ours._contended = company
    return ours


def waiting(store: Store) -> list[str]:
    requests = Requests(store, JOURNAL)
    return [r.id for r in requests.read(requests.queue())]


def post(store: Store, n: int, *, possible_since: int = 0, time: int = NOW, **fields: object) -> None:
    """The request of number `n`, to add object `n`."""
    Requests(store, JOURNAL).post(draft(n, add(n), **fields), possible_since=possible_since, time=time)


def in_entry(store: Store, n: int) -> list[str]:
    """The transactions of an entry."""
    found = history(store).journal.read(n)
    assert found is not None
    return [t.id for t in found.transactions]


def others_win(store: ScriptedStore, *numbers: int) -> None:
    """Somebody is faster at each of these entries, with the transactions 101, 102, ..."""
    for n in numbers:
        faster = partial(history(store.behind).commit, draft(100 + n, add(100 + n)))
        store.on("create", entry(n), before=faster)


@pytest.fixture
def store() -> ScriptedStore:
    return ScriptedStore()


# ---------------------------------------------------------------- asking


def test_a_writer_asks_after_its_second_lost_race_and_no_earlier(store: ScriptedStore) -> None:
    others_win(store, 1)
    assert history(store).commit(draft(1, add(1))).version == 2
    assert store.asked("put", f"requests/{an_id(1)}.txn") == 0
    others_win(store, 3, 4)
    assert history(store).commit(draft(2, add(2))).version == 5
    assert store.asked("put", f"requests/{an_id(2)}.txn") == 1


def test_a_writer_that_met_others_asks_at_once_for_some_commits(store: ScriptedStore) -> None:
    others_win(store, 1, 2)
    ours = history(store)
    for n in range(1, CONTENDED_COMMITS + 3):
        ours.commit(draft(n, add(n)))
    asked = [store.asked("put", f"requests/{an_id(n)}.txn") for n in range(1, CONTENDED_COMMITS + 3)]
    assert asked == [*[1] * (CONTENDED_COMMITS + 1), 0], "then it was alone so often"


def test_who_finds_others_in_the_line_has_met_them(store: ScriptedStore) -> None:
    ours = crowded(store, company=1)
    post(store, 1)
    for n in (8, 9):
        ours.commit(draft(n, add(n)))
    assert in_entry(store, 1) == [an_id(8), an_id(1)]
    assert store.asked("put", f"requests/{an_id(9)}.txn") == 1


def test_a_state_that_was_old_is_no_crowd(store: ScriptedStore) -> None:
    """One race is lost by everybody who commits now and then; to ask for help would cost more than to try again."""
    ours = history(store)
    ours.load()
    for n in range(1, 9, 2):
        history(store.behind).commit(draft(n, add(n)))
        ours.commit(draft(n + 1, add(n + 1)))
    assert [store.asked("put", f"requests/{an_id(n + 1)}.txn") for n in range(1, 9, 2)] == [0] * 4


def test_who_waits_lets_those_before_it_go_first(store: ScriptedStore) -> None:
    post(store, 1)
    first = crowded(store.behind)
    ours = crowded(store)
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 2:
            first.commit(draft(1, add(1)))

    ours.journal.retry = replace(ours.journal.retry, sleep=pause)
    assert ours.commit(draft(9, add(9))) == Committed(1, an_id(9))
    assert in_entry(store, 1) == [an_id(1), an_id(9)]
    assert store.asked("create", entry(1)) == 0
    assert len(pauses) == 2


def test_who_waits_does_not_wait_for_the_dead(store: ScriptedStore) -> None:
    for n in range(20):
        post(store, n)
    ours, pauses = crowded(store), []
    ours.journal.retry = replace(ours.journal.retry, sleep=pauses.append)
    ours.commit(draft(99, add(99)))
    assert in_entry(store, 1) == [an_id(99), *(an_id(n) for n in range(20))]
    assert len(pauses) == MAX_PAUSES


def test_a_pause_in_the_line_is_as_long_as_the_store_took_to_list_it(store: ScriptedStore) -> None:
    post(store, 1)
    ours = crowded(store)
    time, pauses = [0.0], []

    def slow() -> None:
        time[0] += 0.3

    store.on("list", "requests", before=slow)
    ours.journal.retry = replace(
        ours.journal.retry, sleep=pauses.append, clock=lambda: time[0], jitter=lambda: 0.5
    )
    ours.commit(draft(9, add(9)))
    assert pauses == pytest.approx([0.3] * PAUSES_PER_WRITER)


def test_who_waited_in_vain_takes_in_those_who_came_meanwhile(store: ScriptedStore) -> None:
    post(store, 1)
    ours, pauses = crowded(store), []

    def pause(seconds: float) -> None:
        if not pauses:
            post(store.behind, 2)
        pauses.append(seconds)

    ours.journal.retry = replace(ours.journal.retry, sleep=pause)
    ours.commit(draft(9, add(9)))
    assert in_entry(store, 1) == [an_id(9), an_id(1), an_id(2)]


def test_a_combiner_reads_the_requests_of_others_once_and_not_its_own(store: ScriptedStore) -> None:
    for n in (1, 2):
        post(store, n)
    crowded(store).commit(draft(9, add(9)))
    assert [store.asked("get", f"requests/{an_id(n)}.txn") for n in (1, 2, 9)] == [1, 1, 0]


def test_who_was_overtaken_before_it_asked_steps_on_before_it_looks_at_the_line(store: ScriptedStore) -> None:
    ours = crowded(store)
    ours.load()
    history(store.behind).commit(draft(1, add(1)))
    assert ours.commit(draft(9, add(9))).version == 2
    assert store.asked("list", "requests") == 1
    assert store.asked("create", entry(1)) == 0


def test_a_request_is_withdrawn_by_its_writer_when_the_outcome_is_known(store: ScriptedStore) -> None:
    others_win(store, 1, 2)
    history(store).commit(draft(1, add(1)))
    assert waiting(store) == []


def test_the_winner_commits_the_request_and_its_writer_is_told_where_it_stands(store: ScriptedStore) -> None:
    others_win(store, 1, 2)
    combiner = crowded(store.behind)
    store.on("create", entry(3), before=lambda: combiner.commit(draft(9, add(9))))
    ours = history(store)
    assert ours.commit(draft(1, add(1), token="t")) == Committed(3, an_id(1))
    assert in_entry(store, 3) == [an_id(9), an_id(1)]
    assert transaction_ids(store) == [an_id(101), an_id(102), an_id(9), an_id(1)]
    assert waiting(store) == []
    snapshot = ours.load().state.branches["main"].snapshot
    assert snapshot.records == 4
    first = history(store).load().state.tokens.get("t")
    assert first is not None
    assert (first.version, first.transaction_id) == (3, an_id(1))
    assert ours.load().state.tokens.get("t") == first


def test_all_who_wait_are_committed_in_one_entry_oldest_first(store: ScriptedStore) -> None:
    for n in (3, 1, 2):
        post(store, n)
    assert crowded(store).commit(draft(9, add(9))).version == 1
    assert in_entry(store, 1) == [an_id(n) for n in (9, 1, 2, 3)]
    assert len(history(store).load().state.branches["main"].snapshot) == 4


def test_a_writer_that_knows_no_crowd_does_not_look_for_requests(store: ScriptedStore) -> None:
    post(store, 1)
    history(store).commit(draft(9, add(9)))
    assert in_entry(store, 1) == [an_id(9)]
    assert store.asked("list", "requests") == 0


def test_an_eighth_entry_takes_in_requests_though_its_writer_lost_no_race(store: ScriptedStore) -> None:
    post(store, 1)
    for n in range(11, 19):  # a process each, of one commit
        histories.history(store).commit(draft(n, add(n)))
    assert [in_entry(store, n) for n in (7, 8)] == [[an_id(17)], [an_id(18), an_id(1)]]
    assert store.asked("list", "requests") == 1


def test_requests_that_cannot_be_read_now_do_not_stop_the_winner(store: ScriptedStore) -> None:
    post(store, 1)
    store.on("list", "requests", instead=unavailable)
    assert crowded(store).commit(draft(9, add(9))).version == 1
    store.on("get", f"requests/{an_id(1)}.txn", instead=unavailable)
    assert crowded(store).commit(draft(10, add(10))).version == 2
    assert in_entry(store, 2) == [an_id(10)]


# ---------------------------------------------------------------- what is nobody's company

MANY = 200


def unreadable(store: ScriptedStore, what: str) -> None:
    """Objects older than every request, that can be neither read nor deleted."""
    names = [naming.request(JOURNAL, an_id(n)) for n in range(MANY)]

    def stored(n: int, branch: str, time: int) -> bytes:
        return CODEC.encode(request_of(draft(n, add(n), branch=branch), possible_since=0, time=time))

    for n, name in enumerate(names):
        data = {
            "empty": b"",
            "noise": b"PAR1",
            "another user's": b"x",
            "of a writer that died long ago": stored(n, "main", NOW - 2 * MAX_WAIT_MICROSECONDS),
            "never to be met": stored(n, "none", NOW),
            "copies": CODEC.encode(request_of(draft(MANY, add(MANY)), possible_since=0, time=NOW)),
            "huge": b"x" * (MAX_REQUEST_BYTES + 1 if n == 0 else 1),
        }[what]
        store.put(name, data)
        store.on("delete", name, instead=unavailable, times=ALWAYS)
        if what == "another user's":
            store.on("get", name, instead=unavailable, times=ALWAYS)
    store.requests.clear()


@pytest.mark.parametrize(
    "what",
    [
        "empty",
        "noise",
        "another user's",
        "of a writer that died long ago",
        "never to be met",
        "copies",
        "huge",
    ],
)
def test_what_cannot_be_read_or_committed_is_looked_at_once_and_nobody_waits_for_it(
    store: ScriptedStore, what: str
) -> None:
    unreadable(store, what)
    ours, pauses = crowded(store), list[float]()
    ours.journal.retry = replace(ours.journal.retry, sleep=pauses.append)
    ours.commit(draft(1001, add(1001)))
    first = len(pauses)
    assert first == (MAX_PAUSES if what == "never to be met" else 0), "one that may be met is waited for once"
    post(store, 1000)
    for n in range(1002, 1002 + CONTENDED_COMMITS):
        ours.commit(draft(n, add(n)))
    assert an_id(1000) in in_entry(store, 2), "what lies before it does not hide a request"
    for n in range(MANY):
        assert store.asked("get", f"requests/{an_id(n)}.txn") <= 1
        assert store.asked("delete", f"requests/{an_id(n)}.txn") <= 1
    assert len(pauses) == first + PAUSES_PER_WRITER, "for the one that waited"


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that every user of this machine reaches; pytest's own is for one."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@pytest.mark.skipif(os.getuid() != 0, reason="to be another user takes root")
def test_requests_that_another_user_owns_stop_nobody(shared: Path) -> None:
    """On a real folder: files that may be neither read nor deleted, in a folder where only their owner may."""
    lake = shared
    folder = lake / naming.requests(JOURNAL)
    folder.mkdir(parents=True)
    for path in (lake, lake / "P", lake / JOURNAL):
        path.chmod(0o777)
    folder.chmod(0o1777)
    for n in range(20):
        (folder / f"{an_id(n)}.txn").write_bytes(b"" if n % 2 else b"x" * 100)
        (folder / f"{an_id(n)}.txn").chmod(0o600)
    child = os.fork()
    if not child:
        status = 1
        with contextlib.suppress(BaseException):
            os.setuid(65534)
            ours = crowded(LocalStore(lake))
            landed = [ours.commit(draft(n, add(n))).version for n in range(101, 120)]
            status = 0 if landed == list(range(1, 20)) else 2
        os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert len(transaction_ids(LocalStore(lake))) == 19


# ---------------------------------------------------------------- exactly once


def test_a_request_that_was_committed_is_not_committed_again(store: ScriptedStore) -> None:
    post(store, 1)
    crowded(store).commit(draft(8, add(8)))
    post(store, 1)
    for n in range(9, 16):
        assert waiting(store) == [an_id(1)]
        crowded(store).commit(draft(n, add(n)))
    assert transaction_ids(store) == [an_id(8), an_id(1), *map(an_id, range(9, 16))]
    assert waiting(store) == [], "whoever writes an eighth entry takes away what is done"


def test_a_request_whose_writer_died_is_committed_once_though_its_combiner_dies_too(
    store: ScriptedStore,
) -> None:
    post(store, 1)
    dead = crowded(store)
    dead.load()
    store.on("create", entry(1), answer=lost, times=ALWAYS)
    store.on("get", entry(1), instead=unavailable, times=ALWAYS)
    with pytest.raises(OutcomeUnknown):
        dead.commit(draft(8, add(8)))
    assert crowded(store.behind).commit(draft(9, add(9))).version == 2
    assert transaction_ids(store.behind) == [an_id(8), an_id(1), an_id(9)]


def test_a_request_that_a_replace_overtook_is_committed_as_its_dead_writer_would_have(
    store: ScriptedStore,
) -> None:
    history(store).commit(draft(1, add(1)))
    post(store, 2)
    history(store).commit(draft(3, AddTombstone("t", encode_value(0), replaces=True), read_version=1))
    crowded(store).commit(draft(9, add(9), read_version=2))
    assert in_entry(store, 3) == [an_id(9), an_id(2)]
    held = history(store).load().state.branches["main"].tombstones.values()
    assert {t.transaction_id for t in held if t.self_only} == {an_id(2)}


def test_one_id_in_two_requests_is_committed_once(store: ScriptedStore) -> None:
    post(store, 1)
    other = CODEC.encode(request_of(draft(1, add(2)), possible_since=0, time=NOW))
    store.create(naming.request(JOURNAL, an_id(2)), other)
    crowded(store).commit(draft(9, add(9)))
    assert in_entry(store, 1) == [an_id(9), an_id(1)]
    held = history(store).load().state.branches["main"].snapshot.overlapping()
    assert [r.object for r in held] == [an_id(9), an_id(1)]


def test_a_request_that_arrives_after_its_writer_was_told_is_not_committed_again(
    store: ScriptedStore,
) -> None:
    others_win(store, 1, 2)
    history(store).commit(draft(1, add(1)))
    post(store, 1, possible_since=1)
    crowded(store).commit(draft(9, add(9)))
    assert transaction_ids(store) == [an_id(101), an_id(102), an_id(1), an_id(9)]


def test_requests_of_one_token_are_committed_once(store: ScriptedStore) -> None:
    post(store, 1, token="t")
    post(store, 2, token="t")
    crowded(store).commit(draft(9, add(9), token="t"))
    assert transaction_ids(store) == [an_id(9)]


def test_a_request_may_be_committed_only_where_everybody_knows_whether_it_was(store: ScriptedStore) -> None:
    one = request_of(draft(1, add(1)), possible_since=GENERATION - 1, time=NOW)
    assert one.may_be_committed_at(GENERATION, now=NOW, limits=LIMITS.journal)
    assert one.may_be_committed_at(2 * GENERATION - 1, now=NOW, limits=LIMITS.journal)
    assert not one.may_be_committed_at(2 * GENERATION, now=NOW, limits=LIMITS.journal)


@pytest.mark.parametrize("late", [-1, 1])
def test_a_request_of_long_ago_is_a_dead_writers_and_is_taken_away(store: ScriptedStore, late: int) -> None:
    one = request_of(draft(1, add(1)), possible_since=0, time=NOW)
    assert one.may_be_committed_at(1, now=NOW + late * MAX_WAIT_MICROSECONDS, limits=LIMITS.journal)
    assert not one.may_be_committed_at(1, now=NOW + late * (MAX_WAIT_MICROSECONDS + 1), limits=LIMITS.journal)
    post(store, 1, time=NOW + late * (MAX_WAIT_MICROSECONDS + 1))
    crowded(store).commit(draft(9, add(9)))
    assert transaction_ids(store) == [an_id(9)]
    assert waiting(store) == []


def stalled(store: ScriptedStore, meanwhile: Callable[[], object]) -> History:
    """A writer that has lost two races and asked; something happens before it looks again."""
    others_win(store, 1, 2)
    store.on("put", f"requests/{an_id(1)}.txn", answer=lambda answer: (meanwhile(), answer)[1])
    return history(store)


def generations(store: Store, *, first: int) -> None:
    """So many entries that ids of before are forgotten."""
    other = history(store)
    for n in range(2 * GENERATION):
        other.commit(draft(first + n, add(first + n, low=n, high=n + 1)))


def test_a_writer_that_stalled_for_long_finds_its_transaction_in_the_entries(store: ScriptedStore) -> None:
    def meanwhile() -> None:
        crowded(store.behind).commit(draft(9, add(9)))
        generations(store.behind, first=1000)

    assert stalled(store, meanwhile).commit(draft(1, add(1))) == Committed(3, an_id(1))


@pytest.mark.parametrize("company", [0, CONTENDED_COMMITS])
def test_the_same_draft_again_finds_its_entry_whether_others_are_met_or_not(
    store: ScriptedStore, company: int
) -> None:
    ours = history(store)
    ours.load()
    store.on("create", entry(1), answer=lost, times=4)
    store.on("get", entry(1), instead=unavailable, times=4)
    with pytest.raises(OutcomeUnknown):
        ours.commit(draft(1, add(1)))
    forgotten(store.behind, ours)
    ours._contended = company
    assert ours.commit(draft(1, add(1))) == Committed(1, an_id(1))
    assert transaction_ids(store).count(an_id(1)) == 1


def test_a_draft_whose_possible_entries_are_all_there_is_committed_though_what_came_before_is_purged(
    store: ScriptedStore,
) -> None:
    for n in range(11, 16):
        history(store.behind).commit(draft(n, add(n)))
    ours, other = history(store), history(store.behind)
    ours.load()
    store.on("create", entry(6), instead=lost, times=4)
    with pytest.raises(OutcomeUnknown):
        ours.commit(draft(1, add(1)))
    write_state(other.journal, other.load(), id=an_id(7), now=0.0)
    assert purge(other.journal, until=5).fence == 5
    forgotten(store.behind, ours)
    assert ours.commit(draft(1, add(1))) == Committed(26, an_id(1))


@pytest.mark.parametrize("purged", [False, True])
def test_the_same_draft_again_after_an_unknown_outcome_is_not_committed_twice_however_late(
    store: ScriptedStore, purged: bool
) -> None:
    ours = history(store)
    ours.load()
    store.on("create", entry(1), answer=lost, times=4)
    store.on("get", entry(1), instead=unavailable, times=4)
    with pytest.raises(OutcomeUnknown):
        ours.commit(draft(1, Consume((FILE,))))
    generations(store.behind, first=1000)
    if not purged:
        assert ours.commit(draft(1, Consume((FILE,)))) == Committed(1, an_id(1))
        return
    other = history(store.behind)
    write_state(other.journal, other.load(), id=an_id(7), now=0.0)
    purge(other.journal, until=10**9)
    for _ in range(3):
        with pytest.raises(OutcomeUnknown):
            ours.commit(draft(1, Consume((FILE,))))


def test_where_those_entries_are_purged_nobody_knows(store: ScriptedStore) -> None:
    def meanwhile() -> None:
        crowded(store.behind).commit(draft(9, add(9)))
        generations(store.behind, first=1000)
        other = history(store.behind)
        write_state(other.journal, other.load(), id=an_id(7), now=0.0)
        purge(other.journal, until=10**9)

    with pytest.raises(OutcomeUnknown, match="purged or lost; whether the transaction"):
        stalled(store, meanwhile).commit(draft(1, add(1)))


def test_what_was_written_below_the_fence_is_no_outcome(store: ScriptedStore) -> None:
    def meanwhile() -> None:
        generations(store.behind, first=1000)
        other = history(store.behind)
        write_state(other.journal, other.load(), id=an_id(7), now=0.0)
        purge(other.journal, until=10**9)
        # as a combiner writes it that saw the request, and stalled until its number was purged
        zombie = transaction(add(1), id=an_id(1), parent=1)
        store.behind.create(entry(2), Codec(Entry).encode(Entry(an_id(8), (zombie,))))

    with pytest.raises(OutcomeUnknown):
        stalled(store, meanwhile).commit(draft(1, add(1)))


def test_what_was_written_at_the_fence_is_no_outcome_either(store: ScriptedStore) -> None:
    """A number is free once it is purged: whoever stalled before it may write it again, and that is not history."""

    def meanwhile() -> None:
        other = history(store.behind)
        at_2 = other.load_version(2)
        write_state(other.journal, at_2, id=an_id(7), now=0.0)
        for n in range(1000, 1020):
            other.commit(draft(n, add(n)))
        assert purge(other.journal, until=2).fence == 2
        zombie = transaction(add(1), id=an_id(1), parent=1)
        store.behind.create(entry(2), Codec(Entry).encode(Entry(an_id(8), (zombie,))))

    with pytest.raises(OutcomeUnknown, match="purged or lost; whether"):
        stalled(store, meanwhile).commit(draft(1, add(1)))


# ---------------------------------------------------------------- requests that do not fit


def test_a_request_that_does_not_fit_is_left_to_its_writer(store: ScriptedStore) -> None:
    history(store).commit(draft(5, add(5)))
    post(store, 1, branch="nowhere")
    Requests(store, JOURNAL).post(
        draft(2, RemoveReference(an_id(77), encode_value(0))), possible_since=0, time=NOW
    )
    Requests(store, JOURNAL).post(draft(3, add(5)), possible_since=0, time=NOW)
    post(store, 4)
    crowded(store).commit(draft(9, add(9)))
    assert in_entry(store, 2) == [an_id(9), an_id(4)]


def test_a_request_sees_those_before_it_in_the_entry_as_they_will_be(store: ScriptedStore) -> None:
    """The delete of the first covers the records that the entry brings: so the second may not forget it."""
    delete = AddTombstone("gone", encode_value(0), encode_value(9))
    requests = Requests(store, JOURNAL)
    requests.post(draft(1, delete), possible_since=0, time=NOW)
    requests.post(draft(2, RemoveTombstone("gone")), possible_since=0, time=NOW)
    crowded(store).commit(draft(9, add(9)))
    assert in_entry(store, 1) == [an_id(9), an_id(1)]
    assert list(history(store).load().state.branches["main"].tombstones) == ["gone"]


def test_a_request_for_a_source_that_is_known_in_another_form_is_left_to_its_writer(
    store: ScriptedStore,
) -> None:
    history(store).commit(draft(5, Consume((Source(FILE.uri, 8, "newer"),))))
    Requests(store, JOURNAL).post(draft(1, Consume((FILE,))), possible_since=0, time=NOW)
    crowded(store).commit(draft(9, add(9)))
    assert in_entry(store, 2) == [an_id(9)]
    assert waiting(store) == [an_id(1)]


@pytest.mark.parametrize(
    "junk",
    [
        b"",
        b"garbage",
        CODEC.encode(request_of(draft(1, add(1)), possible_since=0, time=NOW))[:-3],
        b"LKJ\x03newer",
    ],
    ids=repr,
)
def test_what_cannot_be_read_is_passed_by_and_stays(store: ScriptedStore, junk: bytes) -> None:
    name = naming.request(JOURNAL, an_id(1))
    store.put(name, junk)
    post(store, 2)
    crowded(store).commit(draft(9, add(9)))
    assert in_entry(store, 1) == [an_id(9), an_id(2)]
    assert store.get(name) == junk


def test_a_request_with_a_schema_that_cannot_be_read_does_not_stop_the_winner(store: ScriptedStore) -> None:
    broken = request_of(draft(1, add(1)), possible_since=0, time=NOW)
    broken = DraftRequest(broken.id, 0, NOW, "main", 0, "x", broken.actions, (b"no schema",))
    store.create(naming.request(JOURNAL, an_id(1)), CODEC.encode(broken))
    assert crowded(store).commit(draft(9, add(9))).version == 1
    assert in_entry(store, 1) == [an_id(9)]


# ---------------------------------------------------------------- what the writer is told


def test_a_refusal_is_told_as_such_and_the_request_is_withdrawn(store: ScriptedStore) -> None:
    others_win(store, 1)
    taken = partial(history(store.behind).commit, draft(200, Consume((FILE,))))
    store.on("create", entry(2), before=taken)
    with pytest.raises(Conflict, match=FILE.uri):
        history(store).commit(draft(1, Consume((FILE,)), add(1)))
    assert waiting(store) == []


def test_a_refusal_before_any_race_leaves_no_request(store: ScriptedStore) -> None:
    with pytest.raises(NotFound):
        history(store).commit(draft(1, add(1), branch="nowhere"))
    assert store.asked("create") == 0


def test_who_gives_up_after_asking_does_not_know(store: ScriptedStore) -> None:
    others_win(store, 1, 2, 3, 4)
    with pytest.raises(OutcomeUnknown, match="may still be committed"):
        history(store, races=4).commit(draft(1, add(1)))
    assert waiting(store) == [an_id(1)], "so it stays"


def test_a_request_of_an_earlier_try_is_withdrawn_when_the_outcome_is_known(store: ScriptedStore) -> None:
    others_win(store, 1, 2, 3, 4)
    ours = history(store, races=4)
    with pytest.raises(OutcomeUnknown):
        ours.commit(draft(1, add(1)))
    assert waiting(store) == [an_id(1)]
    assert ours.commit(draft(1, add(1))) == Committed(5, an_id(1))
    assert waiting(store) == []


def test_a_store_that_fails_after_asking_leaves_the_outcome_unknown(store: ScriptedStore) -> None:
    others_win(store, 1, 2)
    store.on("create", entry(3), instead=unavailable)
    with pytest.raises(OutcomeUnknown, match="may still be committed"):
        history(store).commit(draft(1, add(1)))


@pytest.mark.parametrize("gives_up_by", ["conflict", "refusal of the store"])
def test_what_may_be_committed_yet_is_remembered_however_late_the_draft_is_tried_again(
    store: ScriptedStore, gives_up_by: str
) -> None:
    """Somebody commits the request afterwards, and so long ago that no recent id tells: the entries do."""
    ours, n = history(store, races=4), 5
    if gives_up_by == "conflict":
        others_win(store, 1, 2, 3, 4)
    else:
        others_win(store, 1, 2)
        store.on("create", entry(3), instead=unavailable)
        n = 3
    with pytest.raises(OutcomeUnknown, match="may still be committed"):
        ours.commit(draft(1, add(1)))
    crowded(store.behind).commit(draft(9, add(9)))
    assert an_id(1) in in_entry(store.behind, n)
    for other in range(1000, 1020):
        history(store.behind).commit(draft(other, add(other)))
    assert ours.commit(draft(1, add(1))) == Committed(n, an_id(1))
    assert transaction_ids(store).count(an_id(1)) == 1


def forgotten(store: Store, ours: History) -> None:
    """So many entries of others that no recent id tells `ours` any more what came before."""
    for other in range(1000, 1020):
        history(store).commit(draft(other, add(other)))
    assert ours.load().version > 16


@pytest.mark.parametrize("at", [("list", JOURNAL), ("get", entry(1))], ids=["it loads", "it looks for it"])
def test_what_is_unknown_stays_so_when_the_next_try_is_interrupted_while(
    store: ScriptedStore, at: tuple[str, str]
) -> None:
    """By Ctrl-C, or by the time limit of a task whose process goes on."""
    ours, time = history(store), [0.0]
    ours.journal.retry = replace(ours.journal.retry, clock=lambda: time[0])
    ours.load()
    store.on("create", entry(1), answer=lost, times=4)
    store.on("get", entry(1), instead=unavailable, times=4)
    with pytest.raises(OutcomeUnknown):
        ours.commit(draft(1, add(1)))
    forgotten(store.behind, ours)
    time[0] += 60
    store.on(*at, instead=raising(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        ours.commit(draft(1, add(1)))
    assert ours.commit(draft(1, add(1))) == Committed(1, an_id(1))
    assert transaction_ids(store).count(an_id(1)) == 1


@pytest.mark.parametrize("request_", ["create", "get", "list"])
def test_the_outcome_of_a_try_that_is_interrupted_is_unknown_to_the_next_one(
    store: ScriptedStore, request_: str
) -> None:
    """Whatever it waited for: its entry may be written, or somebody else may commit what it asked for."""
    ours = history(store)
    ours.load()
    n = 1 if request_ == "create" else 3
    if request_ == "create":
        store.on("create", entry(1), answer=raising(KeyboardInterrupt()))
    else:
        others_win(store, 1, 2)
        name = entry(3) if request_ == "get" else "requests"
        store.on(request_, name, instead=raising(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        ours.commit(draft(1, Consume((FILE,))))
    if request_ != "create":
        crowded(store.behind).commit(draft(9, add(9)))
    forgotten(store.behind, ours)
    assert ours.commit(draft(1, Consume((FILE,)))) == Committed(n, an_id(1))
    assert transaction_ids(store).count(an_id(1)) == 1


def test_a_state_that_cannot_be_read_now_refuses_nothing(store: ScriptedStore) -> None:
    for n, token in ((5, "t"), (6, "v")):
        history(store).commit(draft(n, add(n), token=token))
    kept = history(store)
    write_state(kept.journal, kept.load(), id=an_id(7), now=0.0)
    fails = False

    def data() -> bytes | None:
        if fails:
            raise Unavailable("the store refuses for now")
        return store.behind.get(kept.journal.marks().checkpoints[0].name)

    store.on("open_input", ".checkpoint", instead=lambda: opened("checkpoint", data))
    ours = history(store)
    ours.load()
    others_win(store, 3, 4)

    def asked(answer: Created) -> Created:
        nonlocal fails
        fails = True
        return answer

    store.on("put", f"requests/{an_id(1)}.txn", answer=asked)
    with pytest.raises(OutcomeUnknown, match="may still be committed"):
        ours.commit(draft(1, add(1), token="u"))


def test_a_store_that_fails_before_asking_is_unavailable(store: ScriptedStore) -> None:
    others_win(store, 1)
    store.on("create", entry(2), instead=unavailable)
    with pytest.raises(Unavailable):
        history(store).commit(draft(1, add(1)))
    assert transaction_ids(store.behind) == [an_id(101)]


def test_a_request_that_does_not_arrive_costs_nothing(store: ScriptedStore) -> None:
    others_win(store, 1, 2)
    store.on("put", f"requests/{an_id(1)}.txn", instead=unavailable)
    assert history(store).commit(draft(1, add(1))).version == 3


# ---------------------------------------------------------------- bounds


def test_an_entry_takes_so_many_requests_and_the_rest_waits(store: ScriptedStore) -> None:
    for n in range(1, MAX_REQUESTS + 3):
        post(store, n)
    crowded(store).commit(draft(900, add(900)))
    assert len(in_entry(store, 1)) == MAX_REQUESTS + 1
    crowded(store).commit(draft(901, add(901)))
    assert in_entry(store, 2) == [an_id(901), an_id(MAX_REQUESTS + 1), an_id(MAX_REQUESTS + 2)]


def test_a_draft_that_is_too_large_to_be_combined_is_not_posted(store: ScriptedStore) -> None:
    def is_posted(n: int, characters: int) -> bool:
        post(store, n, message="x" * characters)
        return store.behind.get(naming.request(JOURNAL, an_id(n))) is not None

    assert is_posted(1, 70_000)
    size = len(store.behind.get(naming.request(JOURNAL, an_id(1))) or b"")
    most = MAX_REQUEST_BYTES - size + 70_000  # characters of the message of the largest request
    assert is_posted(2, most)
    assert not is_posted(3, most + 1)


def test_an_entry_stays_below_its_bound_in_bytes(store: ScriptedStore) -> None:
    for n in range(1, 6):
        post(store, n, message="x" * (MAX_REQUEST_BYTES // 3))
    assert waiting(store) == [an_id(1), an_id(2)]


def test_a_request_holds_the_whole_draft(store: ScriptedStore) -> None:
    whole = draft(
        1, Consume((FILE,)), add(1), read_version=3, message="m", token="t", author="vera", schemas=(SCHEMA,)
    )
    Requests(store, JOURNAL).post(whole, possible_since=7, time=NOW)
    requests = Requests(store, JOURNAL)
    (found,) = requests.read(requests.queue())
    assert found.draft == whole
    assert (found.possible_since, found.time) == (7, NOW)
