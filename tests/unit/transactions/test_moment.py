"""Several pools at one moment: the newest, or a past time; in Python, in SQL, and by a tag on all pools."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from functools import partialmethod
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lake_core.errors import InvalidInput, NotFound, Unavailable
from lake_core.history.history import History
from lake_core.history.transactions.decisions import Decision, Decisions
from lake_core.ids import IdSource
from lake_core.records import Settle
from log_lake.lake import Lake
from log_lake.lake.all_pools import tag_all
from log_lake.lake.open_transactions import clean
from log_lake.lake.transactions import PoolsTransaction
from log_lake.lake.view import View
from log_lake.sql_writes import execute
from log_lake.stores.memory import MemoryStore
from log_lake.system_tables import query
from tests.support.clocks import Clock
from tests.support.stores import one_by_one

NAMES = ("a", "b", "c")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def lake(clock: Clock) -> Lake:
    """Three pools with the key 1; then a minute goes by."""
    lake = Lake.create_on(MemoryStore("memory://moment"), author="test", ids=IdSource(clock))
    lake.catalog.journal.fetch = one_by_one
    for name in NAMES:
        append(lake, name, 1)
    clock.now += 60
    return lake


def append(lake: Lake, name: str, key: int) -> None:
    if name not in {pool.name for pool in lake.pools()}:
        lake.create_pool(name, key="k")
    lake.pool(name).branch().append(pa.table({"k": pa.array([key], pa.int64())}))


def keys(view: View) -> list[int]:
    found: list[int] = view.to_table()["k"].to_pylist()
    return found


def at(lake: Lake, seconds: float, names: Sequence[str] = NAMES) -> list[list[int]]:
    return list(map(keys, lake.at(*names, time=text(seconds)).values()))


def text(seconds: float) -> str:
    return dt.datetime.fromtimestamp(seconds, dt.UTC).isoformat()


@pytest.fixture
def half_settled(lake: Lake, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> PoolsTransaction:
    """A transaction over all pools whose owner dies when it has settled one of them."""
    tx = lake.transaction()
    for name in NAMES:
        tx.pool(name).append(pa.table({"k": pa.array([2], pa.int64())}))
    settle, settled = History.settle, list[str]()

    def settle_once(history: History, over: str, decision: Decision) -> int | None:
        if settled and settled != [history.pool_name]:
            raise Unavailable("died")
        settled.append(history.pool_name)
        clock.now += 1
        return settle(history, over, decision)

    clock.now += 1
    with monkeypatch.context() as patched:
        patched.setattr(History, "settle", settle_once)
        tx.commit()
    clock.now += 10
    return tx


def test_a_time_has_a_transaction_in_all_pools_or_in_none(
    lake: Lake, clock: Clock, half_settled: PoolsTransaction
) -> None:
    settled_at = clock.now - 10
    clock.now += 100
    for name in NAMES:
        append(lake, name, 3)  # settles the others, a long time after the first
    clock.now += 1
    assert at(lake, settled_at - 0.5) == [[1]] * 3
    assert at(lake, settled_at) == [[1, 2]] * 3
    assert at(lake, settled_at + 50) == [[1, 2]] * 3
    assert at(lake, clock.now) == [[1, 2, 3]] * 3
    apart = [keys(lake.pool(name).at(f"main@{text(settled_at)}")) for name in NAMES]
    assert sorted(apart) == [[1], [1], [1, 2]]  # what each pool gives by itself
    clean(lake, grace=0)
    assert list(lake.store.list("transactions")) == []
    assert at(lake, settled_at) == [[1, 2]] * 3  # the journals are enough
    rows = query(lake, "SELECT k FROM a JOIN b USING (k) JOIN c USING (k)", time=text(settled_at)).read_all()
    assert sorted(rows["k"].to_pylist()) == [1, 2]


@pytest.mark.parametrize("committed", [False, True])
def test_a_decision_that_is_made_again_after_it_was_deleted_counts_at_no_time(
    lake: Lake, clock: Clock, half_settled: PoolsTransaction, committed: bool
) -> None:
    """A process that commits or aborts it stood still until all pools had settled it."""
    settled_at = clock.now - 10
    clock.now += 100
    clean(lake, grace=0)
    half_settled._decisions.decide(half_settled.id, committed=committed, by="late")
    assert at(lake, settled_at) == [[1, 2]] * 3


def test_a_transaction_is_at_no_time_before_a_pool_has_settled_it(
    lake: Lake, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    tx = lake.transaction()
    for name in ("a", "b"):
        tx.pool(name).append(pa.table({"k": pa.array([2], pa.int64())}))
    decide = Decisions.decide

    def later(decisions: Decisions, id: str, **how: Any) -> Decision:
        clock.now += 10
        append(lake, "a", 3)  # commutes with what is pending there
        clock.now += 10
        return decide(decisions, id, **how)

    monkeypatch.setattr(Decisions, "decide", later)
    tx.commit()
    decided_at = clock.now
    clock.now += 1
    assert at(lake, decided_at - 5, ["a", "b"]) == [[1, 3], [1]]
    assert at(lake, decided_at, ["a", "b"]) == [[1, 2, 3], [1, 2]]


def test_a_time_has_nothing_that_a_pool_committed_later(lake: Lake, clock: Clock) -> None:
    before = clock.now - 30
    append(lake, "a", 2)
    assert at(lake, before, ["a", "b"]) == [[1], [1]]
    with pytest.raises(NotFound, match="pool 'a': branch 'main' has no transaction at or before"):
        lake.at("a", "b", time=text(before - 100))
    with pytest.raises(InvalidInput, match="is not ISO 8601"):
        lake.at("a", time="yesterday")


def test_an_aborted_transaction_is_at_no_time(lake: Lake, clock: Clock) -> None:
    tx = lake.transaction()
    tx.pool("a").append(pa.table({"k": pa.array([2], pa.int64())}))
    tx.pool("b").append(pa.table({"k": pa.array([2], pa.int64())}))
    tx.abort()
    clock.now += 1
    assert at(lake, clock.now, ["a", "b"]) == [[1], [1]]


def test_the_newest_moment_has_a_transaction_in_all_pools(lake: Lake, half_settled: PoolsTransaction) -> None:
    assert list(map(keys, lake.at(*NAMES).values())) == [[1, 2]] * 3
    sql = 'SELECT (SELECT count(*) FROM a) n, (SELECT count(*) FROM b) m, (SELECT count(*) FROM "c@main") o'
    assert query(lake, sql).read_all().to_pylist() == [{"n": 2, "m": 2, "o": 2}]
    tag_all(lake, "close")
    assert [keys(lake.pool(name).at("close")) for name in NAMES] == [[1, 2]] * 3


def test_a_query_in_a_transaction_sees_its_writes_and_the_newest_of_other_pools(lake: Lake) -> None:
    tx = lake.transaction()
    execute(lake, "INSERT INTO a (k) SELECT k + 1 AS k FROM a", transaction=tx.id)
    execute(lake, "INSERT INTO a (k) SELECT k + 1 AS k FROM a", transaction=tx.id)
    execute(lake, "DELETE FROM b WHERE k = 1", transaction=tx.id)
    execute(lake, "DELETE FROM c WHERE k = 1", transaction=tx.id, dry_run=True)
    sql = "SELECT (SELECT count(*) FROM a) n, (SELECT count(*) FROM b) m, (SELECT count(*) FROM c) o"
    assert query(lake, sql, transaction=tx.id).read_all().to_pylist() == [{"n": 4, "m": 0, "o": 1}]
    assert query(lake, sql).read_all().to_pylist() == [{"n": 1, "m": 1, "o": 1}]
    assert set(tx.commit().versions) == {"a", "b"}
    assert query(lake, sql).read_all().to_pylist() == [{"n": 4, "m": 0, "o": 1}]


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ('SELECT * FROM "a@1"', "says a revision"),
        ('SELECT * FROM "a:objects"', "is a table of the lake"),
        ('INSERT INTO "a@dev" (k) SELECT 1 AS k', "says a branch"),
        ("UPDATE a SET k = 2", "is not done in a transaction over pools"),
    ],
)
def test_what_contradicts_a_transaction_is_refused(lake: Lake, sql: str, why: str) -> None:
    lake.pool("a").create_branch("dev")
    tx = lake.transaction()
    run = query if sql.startswith("SELECT") else execute
    with pytest.raises(InvalidInput, match=why):
        run(lake, sql, transaction=tx.id)
    with pytest.raises(InvalidInput, match="contradict"):
        query(lake, "SELECT * FROM a", time="2026-01-01", transaction=tx.id)


# ---------------------------------------------------------------- any history

MOVES = st.one_of(
    st.tuples(st.just("append"), st.integers(0, 2), st.integers(0, 1)),
    st.tuples(st.just("look"), st.integers(0, 2), st.integers(0, 1)),
    st.tuples(st.just("wait"), st.integers(1, 20), st.just(0)),
    st.tuples(st.sampled_from(["settles 1", "settles 2", "settles 3"]), st.integers(1, 7), st.integers(0, 1)),
)


class _Dying:
    """Stands for `History.settle` of a process that dies when it has settled some pools."""

    def __init__(self, pools: int, clock: Clock) -> None:
        self.left, self.clock, self.settle = pools, clock, History.settle

    def __call__(self, history: History, over: str, decision: Decision) -> int | None:
        if not self.left:
            raise Unavailable("died")
        self.left -= 1
        self.clock.now += 1
        return self.settle(history, over, decision)


@given(st.lists(MOVES, min_size=4, max_size=8), st.sampled_from([0.0, 0.0, -7.0, 40.0]))
@settings(max_examples=4)
def test_at_any_time_of_any_history_a_transaction_is_in_all_of_its_pools_or_in_none(
    moves: list[tuple[str, int, int]], skew: float
) -> None:
    clock, store = Clock(), MemoryStore("memory://any-moment")
    first = Lake.create_on(store, author="one", ids=IdSource(clock))
    for name in NAMES:
        append(first, name, 0)
    begun = clock.now + max(skew, 0.0) + 1
    clock.now = begun + max(-skew, 0.0)
    lakes = (first, Lake.open_on(store, author="two", ids=IdSource(lambda: clock.now + skew)))
    appended: dict[int, tuple[str, int]] = {}
    over: dict[int, tuple[str, set[str]]] = {}
    for number, (move, chosen, writer) in enumerate(moves, 1):
        lake = lakes[writer]
        if move == "wait":
            clock.now += chosen
        elif move == "look":
            lake.pool(NAMES[chosen]).at()
        elif move == "append":
            append(lake, NAMES[chosen], number)
            appended[number] = NAMES[chosen], lake.pool(NAMES[chosen]).at().version
        else:
            tx = lake.transaction()
            over[number] = tx.id, {name for bit, name in enumerate(NAMES) if chosen >> bit & 1}
            for name in sorted(over[number][1]):
                tx.pool(name).append(pa.table({"k": pa.array([number], pa.int64())}))
                clock.now += 1
            with pytest.MonkeyPatch.context() as patched:
                patched.setattr(History, "settle", partialmethod(_Dying(int(move[-1]), clock)))
                tx.commit()
        clock.now += 1
    logs = {name: list(first.pool(name).log()) for name in NAMES}
    times = {name: {version: t.time for version, t in log} for name, log in logs.items()}
    settles: dict[str, list[int]] = {id: [] for id, _ in over.values()}
    for _, t in (one for log in logs.values() for one in log):
        for action in t.actions:
            if isinstance(action, Settle):
                settles[action.over].append(t.time)
    every = sorted({time for each in times.values() for time in each.values() if time / 1e6 >= begun})
    for time in every[-1 :: -max(1, len(every) // 6)]:
        there = {name: set(keys(view)) for name, view in first.at(*NAMES, time=text(time / 1e6)).items()}
        for number, (id, pools) in over.items():
            is_settled = any(settled <= time for settled in settles[id])
            assert {name for name in NAMES if number in there[name]} in (set(), pools)
            assert all((number in there[name]) == is_settled for name in pools) or (skew and not is_settled)
        for number, (name, version) in appended.items():
            is_due = times[name][version] <= time
            assert number in there[name] or not is_due
            assert skew or number not in there[name] or is_due
