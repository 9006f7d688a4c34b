"""INSERT, UPDATE, DELETE and TRUNCATE: each one transaction, or none."""

from __future__ import annotations

import contextlib
import datetime as dt
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lake_core.errors import Conflict, InvalidInput, NotFound
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.lake.results import PendingLoad
from log_lake.lake.view import View
from log_lake.sql_writes import StatementResult, execute
from log_lake.sql_writes.run import _Work
from log_lake.sql_writes.statement import Update, parsed
from log_lake.sql_writes.text import ChangeTarget
from log_lake.stores.memory import MemoryStore
from log_lake.system_tables.engine import SQL_LIMITS
from log_lake.system_tables.stopping import QueryStop

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


def test_an_insert_says_which_fields_are_new(lake: Lake, logs: Pool) -> None:
    sql = "INSERT INTO logs (ts, levle) VALUES (7, 'info')"
    assert execute(lake, sql, dry_run=True).new_fields == ("levle",)
    assert execute(lake, sql).new_fields == ("levle",)
    assert execute(lake, sql).new_fields == ()
    lake.create_pool("empty", key="ts")
    assert execute(lake, "INSERT INTO empty (ts, level) VALUES (7, 'info')").new_fields == ()


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
    assert execute(lake, 'DELETE FROM "logs@dev" WHERE ts > 1').branch == "dev"
    assert rows(logs) == ROWS
    assert rows(logs, "dev") == ROWS[:1]
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


def test_an_update_takes_nothing_from_loads_that_run_meanwhile(lake: Lake, logs: Pool) -> None:
    branch = logs.branch()
    pending = branch.begin_load()
    assert isinstance(pending, PendingLoad)
    with branch.builder(pending) as builder:
        builder.add(branch.block(pa.table({"ts": [5], "level": ["info"], "n": [50]})))
        written = builder.finish()
    assert execute(lake, "UPDATE logs SET n = 0 WHERE level = 'info'").records == 2
    branch.commit(pending, objects=[one.action for one in written], schemas=[one.schema for one in written])
    assert [row["n"] for row in rows(logs) if row["level"] == "info"] == [0, 0, 50]


def test_an_update_begins_again_if_records_are_loaded_while_it_computes(logs: Pool) -> None:
    """Another writer loads after the scan, and before the commit."""
    store, others = logs.store, [pa.table({"ts": [4], "level": ["info"], "n": [5]})]
    seen: list[int] = []

    def meddle(sql: str) -> StatementResult:
        work = _Work(
            Lake.open_on(store),
            ChangeTarget("logs", "main"),
            "",
            "",
            (),
            SQL_LIMITS,
            QueryStop(),
            deletes=False,
        )
        setting = work._setting

        @contextlib.contextmanager
        def slow(statement: Update, view: View) -> Iterator[Callable[[pa.Table], pa.Table]]:
            with setting(statement, view) as new:

                def meddled(records: pa.Table) -> pa.Table:
                    seen.append(records.num_rows)
                    if others:
                        Lake.open_on(store).pool("logs").branch().append(others.pop())
                    return new(records)

                yield meddled

        work._setting = slow  # type: ignore[method-assign]
        statement = parsed(sql)
        assert isinstance(statement, Update)
        return work.update(statement)

    assert meddle("UPDATE logs SET n = n + 1 WHERE level = 'info'").records == 3
    assert sum(seen) == 2 + 3
    assert sorted(row["n"] for row in rows(logs) if row["level"] == "info") == [6, 11, 31]


def test_an_update_is_done_on_main_only(lake: Lake, logs: Pool) -> None:
    logs.create_branch("dev", at="main")
    with pytest.raises(InvalidInput, match="works on the branch main only"):
        execute(lake, 'UPDATE "logs@dev" SET n = 0')


AGED = [dt.datetime(2020, 1, 1), dt.datetime(2999, 1, 1)]
STATEMENTS = [
    ("UPDATE aging SET n = n + 1", 1, [1, 3]),
    ("UPDATE aging SET n = n + 1 WHERE n = 1", 0, [1, 2]),
    ("DELETE FROM aging WHERE n > 0", 1, []),
    ("MERGE INTO aging t USING (SELECT 1 AS n) s ON t.n = s.n WHEN MATCHED THEN DELETE", 0, [1, 2]),
    ("MERGE INTO aging t USING (SELECT 1 AS o) s ON true WHEN MATCHED THEN UPDATE SET n = n + 1", 1, [1, 3]),
    ("MERGE INTO aging t USING (VALUES (1)) s (n) USING (n) WHEN NOT MATCHED BY SOURCE THEN DELETE", 1, [1]),
]


@pytest.mark.parametrize("kind", ["append", "upsert"])
@pytest.mark.parametrize(("sql", "count", "left"), STATEMENTS)
def test_statements_meet_what_readers_see_and_keep_what_has_aged_off(
    lake: Lake, kind: str, sql: str, count: int, left: list[int]
) -> None:
    """Both records have the same first field of the key, so one tombstone hides both."""
    pool = lake.create_pool("aging", key="k,ts", kind=kind, settings={"age_off": "ts:1d"})
    pool.branch().append(pa.table({"k": [1, 1], "ts": AGED, "n": [1, 2]}))
    assert execute(lake, sql, dry_run=True).records == count
    done = execute(lake, sql, token="t")
    assert (done.records, done.is_exact) == (count, True)
    if count and sql.startswith("UPDATE"):
        again = execute(lake, sql, token="t")
        assert (again.repeated, again.is_exact) == (True, kind == "upsert")
    lake.catalog.configure("aging", {"age_off": ""})
    assert [row["n"] for row in rows(lake.pool("aging"))] == left


def test_statements_keep_what_several_filters_hide_once(lake: Lake) -> None:
    pool = lake.create_pool("aging", key="k", settings={"age_off": "ts:1d", "keep.where": "n > 1"})
    pool.branch().append(pa.table({"k": [1, 1, 1], "ts": [*AGED, AGED[1]], "n": [1, 1, 2]}))
    assert execute(lake, "UPDATE aging SET n = n + 1").records == 1
    lake.catalog.configure("aging", {"age_off": "", "keep.where": ""})
    assert sorted(row["n"] for row in rows(lake.pool("aging"))) == [1, 1, 3]


def test_a_record_that_has_aged_off_does_not_keep_another_from_its_key(lake: Lake) -> None:
    pool = lake.create_pool("aging", key="k", kind="upsert", settings={"age_off": "ts:1d"})
    pool.branch().append(pa.table({"k": [1], "ts": AGED[:1]}))
    source = "(SELECT 1 AS k, TIMESTAMP '2999-01-01' AS ts) s"
    assert (
        execute(lake, f"MERGE INTO aging t USING {source} USING (k) WHEN NOT MATCHED THEN INSERT *").records
        == 1
    )
    assert rows(pool) == [{"k": 1, "ts": AGED[1]}]


def test_what_sql_would_change_beside_a_field_is_refused(lake: Lake) -> None:
    pool = lake.create_pool("events", key="user.id")
    pool.branch().append(pa.table({"user": [{"id": 1, "A": 1, "a": 2}], "j": ["x"]}))
    for name in ("user", '"user.id"'):
        with pytest.raises(InvalidInput, match="the key is a path into records"):
            execute(lake, f"UPDATE events SET {name} = NULL")
    records = lake.create_pool("records", key="k")
    records.branch().append(pa.table({"k": [1], "r": [{"A": 1, "a": 2}], "l": [[{"x": 1}]]}))
    for name in ("r", "l"):
        with pytest.raises(InvalidInput, match=f"field '{name}' holds records"):
            execute(lake, f"UPDATE records SET {name} = {name}")
    lake.create_pool("typed", key="k", settings={"format": "zng"})
    with pytest.raises(InvalidInput, match="types of their own"):
        execute(lake, "UPDATE typed SET k = 1")


def test_an_expression_gives_one_value_for_each_record(lake: Lake) -> None:
    pool = lake.create_pool("lists", key="k")
    pool.branch().append(pa.table({"k": [1, 2], "l": [[1, 2], []], "n": [0, 0]}))
    for many in ("unlist(l)", "main.unnest(l)", "generate_subscripts(l, 1)", "COLUMNS('.*')"):
        with pytest.raises(InvalidInput):
            execute(lake, f"UPDATE lists SET n = {many}")
    assert pool.at().version == 1


def test_a_value_of_json_that_is_left_alone_keeps_its_type(lake: Lake) -> None:
    pool = lake.create_pool("mixed", key="k")
    pool.branch().append(pa.table({"k": [1], "j": [dt.date(2026, 1, 2)]}))
    pool.branch().append(pa.table({"k": [2], "j": ["text"]}))
    before = pool.at().to_table().column("j").to_pylist()
    execute(lake, "UPDATE mixed SET j = coalesce(j, to_json(1))")
    assert pool.at().to_table().column("j").to_pylist() == before


def test_a_field_without_a_value_takes_the_type_of_its_first_one(lake: Lake) -> None:
    pool = lake.create_pool("nulls", key="k")
    pool.branch().append(pa.table({"k": [1], "v": pa.nulls(1)}))
    execute(lake, "UPDATE nulls SET v = 5")
    assert rows(pool) == [{"k": 1, "v": 5}]


def test_a_statement_is_checked_also_if_it_meets_no_record(lake: Lake, logs: Pool) -> None:
    with pytest.raises(InvalidInput, match="Binder Error"):
        execute(lake, "UPDATE logs SET n = nonsense WHERE ts = 999")
    empty = lake.create_pool("empty", key="k")
    assert execute(lake, "UPDATE empty SET n = 1").records == 0
    assert empty.at().version == 0


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_statement_that_is_stopped_changes_nothing(lake: Lake, logs: Pool, dry_run: bool) -> None:
    stop = QueryStop()
    stop.stop("its time is over")
    for sql in ("UPDATE logs SET n = n + 1", "INSERT INTO logs (ts) SELECT ts FROM logs"):
        with pytest.raises(InvalidInput, match="query: its time is over"):
            execute(lake, sql, stop=stop, dry_run=dry_run)
    assert logs.at().version == 1


def test_an_insert_without_the_key_is_refused(lake: Lake, logs: Pool) -> None:
    with pytest.raises(InvalidInput, match=r"INSERT: 1 record would have no key; .* The key is ts"):
        execute(lake, "INSERT INTO logs (TS) VALUES (3)")
    assert logs.at().version == 1


def test_records_of_a_sub_pool_are_deleted_by_its_name(lake: Lake, logs: Pool) -> None:
    logs.branch().append(pa.table({"n": [1]}))
    assert execute(lake, 'DELETE FROM "logs.$nokey"').verb == "deleted"
    assert lake.pool("logs.$nokey").at().to_table().num_rows == 0
