"""CREATE TABLE ... AS: a pool that holds the records of a query, or no pool."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from lake_core.errors import AlreadyExists, InvalidInput
from log_lake.lake import Lake
from log_lake.sql_writes import creates, execute
from log_lake.stores.memory import MemoryStore
from tests.support.stores import StoreInFront

BY_LEVEL = "CREATE TABLE by_level AS SELECT level, ts FROM logs ORDER BY level DESC, ts"


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def lake(store: MemoryStore) -> Lake:
    lake = Lake.create_on(store)
    table = pa.table({"ts": [1, 2, 3], "level": ["info", "warn", "info"]})
    lake.create_pool("logs", key="ts").branch().append(table)
    return lake


def rows(lake: Lake, name: str) -> list[dict[str, Any]]:
    return lake.pool(name).at().to_table().to_pylist()  # type: ignore[no-any-return]


def test_the_order_of_the_query_is_the_key(lake: Lake) -> None:
    told = execute(lake, BY_LEVEL, dry_run=True)
    assert (told.verb, told.version, told.records) == ("created", None, 3)
    assert "by_level" not in lake.catalog.load().state.names
    done = execute(lake, BY_LEVEL, token="once")
    assert (done.verb, done.version, done.records, done.repeated) == ("created", 1, 3, False)
    config = lake.pool("by_level").config
    assert (str(config.key), config.kind) == ("level:desc,ts", "append")
    assert [(row["level"], row["ts"]) for row in rows(lake, "by_level")] == [
        ("warn", 2),
        ("info", 1),
        ("info", 3),
    ]
    again = execute(lake, BY_LEVEL, token="once")
    assert (again.repeated, again.version, again.records) == (True, 1, 3)
    with pytest.raises(AlreadyExists, match="'by_level' exists already"):
        execute(lake, BY_LEVEL, token="another")
    assert len(rows(lake, "by_level")) == 3


def test_a_primary_key_makes_an_upsert_pool(lake: Lake) -> None:
    execute(
        lake,
        "CREATE TABLE levels (PRIMARY KEY (level)) AS SELECT level, max(ts) AS ts FROM logs GROUP BY level",
    )
    assert lake.pool("levels").config.kind == "upsert"
    assert rows(lake, "levels") == [{"level": "info", "ts": 3}, {"level": "warn", "ts": 2}]
    with pytest.raises(InvalidInput, match="two records of the query have one key"):
        execute(lake, "CREATE TABLE twice (PRIMARY KEY (level)) AS SELECT level, ts FROM logs")
    assert "twice" not in lake.catalog.load().state.names


def test_a_pool_that_is_there_stays_as_it_is(lake: Lake) -> None:
    done = execute(lake, "CREATE TABLE IF NOT EXISTS logs AS SELECT 9 AS ts ORDER BY ts")
    assert (done.version, done.records) == (None, 0)
    assert len(rows(lake, "logs")) == 3


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        (
            "CREATE TABLE a AS SELECT 1 AS k",
            "CREATE: a pool needs a key; CREATE TABLE NAME AS SELECT ... ORDER BY",
        ),
        ("CREATE TABLE a AS SELECT 1 AS k ORDER BY l", "Binder Error"),
        ("CREATE TABLE a AS SELECT ts AS k FROM logs ORDER BY ts", "the key 'ts' is no field of the query"),
        (
            "CREATE TABLE a AS SELECT 1 AS k ORDER BY k + 1",
            "ORDER BY k \\+ 1 is the key of the pool: name a field",
        ),
        ("CREATE TABLE a AS SELECT ts FROM logs WHERE ts > 9 ORDER BY ts", "the query has no record"),
        ("CREATE TABLE a AS SELECT NULL::INT AS k ORDER BY k", "CREATE: 1 record would have no key"),
        ("CREATE OR REPLACE TABLE a AS SELECT 1 AS k ORDER BY k", "OR REPLACE is not done"),
        ("CREATE TEMP TABLE a AS SELECT 1 AS k ORDER BY k", "TEMPORARY is not done"),
        ("CREATE TABLE a (k INT, PRIMARY KEY (k)) AS SELECT 1 AS k", "nothing stands in the parentheses"),
        ("CREATE TABLE a (k INT)", "a pool has the fields of the records that it gets"),
        ("CREATE VIEW a AS SELECT 1 AS k ORDER BY k", "CREATE VIEW is not done"),
        ('CREATE TABLE "a@dev" AS SELECT 1 AS k ORDER BY k', "is no name of a new pool"),
        ('CREATE TABLE "$a" AS SELECT 1 AS k ORDER BY k', "\\$a"),
    ],
)
@pytest.mark.parametrize("dry_run", [False, True])
def test_what_cannot_be_done_makes_no_pool(lake: Lake, sql: str, why: str, dry_run: bool) -> None:
    if dry_run and "no record" in why:
        return
    if dry_run and "no key" in why:
        return
    with pytest.raises(InvalidInput, match=why):
        execute(lake, sql, dry_run=dry_run)
    assert [pool.name for pool in lake.pools()] == ["logs"]
    assert creates(sql)


def test_a_new_pool_is_no_part_of_a_transaction_over_pools(lake: Lake) -> None:
    with lake.transaction() as over, pytest.raises(InvalidInput, match="CREATE: a new pool is no part"):
        execute(lake, BY_LEVEL, transaction=over.id)


class Killed(BaseException):
    """The process is gone: nothing catches it."""


class KilledStore(StoreInFront):
    """Ends the process before a request, or after it."""

    def __init__(self, behind: MemoryStore, *, at: int, after: bool) -> None:
        self.behind, self.left, self.after = behind, at, after

    def ask(self, request: str, name: str, call: Callable[[], Any]) -> Any:
        if self.left < 0:
            raise Killed
        self.left -= 1
        if self.left < 0 and not self.after:
            raise Killed
        answer = call()
        if self.left < 0:
            raise Killed
        return answer


@pytest.mark.parametrize("after", [False, True])
def test_a_kill_at_any_request_leaves_no_half_of_a_pool(after: bool) -> None:
    """The same statement with the same token then makes the pool, or finds it."""
    seen, at, was_killed = set(), 0, True
    while was_killed:  # ends when no request is left
        store = MemoryStore()
        Lake.create_on(store).create_pool("logs", key="ts").branch().append(pa.table({"ts": [1, 2, 3]}))
        sql = "CREATE TABLE copy AS FROM logs ORDER BY ts"
        killed = KilledStore(store, at=at, after=after)
        with contextlib.suppress(Killed, InvalidInput):  # DuckDB's threads turn it into an error of the query
            execute(Lake.open_on(killed), sql, token="t")
        was_killed = killed.left < 0
        lake = Lake.open_on(store)
        is_there = "copy" in lake.catalog.load().state.names
        seen.add(is_there)
        if is_there:
            assert len(rows(lake, "copy")) == 3
        assert execute(lake, sql, token="t").repeated == is_there
        assert len(rows(lake, "copy")) == 3
        at += 1
    assert seen == {False, True}
