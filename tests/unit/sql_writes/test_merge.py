"""MERGE: one transaction of one pool, with the result that DuckDB's own MERGE has."""

from __future__ import annotations

import threading
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lake_core.errors import Conflict, InvalidInput, NotFound
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.sql_writes import StatementResult, execute
from log_lake.sql_writes.work import MergedRecords
from log_lake.stores.memory import MemoryStore
from log_lake.system_tables.stopping import QueryStop

MERGE = """
MERGE INTO stock AS t USING (VALUES (2, 20), (3, -3), (9, 90)) AS s (k, n) ON t.k = s.k
WHEN MATCHED AND s.n < 0 THEN DELETE
WHEN MATCHED THEN UPDATE SET n = t.n + s.n
WHEN NOT MATCHED THEN INSERT (k, n) VALUES (s.k, CASE WHEN s.n > 1 THEN s.n + 1 ELSE 0 END)
"""


@pytest.fixture
def lake() -> Lake:
    return Lake.create_on(MemoryStore())


def stock(lake: Lake, kind: str = "append") -> Pool:
    pool = lake.create_pool("stock", key="k", kind=kind)
    pool.branch().append(pa.table({"k": [1, 2, 3], "n": [1, 2, 3]}))
    return pool


def rows(pool: Pool) -> list[dict[str, Any]]:
    return pool.at().to_table().to_pylist()  # type: ignore[no-any-return]


@pytest.mark.parametrize("kind", ["append", "upsert"])
def test_one_transaction_updates_deletes_and_inserts(lake: Lake, kind: str) -> None:
    pool = stock(lake, kind)
    told = execute(lake, MERGE, dry_run=True)
    assert (told.version, told.records, told.merged) == (None, 3, MergedRecords(1, 1, 1))
    assert pool.at().version == 1
    done = execute(lake, MERGE, token="m")
    assert (done.verb, done.version, done.records, done.merged) == ("merged", 2, 3, MergedRecords(1, 1, 1))
    assert rows(pool) == [{"k": 1, "n": 1}, {"k": 2, "n": 22}, {"k": 9, "n": 91}]
    again = execute(lake, MERGE, token="m")
    assert (again.repeated, again.version, again.records) == (True, 2, None)
    pool.branch().revert("2")
    assert [row["n"] for row in rows(pool)] == [1, 2, 3]


CONDITIONS = ["", " AND s.n > t.n", " AND t.s = 'a'", " AND s.n IS NULL"]
OURS = st.tuples(st.integers(0, 6), st.sampled_from(["a", "b", None]), st.none() | st.integers(-9, 9))
MATCHED = st.tuples(
    st.sampled_from(CONDITIONS),
    st.sampled_from(
        ["UPDATE SET n = t.n * 2 + s.n", "UPDATE SET s = concat(t.s, s.k), n = s.n", "DELETE", "DO NOTHING"]
    ),
)
ALONE = st.tuples(
    st.sampled_from(["", " AND t.n < 0", " AND t.s = 'b'"]), st.sampled_from(["UPDATE SET n = -1", "DELETE"])
)
NEW = st.tuples(
    st.sampled_from(["", " AND s.n > 0", " AND s.s IS NULL"]),
    st.sampled_from(
        [
            "INSERT (k, n) VALUES (s.k, s.n + 1)",
            "INSERT (k, s, n) VALUES (s.k, upper(s.s), s.n)",
            "DO NOTHING",
        ]
    ),
)
ON = ["t.k = s.k", "t.k = s.k AND t.s = s.s", "t.k = s.k + 1", "t.s = s.s AND t.n < s.n"]


def as_table(values: list[tuple[int, str | None, int | None]]) -> pa.Table:
    return pa.table(
        {
            "k": pa.array([k for k, _, _ in values], pa.int64()),
            "s": pa.array([s for _, s, _ in values], pa.string()),
            "n": pa.array([n for _, _, n in values], pa.int64()),
        }
    )


@settings(max_examples=10, deadline=None)
@given(
    kind=st.sampled_from(["append", "upsert"]),
    key=st.sampled_from(["k", "k:desc", "k,s"]),
    ours=st.lists(OURS, min_size=1, max_size=9),
    first=st.integers(0, 4),
    theirs=st.lists(OURS, max_size=7),
    on=st.sampled_from(ON),
    matched=st.lists(MATCHED, max_size=2),
    alone=st.lists(ALONE, max_size=1),
    new=st.lists(NEW, max_size=2),
)
def test_a_merge_is_what_duckdb_says_it_is(
    kind: str,
    key: str,
    ours: list[Any],
    first: int,
    theirs: list[Any],
    on: str,
    matched: list[tuple[str, str]],
    alone: list[tuple[str, str]],
    new: list[tuple[str, str]],
) -> None:
    """Where the lake refuses, the standard does too (several records match one, two have one key), or the upsert
    pool had a record with the key of a new one."""
    fields = key.count(",") + 1
    whens = [
        *(f"WHEN MATCHED{condition} THEN {action}" for condition, action in matched),
        *(f"WHEN NOT MATCHED BY SOURCE{condition} THEN {action}" for condition, action in alone),
        *(f"WHEN NOT MATCHED{condition} THEN {action}" for condition, action in new),
    ]
    unreachable = any(not condition for kinds in (matched, new) for condition, _ in kinds[:-1])
    if not whens or unreachable:  # DuckDB refuses these
        return
    sql = f"MERGE INTO p AS t USING q AS s ON {on} {' '.join(whens)}"
    lake = Lake.create_on(MemoryStore())
    pool = lake.create_pool("p", key=key, kind=kind)
    for load in filter(None, (ours[:first], ours[first:])):
        pool.branch().append(as_table(load))
    before = pool.at().version
    if kind == "upsert":
        ours = [*{one[:fields]: one for one in ours}.values()]
    lake.create_pool("q", key="k").branch().append(as_table([*theirs, (99, None, None)]))
    sql = sql.replace("USING q AS s", "USING (FROM q WHERE k < 99) AS s")
    with duckdb.connect() as connection:
        connection.register("ours", as_table(ours))
        connection.register("theirs", as_table(theirs))
        connection.execute("CREATE TABLE p AS FROM ours; CREATE TABLE q AS FROM theirs")
        acts = " OR ".join(f"(true{condition})" for condition, action in matched if action != "DO NOTHING")
        several = connection.execute(
            f"SELECT count(*) FROM (SELECT t.rowid FROM p AS t JOIN q AS s ON ({on}) WHERE {acts or 'false'} "
            "GROUP BY t.rowid HAVING count(*) > 1)"
        ).fetchone()
        connection.execute(sql)
        expected = connection.execute("SELECT k, s, n FROM p ORDER BY ALL").fetchall()
        keys = [row[:fields] for row in expected]
        sets_key = fields == 2 and any("SET s" in action for _, action in matched)
        try:
            execute(lake, sql)
        except InvalidInput:
            others = on != ON[0] and {one[0] for one in ours} & {one[0] for one in theirs}  # docs/python.md
            has_two = kind == "upsert" and (len(set(keys)) < len(keys) or sets_key or others)
            assert (several and several[0]) or has_two, sql
            assert pool.at().version == before
            return
        connection.register("got", pool.at().to_table().select(["k", "s", "n"]))
        assert connection.execute("FROM got ORDER BY ALL").fetchall() == expected


@pytest.mark.parametrize("kind", ["append", "upsert"])
def test_a_record_that_two_of_the_source_match_is_refused(lake: Lake, kind: str) -> None:
    pool = stock(lake, kind)
    with pytest.raises(InvalidInput, match="several records of the source match one record of the pool"):
        execute(lake, "MERGE INTO stock t USING (VALUES (1), (1)) s (k) USING (k) WHEN MATCHED THEN DELETE")
    execute(
        lake,
        "MERGE INTO stock t USING (VALUES (1, 1), (1, 2)) s (k, n) ON t.k = s.k "
        "WHEN MATCHED AND s.n = 2 THEN UPDATE SET n = 7",
    )
    assert rows(pool)[0] == {"k": 1, "n": 7}


@pytest.mark.parametrize("kind", ["append", "upsert"])
def test_merges_that_run_at_once_lose_none_and_insert_once(lake: Lake, kind: str) -> None:
    """Each inserts the record if it is missing, and otherwise adds 1.  So the sum is the number of those done."""
    pool = lake.create_pool("sums", key="k", kind=kind)
    done: list[StatementResult] = []
    sql = (
        "MERGE INTO sums t USING (SELECT 1 AS k) s USING (k) WHEN MATCHED THEN UPDATE SET n = n + 1 "
        "WHEN NOT MATCHED THEN INSERT (k, n) VALUES (s.k, 1)"
    )

    def add() -> None:
        for _ in range(4):
            try:
                done.append(execute(lake, sql))
            except Conflict:
                continue

    threads = [threading.Thread(target=add) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert done
    assert rows(pool) == [{"k": 1, "n": len(done)}]


@pytest.mark.parametrize("kind", ["append", "upsert"])
def test_a_field_that_on_compares_may_be_set(lake: Lake, kind: str) -> None:
    pool = stock(lake, kind)
    on = "MERGE INTO stock t USING (VALUES (2)) s (n) ON t.n = s.n"
    done = execute(
        lake,
        f"{on} WHEN MATCHED THEN UPDATE SET n = s.n * 10 WHEN NOT MATCHED BY SOURCE THEN UPDATE SET n = -1",
    )
    assert done.merged == MergedRecords(updated=3)
    assert [row["n"] for row in rows(pool)] == [-1, 20, -1]


def test_records_of_a_changed_key_that_do_not_change_stay(lake: Lake) -> None:
    pool = lake.create_pool("logs", key="ts")
    pool.branch().append(
        pa.table({"ts": [1, 1, 2], "n": [1, 2, 3], "d": pa.array([1, None, 3], pa.duration("ns"))})
    )
    before = pool.at().to_table()
    done = execute(
        lake,
        "MERGE INTO logs t USING (SELECT 1 AS ts, 2 AS n) s ON t.ts = s.ts AND t.n = s.n WHEN MATCHED THEN DELETE",
    )
    assert done.merged == MergedRecords(deleted=1)
    assert pool.at().to_table().equals(before.take([0, 2]))


def test_more_keys_than_a_condition_names_are_merged_by_their_range(lake: Lake) -> None:
    count = 400
    pool = lake.create_pool("pairs", key="a,b:desc")
    table = pa.table({"a": [*range(count)], "b": [k * 7 % 10 for k in range(count)], "n": [0] * count})
    pool.branch().append(table)
    done = execute(
        lake,
        "MERGE INTO pairs t USING (SELECT a, b FROM pairs WHERE a BETWEEN 10 AND 390 AND a % 2 = 0) s USING (a, b) "
        "WHEN MATCHED THEN UPDATE SET n = t.a",
    )
    assert done.merged == MergedRecords(updated=191)
    expected = [k if 10 <= k <= 390 and k % 2 == 0 else 0 for k in range(count)]
    assert pool.at().to_table().column("n").to_pylist() == expected


def test_a_merge_into_a_pool_without_records_inserts(lake: Lake) -> None:
    pool = lake.create_pool("new", key="k", kind="upsert")
    sql = (
        "MERGE INTO new USING (VALUES (1, 'a'), (2, 'b')) s (k, v) ON new.k = s.k "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    assert execute(lake, sql, dry_run=True).records == 2
    assert execute(lake, sql).merged == MergedRecords(inserted=2)
    assert execute(lake, sql).merged == MergedRecords(updated=2)
    assert rows(pool) == [{"k": 1, "v": "a"}, {"k": 2, "v": "b"}]


def test_an_upsert_pool_keeps_one_record_a_key_or_refuses(lake: Lake) -> None:
    pool = stock(lake, "upsert")
    with pytest.raises(InvalidInput, match="two of the new records have one key"):
        execute(
            lake, "MERGE INTO stock t USING (VALUES (7), (7)) s (k) USING (k) WHEN NOT MATCHED THEN INSERT *"
        )
    with pytest.raises(InvalidInput, match="has a record with the key of one that is inserted"):
        execute(
            lake,
            "MERGE INTO stock t USING (SELECT 2 AS k, 9 AS n) s ON t.n = s.n WHEN NOT MATCHED THEN INSERT *",
        )
    with pytest.raises(InvalidInput, match="'k' is a key of an upsert pool"):
        execute(
            lake,
            "MERGE INTO stock t USING (SELECT 5 AS k, 2 AS n) s USING (n) WHEN MATCHED THEN UPDATE SET *",
        )
    assert pool.at().version == 1


def test_a_new_record_without_a_field_of_the_key_has_the_key_of_another_without_it(lake: Lake) -> None:
    pool = lake.create_pool("pairs", key="k,s", kind="upsert")
    pool.branch().append(pa.table({"k": [0, 1], "s": [None, "a"], "n": [5, 6]}))
    sql = (
        "MERGE INTO pairs t USING (VALUES (0), (1)) v (k) ON t.n = v.k "
        "WHEN NOT MATCHED THEN INSERT (k) VALUES (v.k)"
    )
    with pytest.raises(InvalidInput, match="has a record with the key of one that is inserted"):
        execute(lake, sql)
    assert execute(lake, sql.replace("(0), (1)", "(1)")).records == 1
    found = {(row["k"], row["s"], row["n"]) for row in rows(pool)}
    assert found == {(0, None, 5), (1, "a", 6), (1, None, None)}


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("USING nothing_there AS s ON t.k = s.k WHEN MATCHED THEN DELETE", "nothing_there"),
        ("USING (SELECT 1 AS k) s ON t.k = s.x WHEN MATCHED THEN DELETE", "MERGE: Binder Error"),
        ("USING (SELECT 1 AS k) s ON t.k = s.k WHEN MATCHED THEN UPDATE SET m = 1", "SET m: no such field"),
        ("USING (SELECT 9 AS k) s ON t.k = s.k WHEN MATCHED THEN UPDATE SET n = s.z", "MERGE: Binder Error"),
        (
            "USING (SELECT 9 AS k) s ON t.k = s.k WHEN NOT MATCHED THEN INSERT (n) VALUES (1)",
            "would have no key",
        ),
        (
            "USING (SELECT 1 AS k) s ON t.k = s.k WHEN MATCHED THEN UPDATE SET n = 'x'",
            "does not take the new value",
        ),
    ],
)
def test_what_is_wrong_changes_nothing(lake: Lake, sql: str, why: str) -> None:
    pool = stock(lake)
    with pytest.raises((InvalidInput, NotFound), match=why):
        execute(lake, f"MERGE INTO stock AS t {sql}")
    assert pool.at().version == 1


def test_pools_that_a_merge_cannot_change_exactly_are_refused(lake: Lake) -> None:
    using = "USING (SELECT 1 AS k) s ON true WHEN MATCHED THEN DELETE"
    lake.create_pool("sums", key="k", kind="aggregate", aggregates={"n": "sum"})
    lake.create_pool("typed", key="k", settings={"format": "zng"})
    lake.create_pool("nested", key="user.id")
    stock(lake).create_branch("dev", at="main")
    for name, why in {
        "sums": "is an aggregate pool",
        "typed": "types of their own",
        "nested": "is a path into records",
        "stock@dev": "works on the branch main only",
    }.items():
        with pytest.raises(InvalidInput, match=why):
            execute(lake, f'MERGE INTO "{name}" AS t {using}')
    with lake.transaction() as over, pytest.raises(InvalidInput, match="MERGE: is not done in a transaction"):
        execute(lake, MERGE, transaction=over.id)


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_merge_that_is_stopped_changes_nothing(lake: Lake, dry_run: bool) -> None:
    pool, stop = stock(lake), QueryStop()
    stop.stop("its time is over")
    with pytest.raises(InvalidInput, match="query: its time is over"):
        execute(lake, MERGE, stop=stop, dry_run=dry_run)
    assert pool.at().version == 1


def test_fields_that_sql_takes_for_one_another_have_other_names(lake: Lake) -> None:
    pool = lake.create_pool("odd", key="k")
    pool.branch().append(pa.table({"k": [1], "App": ["a"], "app": [1], "j": [1]}))
    pool.branch().append(pa.table({"k": [2], "j": ["text"]}))  # j becomes JSON
    execute(
        lake,
        'MERGE INTO odd t USING (SELECT 1 AS app, 5 AS k UNION ALL SELECT 8, 8) s ON t."=app" = s.app '
        'WHEN MATCHED THEN UPDATE SET "App" = s.k::text WHEN NOT MATCHED THEN INSERT (k, j) VALUES (s.k, [s.k])',
    )
    assert rows(pool) == [
        {"k": 1, "App": "5", "app": 1, "j": "1"},
        {"k": 2, "App": None, "app": None, "j": '"text"'},
        {"k": 8, "App": None, "app": None, "j": "[8]"},
    ]
