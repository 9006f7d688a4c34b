"""Activity notes: written before a commit, renewed in time, and never in the way of it."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lake_core import naming
from lake_core.errors import Unavailable
from lake_core.history.activity import RENEW, SKEW, is_quiet, read_notes
from lake_core.ids import IdSource
from log_lake.lake import Lake
from log_lake.lake.branch import Branch
from log_lake.stores.memory import MemoryStore
from tests.support.clocks import Clock
from tests.support.stores import ALWAYS, ScriptedStore, unavailable

START = 1_800_000_000.0


@pytest.fixture
def clock() -> Clock:
    return Clock(START)


@pytest.fixture
def store(clock: Clock) -> ScriptedStore:
    return ScriptedStore(MemoryStore(clock=clock))


@pytest.fixture
def branch(store: ScriptedStore, clock: Clock) -> Branch:
    return Lake.create_on(store, ids=IdSource(clock=clock)).create_pool("p", key="k").branch()


def append(branch: Branch) -> None:
    branch.append(pa.table({"k": [1]}))


def notes(store: ScriptedStore) -> int:
    """How often a note was written."""
    return sum(1 for request, name in store.requests if request == "put" and name.startswith("activity/"))


def test_the_note_is_written_before_the_entry(branch: Branch, store: ScriptedStore) -> None:
    append(branch)
    note, entry = naming.activity(branch.config.id), naming.entry(branch.history.journal.name, 1)
    assert store.requests.index(("put", note)) < store.requests.index(("create", entry))
    assert read_notes(branch.store) == {branch.config.id: START}


def test_a_note_stands_for_the_commits_of_five_minutes(
    branch: Branch, store: ScriptedStore, clock: Clock
) -> None:
    for _ in range(3):
        append(branch)
        clock.now += RENEW / 3 - 1
    assert notes(store) == 1
    clock.now += 4
    append(branch)
    assert notes(store) == 2
    clock.now -= 2 * RENEW  # a clock that was set back
    append(branch)
    assert notes(store) == 3


def test_a_commit_that_outlives_its_note_renews_it(
    branch: Branch, store: ScriptedStore, clock: Clock
) -> None:
    def wait() -> None:
        clock.now += RENEW

    store.on("create", naming.entry(branch.history.journal.name, 1), before=wait)
    append(branch)
    assert notes(store) == 2
    assert read_notes(branch.store) == {branch.config.id: START + RENEW}


def test_a_refused_note_refuses_no_commit_and_the_next_commit_writes_it(
    branch: Branch, store: ScriptedStore
) -> None:
    def refuse() -> None:
        raise Unavailable("not now")

    store.on("put", branch.config.id, instead=refuse, times=2)  # before the commit, and after it
    append(branch)
    assert (branch.history.load().version, read_notes(branch.store)) == (1, {})
    append(branch)
    assert list(read_notes(branch.store) or {}) == [branch.config.id]


def test_what_lies_deeper_in_the_folder_is_the_note_of_no_pool(branch: Branch, clock: Clock) -> None:
    branch.store.put(f"{naming.ACTIVITY}/old/{branch.config.id}", b"\n")
    clock.now += 60
    append(branch)
    assert (read_notes(branch.store) or {})[branch.config.id] == START + 60


def test_a_pool_is_quiet_once_its_note_and_every_clock_are_surely_over() -> None:
    over = START + RENEW + SKEW
    assert is_quiet({"p": START}, "p", since=over)
    assert not is_quiet({"p": START}, "p", since=over - 1)
    assert not is_quiet({}, "p", since=over), "nothing is known of a pool without a note"


def test_a_writer_whose_note_is_refused_takes_the_older_one_away(
    branch: Branch, store: ScriptedStore, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """The older note says that nothing was written since: agents would not look."""
    append(branch)
    note = naming.activity(branch.config.id)
    clock.now += RENEW
    store.on("put", note, instead=unavailable, times=ALWAYS)
    store.requests.clear()
    append(branch)
    assert store.requests.index(("delete", note)) < store.requests.index(
        ("create", naming.entry(branch.history.journal.name, 2))
    )
    assert read_notes(branch.store) == {}
    assert not is_quiet({}, branch.config.id, since=clock.now + RENEW + SKEW)
    assert caplog.messages == []


def test_a_writer_who_may_neither_write_nor_delete_its_note_commits_and_warns_once(
    branch: Branch, store: ScriptedStore, caplog: pytest.LogCaptureFixture
) -> None:
    note = naming.activity(branch.config.id)
    for request in ("put", "delete"):
        store.on(request, note, instead=unavailable, times=ALWAYS)
    for _ in range(3):
        append(branch)
    (said,) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert note in said
    assert "neither written nor deleted" in said
