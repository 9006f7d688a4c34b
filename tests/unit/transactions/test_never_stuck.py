"""A decided transaction can be settled in each of its pools; nothing of an ended one stays."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from lake_core.errors import Conflict, InvalidInput, OutcomeUnknown, Undecided
from lake_core.history import Draft
from lake_core.history.transactions.commuting import commutes
from lake_core.history.transactions.decisions import Decisions, JoinedPool, ListedTransaction
from lake_core.history.transactions.part import PendingPart
from lake_core.history.transactions.waiting import DecisionWait
from lake_core.records import Prepare
from lake_core.schemas import APPEND
from log_lake.erasure.run import erase
from log_lake.lake import Lake
from log_lake.lake.open_transactions import clean, transactions
from log_lake.lake.pool import Pool
from log_lake.lake.transactions import PoolsTransaction
from log_lake.stores.memory import MemoryStore
from tests.support.records import an_id


def table(*found: int) -> pa.Table:
    return pa.table({"k": pa.array(found, pa.int64())})


def keys(lake: Lake, name: str, branch: str = "main") -> list[int]:
    found: list[int] = lake.pool(name).at_branch(branch).to_table()["k"].to_pylist()
    return sorted(found)


def branches(lake: Lake, name: str) -> set[str]:
    return set(lake.pool(name).history.load().state.branches.keys())


@pytest.fixture
def lake() -> Lake:
    lake = Lake.create_on(MemoryStore("memory://transactions"), author="test")
    for name in ("a", "b"):
        lake.create_pool(name, key="k").branch().append(table(1))
    return lake


def prepared(tx: PoolsTransaction, token: str = "") -> dict[str, int]:
    """What a commit does before its decision."""
    tx._keep_lease(always=True)
    pools = tx.pools(tx._decisions.listed(tx.id))
    versions = {pool.config.id: tx._prepare(pool, token) for pool in pools}
    return {id: version for id, version in versions.items() if version is not None}


def test_a_branch_of_a_transaction_is_not_deleted_so_its_pools_stay_whole(lake: Lake) -> None:
    tx = lake.transaction()
    for name in ("a", "b"):
        tx.pool(name).append(table(2))
    with pytest.raises(InvalidInput, match=r"whose other pools.*abort\(\) removes it"):
        lake.pool("b").delete_branch(tx.branch)
    tx.commit()
    assert keys(lake, "a") == keys(lake, "b") == [1, 2]


def test_two_parts_with_one_token_are_never_pending_together(lake: Lake) -> None:
    """The second one, into another branch, could never be settled: its token would be used."""
    lake.pool("a").create_branch("dev")
    first, second = lake.transaction(token="x"), lake.transaction(token="x")
    first.pool("a").append(table(2))
    second.pool("a", into="dev").append(table(3))
    prepared(first, "transaction:x")
    loaded = lake.pool("a").history.load()
    action = Prepare(second.id, second.branch, "dev", an_id(1), token="transaction:x")
    draft = Draft(an_id(2), "", loaded.version, "test", (action,))
    with pytest.raises(Undecided, match=first.id):
        lake.pool("a").history._commit(draft)
    first.commit()
    assert second.commit().repeated
    assert keys(lake, "a", "dev") == [1]


def test_parts_without_a_token_and_on_other_branches_commute(lake: Lake) -> None:
    lake.pool("a").create_branch("dev")
    part = PendingPart("tx", "main", 1, 1, an_id(1), "test")
    draft = Draft(an_id(2), "", 1, "test", (Prepare(an_id(3), "other", "dev", an_id(4)),))
    assert commutes(lake.pool("a").history.load().state, part, draft, APPEND)


def test_more_digits_on_another_branch_wait_for_the_decision(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each branch counts for the digits of a sum; with more of them the merge may have no room."""
    lake = Lake.create_on(MemoryStore("memory://transactions"), author="test")

    def sums(key: int, value: str, scale: int) -> pa.Table:
        type = pa.decimal128(30, scale)
        return pa.table({"k": pa.array([key], pa.int64()), "v": pa.array([Decimal(value)], type)})

    pool = lake.create_pool("a", key="k", kind="aggregate", aggregates={"v": "sum"})
    pool.branch().append(sums(1, "1.00", 2))
    pool.create_branch("other")
    tx = lake.transaction()
    tx.pool("a").append(sums(2, "9" * 20 + ".00", 2))
    decided = prepared(tx)
    pool.branch("other").append(sums(3, "1.00", 2))  # no more digits: it does not wait
    waits: list[str] = []

    def decide(_: DecisionWait) -> None:
        waits.append("waits")
        tx._decisions.decide(tx.id, committed=True, by="test", prepared=decided)

    monkeypatch.setattr(DecisionWait, "pause", decide)
    pool.branch("other").append(sums(4, "0.000000000001", 12))
    assert waits
    assert keys(lake, "a") == [1, 2]
    assert tx.commit().versions


def test_a_pool_joins_with_the_branch_that_was_said_first(lake: Lake) -> None:
    pool = lake.pool("a")
    pool.create_branch("dev")
    pool.branch("dev").append(table(7))
    tx = lake.transaction()
    Decisions(lake.context.store, lake.context.clock).join(tx.id, pool.config.id, JoinedPool("main"))
    with pytest.raises(InvalidInput, match="for branch 'main' already"):
        tx.pool("a", into="dev")
    tx.pool("a").append(table(2))
    tx.commit()
    assert keys(lake, "a") == [1, 2]


def test_a_commit_that_another_process_overtakes_has_the_same_result(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    tx = lake.transaction(token="x")
    other = lake.transaction(tx.id)
    for name in ("a", "b"):
        tx.pool(name).append(table(2))
    monkeypatch.setattr(tx, "_keep_lease", lambda **_: other.result or other.commit())
    assert tx.commit() == other.result == lake.transaction(tx.id).commit()
    assert other.result is not None
    assert not other.result.repeated


def test_a_restored_pool_loses_its_branch_of_an_ended_transaction(lake: Lake) -> None:
    tx = lake.transaction()
    for name in ("a", "b"):
        tx.pool(name).append(table(2))
    lake.drop_pool("b")
    tx.abort()
    clean(lake, grace=0)
    assert [one.state for one in transactions(lake)] == ["aborted"]
    lake.restore_pool("b")
    clean(lake, grace=0)
    assert branches(lake, "b") == {"main"}
    assert not transactions(lake)


def test_a_pool_that_joins_during_the_end_is_ended_later(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer had looked before the abort; its sign came after the abort had listed the pools."""
    tx = lake.transaction()
    tx.pool("a").append(table(2))
    writer, find = lake.transaction(tx.id), tx.pools

    def joining(listed: object) -> list[object]:
        pools = find(listed)  # type: ignore[arg-type]
        pool = lake.pool("b")
        with pytest.raises(Conflict, match="takes no more reads or writes"):
            writer._join(pool, pool.history.load_open().state, "main")
        return list(pools)

    monkeypatch.setattr(tx, "pools", joining)
    tx.abort()
    clean(lake, grace=0)
    assert branches(lake, "b") == {"main"}
    assert not transactions(lake)


@pytest.mark.parametrize("token", ["", "once"])
def test_a_commit_that_stands_still_until_its_decision_is_deleted_does_not_know_it(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, token: str
) -> None:
    """It cannot tell what was decided, and must not say that nothing was committed."""
    tx = lake.transaction(token=token)
    for name in ("a", "b"):
        tx.pool(name).append(table(2))
    late, find, versions = lake.transaction(tx.id), tx.pools, dict[str, int]()

    def standing_still(listed: ListedTransaction) -> list[Pool]:
        if not versions:
            versions.update(tx.commit().versions)
            clean(lake, grace=0)
        return find(listed)

    monkeypatch.setattr(late, "pools", standing_still)
    with pytest.raises(OutcomeUnknown, match="while this one stood still"):
        late.commit()
    assert set(versions) == {"a", "b"}
    clean(lake, grace=0)
    assert not transactions(lake)


def test_an_erasure_goes_on_where_the_owner_died_after_its_decision(lake: Lake) -> None:
    tx = lake.transaction()
    for name in ("a", "b"):
        tx.pool(name).append(table(2))
    tx._decisions.decide(tx.id, committed=True, by="test", prepared=prepared(tx))
    assert erase(lake.pool("a"), where="k = 2", grace=0).status == "done"
    assert keys(lake, "a") == [1]
    assert set(tx.commit().versions) == {"a", "b"}
    assert keys(lake, "a") == [1]
    assert keys(lake, "b") == [1, 2]


def test_an_abort_removes_a_branch_whose_transaction_has_no_objects(lake: Lake) -> None:
    tx = lake.transaction()
    tx.pool("a").append(table(2))
    tx._decisions.forget(tx._decisions.listed(tx.id))
    tx.abort()
    assert branches(lake, "a") == {"main"}
    assert keys(lake, "a") == [1]
