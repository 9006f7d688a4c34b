"""Transactions over several pools: what users do with them, what is refused, what may be committed beside them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from lake_core import naming
from lake_core.errors import Conflict, Corrupt, InvalidInput, NotFound, Undecided
from lake_core.history import Draft
from lake_core.history.fold import fold_transaction
from lake_core.history.rebase import rebase
from lake_core.history.restored import check_restored
from lake_core.history.transactions.commuting import commutes
from lake_core.history.transactions.decisions import Decisions
from lake_core.ids import IdSource
from lake_core.journal import write_state
from lake_core.journal.purge import purge
from lake_core.records import (
    Action,
    AddObject,
    AddTombstone,
    Close,
    Consume,
    CreateBranch,
    MarkApplied,
    Merge,
    Prepare,
    RemoveReference,
    SetTag,
    Settle,
    Source,
    Split,
)
from lake_core.records.transactions import version_of
from lake_core.schemas import APPEND, Rule
from log_lake.lake import Lake
from log_lake.lake.moment import states_at_one_moment
from log_lake.lake.open_transactions import clean, due, transactions
from log_lake.lake.pool import Pool
from log_lake.rewriting.compaction import compact
from log_lake.sql_writes import execute
from log_lake.stores.memory import MemoryStore
from log_lake.stores.read_only import ReadOnlyStore
from tests.support.records import an_id, transaction
from tests.support.stores import StoreInFront


def table(*found: int) -> pa.Table:
    return pa.table({"k": pa.array(found, pa.int64())})


def keys(lake: Lake, name: str) -> list[int]:
    found: list[int] = lake.pool(name).at().to_table()["k"].to_pylist()
    return found


@pytest.fixture
def lake() -> Lake:
    lake = Lake.create_on(MemoryStore("memory://transactions"), author="test")
    for name in ("a", "b", "c"):
        lake.create_pool(name, key="k").branch().append(table(1, 2))
    return lake


def test_all_pools_change_at_once_and_the_writer_reads_its_own_writes(lake: Lake) -> None:
    with lake.transaction() as tx:
        tx.pool("a").append(table(3))
        tx.pool("b").delete(where="k = 1")
        assert tx.at("a").to_table()["k"].to_pylist() == [1, 2, 3]
        assert tx.at("b").to_table()["k"].to_pylist() == [2]
        assert tx.at("c").to_table()["k"].to_pylist() == [1, 2]
        assert (keys(lake, "a"), keys(lake, "b")) == ([1, 2], [1, 2])
    assert (keys(lake, "a"), keys(lake, "b")) == ([1, 2, 3], [2])
    assert tx.result is not None
    assert set(tx.result.versions) == {"a", "b"}
    assert set(lake.pool("a").history.load().state.branches.keys()) == {"main"}


def test_bad_arguments_get_a_line(lake: Lake) -> None:
    bad: list[dict[str, Any]] = [{"id": 5}, {"open_for": "5"}, {"token": "\ud800"}, {"message": "\ud800"}]
    for arguments in bad:
        with pytest.raises(InvalidInput):
            lake.transaction(**arguments)


def test_a_block_that_fails_leaves_nothing(lake: Lake) -> None:
    def fail() -> None:
        with lake.transaction() as tx:
            tx.pool("a").append(table(3), token="t")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert keys(lake, "a") == [1, 2]
    assert list(lake.store.list("transactions")) == []
    state = lake.pool("a").history.load().state
    assert set(state.branches.keys()) == {"main"}
    assert len(list(state.removed.items())) == 1  # the vacuum deletes what was written
    with lake.transaction() as again:  # a token counts in its transaction
        again.pool("a").append(table(3), token="t")
        again.pool("a").append(table(3), token="t")
    assert keys(lake, "a") == [1, 2, 3]


def test_the_token_of_a_statement_counts_in_its_transaction(lake: Lake) -> None:
    sql = "INSERT INTO b BY NAME SELECT k + 1 AS k FROM a WHERE k = 1"
    first = lake.transaction()
    assert execute(lake, sql, token="t", transaction=first.id).records == 1
    assert execute(lake, sql, token="t", transaction=first.id).repeated
    first.abort()
    with lake.transaction() as again:
        assert not execute(lake, sql, token="t", transaction=again.id).repeated
    assert keys(lake, "b") == [1, 2, 2]


def test_a_second_transaction_with_the_token_changes_nothing(lake: Lake) -> None:
    with lake.transaction(token="run 7") as tx:
        tx.pool("a").append(table(3))
        tx.pool("b").append(table(3))
    with lake.transaction(token="run 7") as second:
        second.pool("b").append(table(4))
    assert second.result is not None
    assert tx.result is not None
    assert (second.result.repeated, second.result.versions) == (True, {"b": tx.result.versions["b"]})
    assert keys(lake, "b") == [1, 2, 3]
    assert tx.commit().versions.keys() == {"a", "b"}  # a repeated commit is the same one


def test_what_a_pool_refuses_aborts_all(lake: Lake) -> None:
    tx = lake.transaction()
    tx.pool("a").append(table(3))
    tx.pool("b").replace_with(table(7), key_range=lake.pool("b").at().key_range(low=5, high=9))
    lake.pool("b").branch().replace_with(table(8), key_range=lake.pool("b").at().key_range(low=5, high=9))
    with pytest.raises(Conflict, match="replaced overlapping ranges"):
        tx.commit()
    assert (keys(lake, "a"), keys(lake, "b")) == ([1, 2], [1, 2, 8])
    with pytest.raises(NotFound, match="does not exist, or was ended"):
        tx.commit()


def test_a_committed_or_aborted_transaction_takes_no_more_writes(lake: Lake) -> None:
    tx = lake.transaction()
    held = tx.pool("a")
    held.append(table(3))
    tx.commit()
    with pytest.raises(Conflict, match="takes no more reads or writes"):
        tx.pool("b")
    with pytest.raises(NotFound):
        held.append(table(4))
    with pytest.raises(Conflict, match="is committed"):
        tx.abort()
    assert keys(lake, "a") == [1, 2, 3]


def test_its_branches_cannot_be_taken_apart(lake: Lake) -> None:
    tx = lake.transaction()
    tx.pool("a").append(table(3))
    with pytest.raises(InvalidInput, match="belongs to a transaction, which commits"):
        lake.pool("a").branch().merge(tx.branch)
    with pytest.raises(InvalidInput, match="no other branch begins on it"):
        lake.pool("a").create_branch("mine", at=tx.branch)
    with pytest.raises(InvalidInput, match="belongs to a transaction"):
        lake.pool("a").create_branch(naming.transaction_branch(an_id(9)))
    with pytest.raises(InvalidInput, match=r"main.*already"):
        tx.pool("a", into="other")
    with pytest.raises(InvalidInput, match="sub-pool"):
        tx.pool("a.$nokey")
    tx.commit()


class DeletesBranchAtJoin(StoreInFront):
    """Another process deletes the branch `dev` as soon as a pool has joined."""

    def __init__(self, lake: Lake) -> None:
        self.behind, self.lake = lake.store, lake

    def ask(self, request: str, name: str, call: Callable[[], Any]) -> Any:
        answer = call()
        if request == "create" and "/joined-" in name:
            self.lake.pool("a").delete_branch("dev")
        return answer


def test_a_branch_that_is_deleted_while_its_pool_joins_is_not_found(lake: Lake) -> None:
    lake.pool("a").create_branch("dev")
    tx = Lake.open_on(DeletesBranchAtJoin(lake), author="other").transaction()
    with pytest.raises(NotFound, match="branch 'dev' does not exist"):
        tx.pool("a", into="dev")
    tx.abort()


def test_a_dropped_pool_aborts_it(lake: Lake) -> None:
    tx = lake.transaction()
    tx.pool("a").append(table(3))
    tx.pool("b").append(table(3))
    lake.drop_pool("b")
    with pytest.raises(NotFound, match="dropped"):
        tx.commit()
    assert keys(lake, "a") == [1, 2]


def test_what_was_left_open_is_listed_and_ended(lake: Lake) -> None:
    tx = lake.transaction(open_for=0.001, message="nightly")
    tx.pool("a").append(table(3))
    kept = lake.transaction()
    assert [(row.id, row.state, row.pools) for row in transactions(lake)] == [
        (tx.id, "open", ("a",)),
        (kept.id, "open", ()),
    ]
    assert clean(lake, grace=0).ended == (tx.id,)
    assert [row.id for row in transactions(lake)] == [kept.id]
    kept.commit()
    assert [row.state for row in transactions(lake)] == ["committed"]
    assert clean(lake, grace=-1).ended == ()
    assert transactions(lake) == []


def test_a_reader_that_may_not_write_sees_what_is_decided(lake: Lake) -> None:
    """The owner dies right after its decision."""
    tx = lake.transaction()
    tx.pool("a").append(table(3))
    tx.pool("b").append(table(3))
    prepared = {pool.config.id: prepare(pool, tx.id) for pool in (lake.pool("a"), lake.pool("b"))}
    reader = Lake.open_on(ReadOnlyStore(lake.store), author="reader")
    assert keys(reader, "a") == [1, 2]
    Decisions(lake.store, lake.context.clock).decide(tx.id, committed=True, by="test", prepared=prepared)
    assert (keys(reader, "a"), keys(reader, "b")) == ([1, 2, 3], [1, 2, 3])
    assert len(lake.pool("a").history.load().state.pending) == 1
    both = states_at_one_moment([reader.pool("a"), reader.pool("b")])
    assert all(not len(loaded.state.pending) for loaded in both.values())


def prepare(pool: Pool, over: str) -> int:
    branch = naming.transaction_branch(over)
    action = Prepare(over, branch, "main", IdSource().new())
    version = pool.history.load().version
    return pool.history.commit(Draft(IdSource().new(), "", version, "test", (action,))).version


SCHEMA = "0" * 20
ADDED = AddObject(an_id(80), 1, 1, SCHEMA, b"\x01", b"\x02")
COMPACTED = AddObject(an_id(81), 1, 1, SCHEMA, b"\x01", b"\x02", seqs=(1, 2))
REMOVED = RemoveReference(an_id(82), b"\x01")
HIDDEN = AddTombstone("t")

TABLE: dict[str, tuple[str, tuple[Action, ...], bool, bool]] = {
    # a draft: its branch, its actions; whether it commutes with a part that only adds, and with one that deletes
    "load": ("main", (ADDED,), True, False),
    "load of another file": ("main", (ADDED, Consume((Source("f", 1),))), True, False),
    "load of the same file": ("main", (ADDED, Consume((Source("of-part", 1),))), False, False),
    "delete": ("main", (HIDDEN,), False, False),
    "replace": ("main", (ADDED, AddTombstone("t", replaces=True)), False, False),
    "compaction": ("main", (COMPACTED, REMOVED), True, True),
    "applied delete": ("main", (MarkApplied(an_id(83), b"\x01", 1),), True, True),
    "expiry": ("main", (REMOVED,), False, False),
    "tag": ("", (SetTag("t", 1, "main"),), True, True),
    "split": ("", (Split((b"\x05",)),), True, True),
    "drop": ("main", (Close(),), False, False),
    "new branch": ("dev", (CreateBranch("main"),), False, False),
    "load into another branch": ("dev", (ADDED,), True, True),
    "merge of another branch": ("main", (Merge("dev", 1),), False, False),
    "delete on another branch": ("dev", (HIDDEN,), True, True),
    "another transaction": ("", (Prepare(an_id(84), "dev", "main", an_id(85)),), False, False),
    "a write of its own": ("its branch", (ADDED,), False, False),
}


@pytest.fixture
def parts(lake: Lake) -> dict[bool, tuple[Pool, str]]:
    """A pool with a part that only adds, and one with a part that deletes too."""
    made = {}
    for deletes, name in ((False, "a"), (True, "b")):
        tx = lake.transaction()
        pool = lake.pool(name)
        tx.pool(name).append(table(3))
        draft = Draft(
            IdSource().new(),
            tx.branch,
            pool.history.load().version,
            "test",
            (Consume((Source("of-part", 1),)),),
        )
        pool.history.commit(draft)
        if deletes:
            tx.pool(name).delete(where="k = 1")
        prepare(pool, tx.id)
        made[deletes] = (pool, tx.id)
    return made


@pytest.mark.parametrize("what", TABLE)
def test_what_commutes(parts: dict[bool, tuple[Pool, str]], what: str) -> None:
    branch, actions, *expected = TABLE[what]
    for deletes, (pool, over) in parts.items():
        state = pool.history.load().state
        part = state.pending[over]
        on = part.branch if branch == "its branch" else branch
        draft = Draft(an_id(90), on, 1, "test", actions)
        assert commutes(state, part, draft, APPEND) is expected[deletes]
        if branch and not expected[deletes]:
            with pytest.raises(Undecided):
                rebase(state, draft, key=pool.config.key, time=0)
        if what == "load":
            assert not commutes(state, part, draft, Rule("upsert"))


def test_a_checkpoint_is_read_though_the_branch_of_a_part_was_compacted(lake: Lake) -> None:
    tx = lake.transaction()
    for number in (3, 4):
        tx.pool("a").append(table(number))
    pool = lake.pool("a")
    prepare(pool, tx.id)
    branch = pool.history.load().state.branches[tx.branch]
    own = [r for r in branch.snapshot.all() if branch.is_unmerged(r)]
    assert compact(pool.branch(tx.branch), own).version
    journal = pool.history.journal
    loaded = journal.load()
    assert write_state(journal, loaded, id=lake.context.ids.new(), now=lake.context.now())
    assert purge(journal, until=loaded.version).entries == loaded.version
    again = Lake.open_on(lake.store)
    assert keys(again, "a") == [1, 2]
    again.transaction(tx.id).commit()
    assert keys(again, "a") == [1, 2, 3, 4]


@pytest.mark.parametrize("change", ["behind the branch", "a write came later", "another branch"])
def test_a_checkpoint_whose_part_does_not_fit_its_branch_is_damage(
    parts: dict[bool, tuple[Pool, str]], change: str
) -> None:
    """Only upkeep may move the branch of a part: what else came would be merged with it, or would be missing."""
    pool, over = parts[False]
    loaded = pool.history.load()
    part = loaded.state.pending[over]
    check_restored(loaded.state, version=loaded.version)
    branch = loaded.state.branches[part.branch]
    assert branch.fork is not None
    newest = version_of(next(iter(branch.fork.writes or ())))
    bad = {
        "behind the branch": msgspec.structs.replace(part, upto=branch.tip + 1),
        "a write came later": msgspec.structs.replace(part, upto=newest - 1),
        "another branch": msgspec.structs.replace(part, into="dev"),
    }[change]
    pending = loaded.state.pending.insert(over, bad)
    with pytest.raises(Corrupt, match="does not fit branch"):
        check_restored(replace(loaded.state, pending=pending), version=loaded.version)


def test_a_settling_that_does_not_fit_is_damage(parts: dict[bool, tuple[Pool, str]]) -> None:
    pool, over = parts[False]
    state = pool.history.load().state
    part = state.pending[over]
    for bad in (
        transaction(Settle(an_id(70)), id=an_id(91), branch=""),
        transaction(Settle(over, True), id=an_id(91), branch=""),
        transaction(HIDDEN, Settle(over, True), id=an_id(91), parent=state.branches["main"].tip),
        transaction(Prepare(over, part.branch, "main", an_id(92), upto=part.upto), id=an_id(91), branch=""),
        transaction(Prepare(an_id(93), part.branch, "main", an_id(92), upto=1), id=an_id(91), branch=""),
    ):
        with pytest.raises(Corrupt):
            fold_transaction(state, 99, 0, bad)


def test_a_damaged_object_of_one_transaction_leaves_the_others(lake: Lake) -> None:
    store = lake.context.store
    damaged, other = lake.transaction(), lake.transaction(open_for=1e-6)
    other.pool("a").append(table(3))
    store.put(naming.transaction_object(damaged.id, naming.BEGUN), b"junk")
    assert [(row.id, row.state) for row in transactions(lake)] == [
        (damaged.id, "damaged"),
        (other.id, "open"),
    ]
    assert due(lake, grace=0).ended == (other.id,)
    assert clean(lake, grace=0).ended == (other.id,)
    assert set(lake.pool("a").history.load().state.branches.keys()) == {"main"}


def test_a_writer_of_one_pool_cannot_use_the_token_of_a_transaction_by_a_load(lake: Lake) -> None:
    with pytest.raises(InvalidInput, match="transactions over pools"):
        lake.pool("a").branch().append(table(3), token="transaction:payday")
    with lake.transaction(token="payday") as tx:
        tx.pool("a").append(table(4))
        tx.pool("b").append(table(4))
    assert (keys(lake, "a"), keys(lake, "b")) == ([1, 2, 4], [1, 2, 4])
