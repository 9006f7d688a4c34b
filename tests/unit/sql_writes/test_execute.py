"""INSERT, UPDATE, DELETE and TRUNCATE: each one transaction, or none."""

from __future__ import annotations

import datetime as dt
import threading
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lake_core.errors import Conflict, InvalidInput, NotFound
from lake_core.store.memory import MemoryStore
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.sql_writes import StatementResult, execute

ROWS = [
    {"ts": 1, "level": "info", "n": 10},
    {"ts": 2, "level": "warn", "n": None},
    {"ts": 3, "level": "info", "n": 30},
    {"ts": 3, "level": None, "n": 40},
]


@pytest.fixture
def lake() -> Lake:
    return Lake.create_on(MemoryStore())


@pytest.fixture
def logs(lake: Lake) -> Pool:
    pool = lake.create_pool("logs", key="ts")
    pool.branch().append(pa.Table.from_pylist(ROWS))
    return pool


def rows(pool: Pool, at: str = "main") -> list[dict[str, Any]]:
    return pool.at(at).to_table().to_pylist()  # type: ignore[no-any-return]


def facts(done: StatementResult) -> tuple[str, int | None, int | None]:
    return done.verb, done.version, done.records


def test_insert_loads_the_records_of_a_query(lake: Lake, logs: Pool) -> None:
    done = execute(lake, "INSERT INTO logs (ts, n) SELECT ts + 10, n * 2 FROM logs WHERE ts < 3")
    assert facts(done) == ("inserted", 2, 2)
    assert rows(logs)[4:] == [{"ts": 11, "level": None, "n": 20}, {"ts": 12, "level": None, "n": None}]
    execute(lake, "INSERT INTO logs BY NAME SELECT DATE '2026-01-02' AS day, 20 AS ts")
    assert rows(logs)[-1] == {"ts": 20, "level": None, "n": None, "day": dt.date(2026, 1, 2)}
    with pytest.raises(InvalidInput, match="2 fields are named, and the query has 1 columns"):
        execute(lake, "INSERT INTO logs (ts, n) SELECT 1")


def test_a_token_inserts_once(lake: Lake, logs: Pool) -> None:
    sql = "INSERT INTO logs (ts) VALUES (7), (8)"
    assert not execute(lake, sql, token="t").repeated
    again = execute(lake, sql, token="t")
    assert (again.repeated, again.version, again.records) == (True, 2, 2)
    assert len(rows(logs)) == 6


def test_delete_hides_what_fulfils_the_condition(lake: Lake, logs: Pool) -> None:
    assert facts(execute(lake, "DELETE FROM logs WHERE level = 'info'")) == ("deleted", 2, 2)
    assert [row["n"] for row in rows(logs)] == [None, 40]
    assert facts(execute(lake, "DELETE FROM logs WHERE level = 'info'")) == ("deleted", None, 0)
    assert facts(execute(lake, "TRUNCATE logs")) == ("deleted", 3, 2)
    assert rows(logs) == []
    with pytest.raises(InvalidInput, match=r"condition `length\(level\) > 2`"):
        execute(lake, "DELETE FROM logs WHERE length(level) > 2")


def test_update_computes_new_values_from_the_old_ones_of_each_record(lake: Lake, logs: Pool) -> None:
    done = execute(lake, "UPDATE logs SET n = coalesce(n, ts) + 1, level = upper(level) WHERE ts >= 2")
    assert facts(done) == ("updated", 2, 3)
    assert rows(logs) == [
        ROWS[0],
        {"ts": 2, "level": "WARN", "n": 3},
        {"ts": 3, "level": "INFO", "n": 31},
        {"ts": 3, "level": None, "n": 41},
    ]
    assert rows(logs, "1") == ROWS
    (objects,) = {len(logs.at().references)}
    assert objects == 2  # the old object is not rewritten
    logs.branch().revert("2")
    assert rows(logs) == ROWS


def test_update_may_move_records_to_other_keys_and_take_away_none(lake: Lake, logs: Pool) -> None:
    execute(lake, "UPDATE logs SET ts = ts - 100 WHERE level = 'warn'")
    assert rows(logs)[0] == {"ts": -98, "level": "warn", "n": None}
    with pytest.raises(InvalidInput, match="UPDATE: 4 records would have no key; nothing was changed"):
        execute(lake, "UPDATE logs SET ts = NULL")
    assert logs.at().version == 2


def test_update_keeps_types_and_every_field_that_it_does_not_set(lake: Lake) -> None:
    pool = lake.create_pool("odd", key="k")
    table = pa.table(
        {
            "k": [1, 2],
            "App": ["a", "b"],
            "app": [1, 2],
            "for how long": pa.array([1, None], pa.duration("ns")),
            "small": pa.array([1, 2], pa.uint8()),
            "r": [{"A": 1, "a": None}, None],
            "l": [[1], None],
            "f": pa.array([0.5, None], pa.float32()),
        }
    )
    pool.branch().append(table)
    pool.branch().append(pa.table({"k": [3], "l": ["text"]}))  # l becomes JSON
    before = pool.at().to_table()
    execute(lake, "UPDATE odd SET small = small + 1, l = [k, k] WHERE k < 3")
    after = pool.at().to_table()
    assert after.schema.equals(before.schema, check_metadata=True)
    assert after.column("small").to_pylist() == [2, 3, None]
    assert after.column("l").to_pylist() == ["[1,1]", "[2,2]", '"text"']
    others = [name for name in before.schema.names if name not in ("small", "l")]
    assert after.select(others).equals(before.select(others))
    execute(lake, 'UPDATE odd SET App = odd."=app"')
    assert pool.at().to_table().column("App").to_pylist() == ["1", "2", None]
    with pytest.raises(InvalidInput, match="field 'small' is uint8, and does not take the new value"):
        execute(lake, "UPDATE odd SET small = 256")
    with pytest.raises(InvalidInput, match="SET sall: no such field; did you mean 'small'"):
        execute(lake, "UPDATE odd SET sall = 1")
    with pytest.raises(InvalidInput, match="UPDATE: Binder Error"):
        execute(lake, "UPDATE odd SET small = nothing_like_that")


def test_expressions_read_no_file_and_no_other_table(lake: Lake, logs: Pool) -> None:
    for wrong in ("getenv('HOME')", "(ts) FROM '/etc/passwd' --", "read_text('/etc/passwd')"):
        with pytest.raises(InvalidInput):
            execute(lake, f"UPDATE logs SET level = {wrong}")
    assert logs.at().version == 1


def test_update_of_an_upsert_pool_writes_newer_records_of_the_keys(lake: Lake) -> None:
    pool = lake.create_pool("users", key="id", kind="upsert")
    pool.branch().append(pa.table({"id": [1, 2], "n": [1, 2]}))
    pool.branch().append(pa.table({"id": [1], "n": [10]}))
    assert facts(execute(lake, "UPDATE users SET n = n + 1 WHERE n >= 10")) == ("updated", 3, 1)
    assert rows(pool) == [{"id": 1, "n": 11}, {"id": 2, "n": 2}]
    with pytest.raises(InvalidInput, match="'id' is a key of an upsert pool"):
        execute(lake, "UPDATE users SET id = 3")


def test_an_aggregate_pool_is_not_updated(lake: Lake) -> None:
    lake.create_pool("sums", key="k", kind="aggregate", aggregates={"n": "sum"})
    with pytest.raises(InvalidInput, match="'sums' is an aggregate pool"):
        execute(lake, "UPDATE sums SET n = 0")


def test_a_dry_run_counts_and_changes_nothing(lake: Lake, logs: Pool) -> None:
    counts = {
        "UPDATE logs SET n = 0 WHERE level = 'info'": ("updated", None, 2),
        "DELETE FROM logs WHERE ts > 1": ("deleted", None, 3),
        "INSERT INTO logs (ts) SELECT ts FROM logs": ("inserted", None, 4),
    }
    assert {sql: facts(execute(lake, sql, dry_run=True)) for sql in counts} == counts
    with pytest.raises(InvalidInput):
        execute(lake, "UPDATE logs SET n = level", dry_run=True)
    assert logs.at().version == 1


def test_a_branch_is_changed_by_its_name(lake: Lake, logs: Pool) -> None:
    logs.create_branch("dev", at="main")
    assert execute(lake, 'UPDATE "logs@dev" SET n = 0').branch == "dev"
    assert rows(logs) == ROWS
    assert {row["n"] for row in rows(logs, "dev")} == {0}
    with pytest.raises(NotFound, match="branch 'deb' does not exist"):
        execute(lake, 'DELETE FROM "logs@deb"')


@pytest.mark.parametrize("kind", ["append", "upsert"])
def test_updates_that_run_at_once_lose_none(lake: Lake, kind: str) -> None:
    """Each adds 1 to what it read.  So the sum is the number of those that were done."""
    pool = lake.create_pool("sums", key="k", kind=kind)
    pool.branch().append(pa.table({"k": [1], "n": [0]}))
    done: list[StatementResult] = []

    def add() -> None:
        for _ in range(5):
            try:
                done.append(execute(lake, "UPDATE sums SET n = n + 1"))
            except Conflict:
                continue

    threads = [threading.Thread(target=add) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert done
    assert rows(pool) == [{"k": 1, "n": len(done)}]


VALUES = st.lists(
    st.tuples(st.integers(0, 5), st.sampled_from(["a", "b", None]), st.none() | st.integers(-9, 9)),
    min_size=1,
    max_size=8,
)


@settings(max_examples=15, deadline=None)
@given(VALUES, st.sampled_from(["k > 2", "s = 'a'", "n is null", "not (n < 0 or s = 'b')"]))
def test_an_update_is_what_sql_says_it_is(
    values: list[tuple[int, str | None, int | None]], where: str
) -> None:
    """DuckDB updates a table of its own by the same statement."""
    import duckdb

    table = pa.table(
        {
            "k": pa.array([k for k, _, _ in values], pa.int64()),
            "s": pa.array([s for _, s, _ in values], pa.string()),
            "n": pa.array([n for _, _, n in values], pa.int64()),
        }
    )
    lake = Lake.create_on(MemoryStore())
    pool = lake.create_pool("p", key="k")
    pool.branch().append(table)
    sql = f"UPDATE p SET n = n * 2 + k, k = k + 1, s = concat(s, k) WHERE {where}"
    execute(lake, sql)
    with duckdb.connect() as connection:
        connection.execute('CREATE TABLE p AS SELECT * FROM "table"')
        connection.execute(sql)
        expected = connection.execute("SELECT k, s, n FROM p ORDER BY ALL").fetchall()
        connection.register("got", pool.at().to_table().select(["k", "s", "n"]))
        assert connection.execute("SELECT * FROM got ORDER BY ALL").fetchall() == expected
