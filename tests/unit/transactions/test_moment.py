"""Several pools at one moment: the newest, or a past time; in Python, in SQL, and by a tag on all pools."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

import pyarrow as pa
import pytest

from lake_core.errors import InvalidInput, NotFound, Unavailable
from lake_core.history.history import History
from lake_core.history.transactions.decisions import Decision
from lake_core.ids import IdSource
from log_lake.lake import Lake
from log_lake.lake.all_pools import tag_all
from log_lake.lake.open_transactions import clean
from log_lake.lake.transactions import PoolsTransaction
from log_lake.lake.view import View
from log_lake.sql_writes import execute
from log_lake.stores.memory import MemoryStore
from log_lake.system_tables import query
from tests.support.clocks import Clock

NAMES = ("a", "b", "c")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def lake(clock: Clock) -> Lake:
    """Three pools with the key 1; then a minute goes by."""
    lake = Lake.create_on(MemoryStore("memory://moment"), author="test", ids=IdSource(clock))
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
