"""An erasure also removes the bytes of inlined objects: from entries, checkpoints and requests of the journal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from lake_core import naming
from lake_core.history import Draft
from lake_core.history.group_commit.requests import DraftRequest, request_of
from lake_core.ids import IdSource
from lake_core.journal.purge import purge, write_newest
from lake_core.records.codec import Codec
from log_lake.agents.compact.run import compact_pool, plan_pool
from log_lake.erasure.holders import BROUGHT_BACK, IN_JOURNAL, TAG
from log_lake.erasure.receipt import DONE, PENDING
from log_lake.erasure.run import erase, go_on
from log_lake.erasure.sighting import look
from log_lake.erasure.verify import verify
from log_lake.lake import Lake
from log_lake.stores.memory import MemoryStore
from tests.support.clocks import DAY, Clock
from tests.support.inlined import rows_in_journal
from tests.support.stores import StoreInFront

ANN = "who = 'ann'"


class People:
    """A pool of people whose loads lie in the journal."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.store = MemoryStore("memory://inlined", clock=self.clock)
        self.lake = Lake.create_on(self.store, ids=IdSource(clock=self.clock), author="test")
        settings = {"load.inline": "64KiB", "vacuum.grace": "1s"}
        self.pool = self.lake.create_pool("p", key="k", settings=settings)

    def load(self, *names: str, branch: str = "main") -> None:
        """A record a name; `note` is what an erasure must leave nowhere."""
        rows = [{"k": n, "who": name, "note": f"secret-of-{name}"} for n, name in enumerate(names)]
        self.pool.branch(branch).append(pa.Table.from_pylist(rows))
        self.clock.now += 1

    def checkpoint(self) -> None:
        journal = self.pool.history.journal
        write_newest(journal, new_id=self.pool.context.ids.new, now=self.clock.now)

    def compact(self) -> None:
        compact_pool(self.lake, "p", plan_pool(self.lake, "p", strategy="full", now=self.clock.now))

    def secrets(self) -> list[str]:
        """The names of everything in the journal in whose bytes Ann's records can be read."""
        found = rows_in_journal(self.store, self.pool.config.id)
        return [name for name, rows in found.items() if any(row["note"] == "secret-of-ann" for row in rows)]


@pytest.fixture
def people() -> People:
    return People()


def test_nothing_stored_has_the_records_afterwards(people: People) -> None:
    people.load("ann", "bob")
    people.checkpoint()
    people.load("eve")
    assert len(people.secrets()) == 2, "the entry, and the checkpoint"
    receipt = erase(people.pool, where=ANN)
    assert receipt.status == DONE
    assert len(receipt.erased) == 1
    assert people.secrets() == []
    assert list(verify(people.pool, receipt)) == []
    assert {row["who"] for row in people.pool.at().to_table().to_pylist()} == {"bob", "eve"}


def test_an_entry_of_an_object_that_a_compaction_took_is_searched_too(people: People) -> None:
    people.load("ann", "bob")
    people.load("ann", "carl")
    people.compact()
    people.pool.branch().delete(where=ANN)
    people.clock.now += 40 * DAY
    seen = look(people.pool, where=ANN)
    assert len({*seen.referred, *seen.removed}) == 3, "both loads, and what was made of them"
    receipt = erase(people.pool, where=ANN)
    assert receipt.status == DONE
    assert people.secrets() == []
    assert list(verify(people.pool, receipt)) == []


def test_without_a_purge_the_erasure_stays_pending_and_says_why(people: People) -> None:
    people.load("ann", "bob")
    receipt = erase(people.pool, where=ANN, keeps_history=True)
    assert receipt.status == PENDING
    assert {held.by.startswith(IN_JOURNAL) for held in receipt.held} == {True}
    assert people.secrets()
    found = list(verify(people.pool, receipt))
    assert any(naming.entry(naming.pool_journal(people.pool.config.id), 1) in line for line in found)


def test_a_younger_entry_that_refers_again_to_an_old_object_is_searched_too(people: People) -> None:
    """A branch at an old version, between two runs of the erasure, carries the bytes into its own entry."""
    people.load("ann", "bob")
    people.load("carl")
    receipt = erase(people.pool, where=ANN, keeps_history=True)
    people.checkpoint()
    erased = people.pool.history.load().version
    people.pool.create_branch("old", at="1")
    purge(people.pool.history.journal, until=erased)
    receipt = go_on(people.pool, receipt)
    assert (receipt.status, len(people.secrets())) == (PENDING, 1)
    people.checkpoint()
    purge(people.pool.history.journal, until=people.pool.history.load().version)
    receipt = go_on(people.pool, receipt)
    assert (receipt.status, people.secrets()) == (DONE, [])


def test_an_object_among_the_requests_that_is_none_holds_no_erasure(people: People) -> None:
    people.load("ann")
    junk = [
        naming.request(people.pool.history.journal.name, people.pool.context.ids.new()),
        f"{naming.requests(people.pool.history.journal.name)}/not-an-id.txn",
    ]
    for name in junk:
        people.store.put(name, b"")
    receipt = erase(people.pool, where=ANN)
    assert (receipt.status, people.secrets()) == (DONE, [])


@pytest.mark.parametrize("branch", ["main", "other"])
def test_a_tag_that_keeps_such_a_checkpoint_holds_the_erasure(people: People, branch: str) -> None:
    """The checkpoint of the tag's version has the records of all branches, whichever the tag names."""
    people.load("bob")
    people.pool.create_branch("other")
    people.load("ann", branch="main")
    people.load("carl", branch="other")
    people.pool.tag("kept", at=branch)
    receipt = erase(people.pool, where=ANN)
    assert receipt.status == PENDING
    assert {held.by for held in receipt.held} == {f"{TAG}kept"}
    people.pool.delete_tag("kept")
    receipt = go_on(people.pool, receipt)
    assert receipt.status == DONE
    assert people.secrets() == []
    assert list(verify(people.pool, receipt)) == []


def test_the_request_of_a_writer_that_died_is_deleted(people: People) -> None:
    people.load("ann")
    (action,) = [
        action
        for _, transaction in people.pool.history.read_transactions()
        for action in transaction.actions
        if getattr(action, "data", b"")
    ]
    id = people.pool.context.ids.new()
    again = msgspec.structs.replace(action, object=people.pool.context.ids.new())
    draft = Draft(id, "main", 1, "dead", (again,))
    request = request_of(draft, possible_since=1, time=int(people.clock.now * 1e6))
    name = naming.request(people.pool.history.journal.name, id)
    people.store.put(name, Codec(DraftRequest).encode(request))
    receipt = erase(people.pool, where=ANN)
    assert receipt.status == PENDING, "its writer may still live"
    assert any(naming.request_id(name) in held.by for held in receipt.held)
    people.clock.now += DAY
    receipt = go_on(people.pool, receipt)
    assert receipt.status == DONE
    assert people.secrets() == []


def test_a_reader_with_a_lease_keeps_the_journal_until_it_ends(people: People) -> None:
    people.load("ann", "bob")
    with people.pool.leased("1", why="report") as view:
        receipt = erase(people.pool, where=ANN)
        assert receipt.status == PENDING
        assert ["(report)" in held.by for held in receipt.held] == [True]
        assert view.to_table().num_rows == 2
        assert people.pool.at("1").to_table().num_rows == 2, "a task of the reader opens it again"
    with people.pool.leased("main", why="newer"):
        receipt = go_on(people.pool, receipt)
    assert receipt.status == DONE, "a reader of a later version needs nothing of it"
    assert people.secrets() == []


def test_a_checkpoint_remembers_that_older_entries_may_have_records(people: People) -> None:
    people.load("ann", "bob")
    people.compact()
    people.pool.branch().delete(where=ANN)
    people.checkpoint()
    other = Lake.open_on(people.store, ids=IdSource(clock=people.clock)).pool("p")
    assert not any(reference.data for reference in other.at().references)
    assert other.history.load().state.inlines
    assert erase(other, where=ANN).status == DONE
    assert people.secrets() == []


class Undoing(StoreInFront):
    """A store on which somebody undoes the rewriting of an erasure just before its tombstone is retired."""

    def __init__(self, people: People) -> None:
        self.behind, self.people, self.is_armed = people.store, people, True

    def ask(self, request: str, name: str, call: Callable[[], Any]) -> Any:
        if self.is_armed and request == "list" and name.endswith("/published"):
            self.is_armed = False
            rewritten = next(v for v, by in self.people.pool.log() if by.message.endswith(": rewrite"))
            self.people.pool.branch().undo(str(rewritten))
        return call()


def test_an_object_that_an_undo_brings_back_meanwhile_keeps_the_erasure_pending(people: People) -> None:
    people.load("ann", "bob")
    pool = Lake.open_on(Undoing(people), ids=IdSource(clock=people.clock)).pool("p")
    receipt = erase(pool, where=ANN, grace=0.0)
    assert (receipt.status, {one.by for one in receipt.held}) == (PENDING, {BROUGHT_BACK})
    assert [row["who"] for row in people.pool.at().to_table().to_pylist()] == ["bob"]
    assert go_on(people.pool, receipt, grace=0.0).status == DONE
    assert people.secrets() == []
