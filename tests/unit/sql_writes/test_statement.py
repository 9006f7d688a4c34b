"""What a writing statement says, and which clauses are refused by their names."""

from __future__ import annotations

import pytest

from lake_core.errors import InvalidInput
from lake_core.keys import PoolKey
from log_lake.sql_writes import is_write
from log_lake.sql_writes.create_statement import Create
from log_lake.sql_writes.merge_statement import (
    DeleteRecord,
    InsertRecord,
    MergeClause,
    MergeStatement,
    MergeWhen,
    SetFields,
)
from log_lake.sql_writes.statement import ChangeStatement, Delete, Insert, Update, parsed
from log_lake.sql_writes.text import ChangeTarget

LOGS = ChangeTarget("logs", "main")

MEANINGS: list[tuple[str, ChangeStatement]] = [
    ("delete from logs", Delete(LOGS, None)),
    (
        "DELETE FROM \"logs@dev\" WHERE ts = date '2026-01-31' ;",
        Delete(ChangeTarget("logs", "dev"), "ts = date '2026-01-31'"),
    ),
    ("TRUNCATE logs", Delete(LOGS, None)),
    ("truncate table logs;", Delete(LOGS, None)),
    (
        "update logs set a = f(b, c), b = case when x = 1 then 'where' end where (d = 1 or e = 2)",
        Update(LOGS, (("a", "f(b, c)"), ("b", "case when x = 1 then 'where' end")), "(d = 1 or e = 2)"),
    ),
    ("update logs set a = b = c", Update(LOGS, (("a", "b = c"),), None)),
    (
        "update logs set a = {'x': [1, 2], 'y': 3}, b = 1",
        Update(LOGS, (("a", "{'x': [1, 2], 'y': 3}"), ("b", "1")), None),
    ),
    ("insert into logs by name select 1 as ts", Insert(LOGS, "select 1 as ts", None)),
    (
        "insert into logs (ts, \"from\") values (1, 'a'), (2, 'b')",
        Insert(LOGS, "SELECT * FROM (values (1, 'a'), (2, 'b'))", ("ts", "from")),
    ),
    ("insert into logs (ts) (select 1)", Insert(LOGS, "(select 1)", ("ts",))),
    ("insert into logs by name (select 1 as ts)", Insert(LOGS, "(select 1 as ts)", None)),
    ('insert into logs ("values", "with") select 1, 2', Insert(LOGS, "select 1, 2", ("values", "with"))),
    ("delete from logs; -- done", Delete(LOGS, None)),
    (
        "create table if not exists logs as (select 1 as ts) order by ts desc",
        Create(
            LOGS, PoolKey.parse("ts:desc"), "append", "(select 1 as ts) order by ts desc", if_missing=True
        ),
    ),
    (
        "create table logs (primary key (a, b)) as with q as (select 1) from q",
        Create(LOGS, PoolKey.parse("a,b"), "upsert", "with q as (select 1) from q", if_missing=False),
    ),
    (
        "merge into logs as t using (select 1 as k) s on t.k = s.k and (t.a or s.b) when matched and case when t.x "
        "then s.y end then update set a = case when s.a then 1 end, b = f(s.b, 2) when not matched by source then "
        'delete when not matched then insert (k, "A") values (s.k, g(1, 2))',
        MergeStatement(
            LOGS,
            "t",
            "(select 1 as k) s",
            "s",
            "t.k = s.k and (t.a or s.b)",
            (
                MergeClause(
                    MergeWhen.MATCHED,
                    "case when t.x then s.y end",
                    SetFields((("a", "case when s.a then 1 end"), ("b", "f(s.b, 2)"))),
                ),
                MergeClause(MergeWhen.NOT_BY_SOURCE, "", DeleteRecord()),
                MergeClause(MergeWhen.NOT_MATCHED, "", InsertRecord((("k", "s.k"), ("A", "g(1, 2)")))),
            ),
            (("k", "k"),),
            frozenset({"t", "s", "k", "a", "b", "x", "y"}),
        ),
    ),
    (
        "insert into logs (ts) with q as (select 1 as a) select a from q",
        Insert(LOGS, "with q as (select 1 as a) select a from q", ("ts",)),
    ),
]

REFUSED = [
    ("insert into logs (*) select 1", "is no name of a field"),
    ("insert into logs (a) by name select 1 as a", "leave out the list of fields"),
    ("insert into logs set a = 1", ""),
    ("update a set x = 1,", ""),
    ("update a set x = 1, q set b = 2", ""),
    ("delete from a {# where b = 1 #}", "begins no comment of SQL"),
    ("insert into logs select 1", "a pool's fields have no order: name them"),
    ("insert into logs (a, b, a) values (1, 2, 3)", "field 'a' is named twice"),
    ("insert into logs (a) select 1 on conflict do nothing", "the clause CONFLICT is not done"),
    ("insert into logs (a) select 1 returning a", "the clause RETURNING is not done"),
    ("delete from logs where a = 1 returning *", "the clause RETURNING is not done"),
    ("delete from a using b where a.x = b.x", "the clause USING is not done"),
    ("with q as (select 1) delete from logs", "the clause WITH is not done"),
    ("update a set x = 1 from b where a.x = b.x", "the clause FROM is not done"),
    ("update a set x = (select 1)", "SET x: a query is not done"),
    ("update a set x = sum(y)", "SET x: an aggregate is not done"),
    ("update a set x = row_number() over ()", "SET x: a window function is not done"),
    ("update a set x = unnest([1])", "SET x: UNNEST is not done"),
    ("update a set x = 1, x = 2", "field 'x' is set twice"),
    ("update a set s.x = 1", "name a whole field"),
    ("update a as b set x = 1", "leave out the alias 'b'"),
    ("delete from main.logs", "change one pool, by its name"),
    ('delete from "logs:log"', "is a table of the lake"),
    ("truncate a, b", "name one pool"),
    ("delete from a; delete from b", "2 statements; write one"),
    (
        "merge into a using b on a.k = b.k when matched then insert (k) values (1)",
        "WHEN MATCHED THEN INSERT is not",
    ),
    (
        "merge into a using b on a.k = b.k when not matched then delete",
        "WHEN NOT MATCHED THEN DELETE is not done",
    ),
    ("merge into a using b on a.k = b.k when not matched then insert values (1)", "name them, INSERT (a, b)"),
    ("merge into a using b on a.k = b.k when matched then update", "say which fields"),
    ("merge into a using b on a.k = b.k when not matched by source then update set *", "name fields"),
    (
        "merge into a using b on a.k = b.k when matched then delete returning *",
        "the clause RETURNING is not done",
    ),
    (
        "merge into a using b on a.k in (select 1) when matched then delete",
        "a condition: a query is not done",
    ),
    ("merge into a using b on a = b when matched then delete", "'a' is a whole record; name its fields"),
    ("merge into a using a on true when matched then delete", "are both called 'a'"),
    ("merge into a using (select 1) on true when matched then delete", "write USING (SELECT ...) AS NAME"),
    ("merge into a using b on true when matched then update set x = 1, x = 2", "field 'x' is set twice"),
    ("merge into a using b on true when not matched then insert (x, x) values (1, 2)", "is named twice"),
    ("merge into a using b on true when not matched then insert (x, y) values (1)", "1 values"),
    (
        "merge into a using b on true when matched then update set x = (select 1)",
        "SET x: a query is not done",
    ),
    ("create table a as select 1", "CREATE: a pool needs a key"),
    ("drop table a", "lake drop NAME"),
    ("alter table a add column b int", "other changes are commands"),
    ("delete from logs where", "SQL: "),
    ("update", "SQL: "),
    ("delete from logs where a = '", "SQL: "),
]


@pytest.mark.parametrize(("sql", "meaning"), MEANINGS)
def test_a_statement_is_its_clauses_as_they_were_written(sql: str, meaning: ChangeStatement) -> None:
    assert parsed(sql) == meaning


@pytest.mark.parametrize(("sql", "why"), REFUSED)
def test_what_cannot_be_done_is_refused_with_its_clause(sql: str, why: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parsed(sql)
    assert why in str(refused.value)
    assert "\n" not in str(refused.value)


BESIDE = {
    "TABLESAMPLE (10 PERCENT)": "SAMPLE",
    "FOR SYSTEM_TIME AS OF '2020-01-01'": "VERSION",
    "VERSION AS OF 1": "VERSION",
    "AT (VERSION => 1)": "WHEN",
    "PIVOT (count(*) FOR k IN (1, 2))": "PIVOTS",
    "WITH ORDINALITY": "ORDINALITY",
    "WITH (NOLOCK)": "HINTS",
}


@pytest.mark.parametrize("beside", BESIDE)
def test_what_would_choose_some_records_of_a_pool_is_not_left_out(beside: str) -> None:
    """A DELETE with one of these deleted all records."""
    with pytest.raises(
        InvalidInput, match=f"the clause {BESIDE[beside]} beside the name of the pool is not done"
    ):
        parsed(f"DELETE FROM a {beside}")


@pytest.mark.parametrize(
    "sql", ["DELETE FROM ONLY a", "UPDATE ONLY a SET v = 1", "INSERT INTO a PARTITION (k = 1) (v) VALUES (1)"]
)
def test_a_word_before_the_name_of_the_pool_is_not_left_out(sql: str) -> None:
    with pytest.raises(
        InvalidInput, match=r"the clause (ONLY|PARTITION) beside the name of the pool is not done"
    ):
        parsed(sql)


@pytest.mark.parametrize("sql", ["DELETE FROM read_csv('/etc/passwd')", "DELETE FROM a (k) WHERE k = 1"])
def test_a_function_is_no_pool(sql: str) -> None:
    with pytest.raises(InvalidInput, match="change a pool, by its name"):
        parsed(sql)


def test_a_write_is_known_by_its_first_word() -> None:
    assert all(is_write(sql) for sql, _ in [*MEANINGS, *REFUSED] if not sql.startswith("with"))
    assert is_write("-- a comment\n /* another */ Delete from logs")
    assert not any(
        map(is_write, ["select 1", "from logs", "with a as (select 1) select 1", "", "explain delete"])
    )
    assert not is_write("-- delete\nselect 1")
    assert not is_write("/**/" * 10_000 + "(select 1)")  # in linear time


def test_a_statement_that_is_nested_too_deep_is_refused() -> None:
    with pytest.raises(InvalidInput, match="SQL: "):
        parsed("update a set x = " + "(" * 5_000 + "1" + ")" * 5_000)
