"""`lake query`: pools and the lake's own tables, in SQL."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from log_lake.lake import Lake
from log_lake.lake.view import View
from log_lake.system_tables import query
from log_lake.system_tables.sql import _Question
from tests.support.command import INVALID_INPUT, NOT_FOUND, Command

RECORDS = [
    {"k": 2, "id.orig_h": "10.0.0.2", "n": 1.5, "r": {"x": 1, "y": ["a"]}},
    {"k": 1, "id.orig_h": "10.0.0.1", "t": "2020-01-01T00:00:00Z"},
    {"k": 3, "n": 2.5, "r": {"x": 3, "y": []}},
]


@pytest.fixture
def pool(lake: Command) -> str:
    lake.pool("logs.day", types={"t": "timestamp"})
    lake.load_records("logs.day", RECORDS[:2], "a.ndjson")
    lake.load_records("logs.day", RECORDS[2:], "b.ndjson")
    return "logs.day"


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ('select k from "logs.day" order by k', [{"k": 1}, {"k": 2}, {"k": 3}]),
        ('select k from "logs.day@1" order by k', [{"k": 1}, {"k": 2}]),
        ('select k from "logs.day@main" order by k', [{"k": 1}, {"k": 2}, {"k": 3}]),
        ('select "id.orig_h" as h from "logs.day" where k = 1', [{"h": "10.0.0.1"}]),
        ('select r.x, r.y[1] as y from "logs.day" where k = 2', [{"x": 1, "y": "a"}]),
        ('select r from "logs.day" where r.x = 3', [{"r": {"x": 3, "y": []}}]),
        ("select t from \"logs.day\" where t < timestamptz '2021-01-01'", [{"t": "2020-01-01T00:00:00Z"}]),
        ('select sum(n) as s, count(*) as c from "logs.day"', [{"s": 4.0, "c": 3}]),
        (
            'select b.k from "logs.day" a full join "logs.day@1" b using (k) order by a.k',
            [{"k": 1}, {"k": 2}, {}],
        ),
        ('with w as (select k from "logs.day" where n > 2) select * from w', [{"k": 3}]),
        ('select k from "LOGS.DAY" limit 0', []),
        ("select 1 as one, 'x' as two, null as three", [{"one": 1, "two": "x"}]),
        ("select 12345678901234567890123::hugeint as h", [{"h": 12345678901234567890123}]),
        ('select k from "logs.day" natural join (select 2 as k)', [{"k": 2}]),
        ('with "logs.day" as (select k from "logs.day@1") select max(k) as k from "logs.day"', [{"k": 2}]),
        ("select column_name as c from (describe \"logs.day@1\") where column_name = 'k'", [{"c": "k"}]),
        ("select table_name as t from information_schema.tables where table_name = 'x'", []),
        ('explain select k from "logs.day"', None),
    ],
)
def test_sql_sees_pools_and_their_past(
    lake: Command, pool: str, sql: str, rows: list[dict[str, Any]] | None
) -> None:
    if "LOGS" in sql:
        assert "'LOGS.DAY' does not exist" in lake.fails(NOT_FOUND, "query", sql)
        return
    found = lake.query(sql)
    assert rows is None or found == rows


def test_a_pool_comes_in_key_order(lake: Command, pool: str) -> None:
    assert lake.query('select * from "logs.day"') == lake.scan(pool)


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ('select j from "p" order by k', [{"j": 5}, {"j": "five"}, {"j": {"x": [1, None]}}]),
        ("select k from \"p\" where j = '\"five\"'", [{"k": 2}]),
        ("select k from \"p\" where j ->> '$.x[0]' = '1'", [{"k": 3}]),
        ("select j -> '$.x' as x from \"p\" where k = 3", [{"x": [1, None]}]),
        ('select l from "p" where k = 1', [{"l": [1, "a", {"y": 2}]}]),
        ('select l[3] as x, [j] as y from "p" where k = 1', [{"x": {"y": 2}, "y": [5]}]),
        ("select {'m': j} as z from \"p\" where k = 1", [{"z": {"m": 5}}]),
        ('select r from "p" where k = 2', [{"r": {"in": {"z": 1}}}]),
        ('select r."in" as i, k from "p" where r."in" = \'7\'', [{"i": 7, "k": 1}]),
        ('select cast(j as varchar) as text from "p" where k = 3', [{"text": '{"x":[1,null]}'}]),
    ],
)  # fmt: skip
def test_json_fields_are_values_at_any_depth(lake: Command, sql: str, rows: list[dict[str, Any]]) -> None:
    lake.pool("p")
    lake.load_records(
        "p",
        [
            {"k": 1, "j": 5, "l": [1, "a", {"y": 2}], "r": {"in": 7}},
            {"k": 2, "j": "five", "r": {"in": {"z": 1}}},
            {"k": 3, "j": {"x": [1, None]}},
        ],
    )
    assert lake.query(sql) == rows


def test_a_sub_pool_is_a_table_of_its_own(lake: Command) -> None:
    lake.pool("p", bad_records="quarantine")
    lake.load_records("p", '{"k":1}\n{"a":1}\nbad\n')
    assert lake.query('select a from "p.$nokey"') == [{"a": 1}]
    assert lake.query('select line, raw from "p.$rejected"') == [{"line": 3, "raw": "bad"}]


def test_a_pool_without_records_has_its_key_and_no_rows(lake: Command) -> None:
    lake.pool("p", key="a,b:desc")
    assert lake.query('select a, b from "p"') == []
    assert lake.query('select count(*) as n from "p.$nokey"') == [{"n": 0}]


def test_pools_branches_log_and_references_are_tables(lake: Command, pool: str) -> None:
    (listed,) = lake.query('select name, key, kind from "lake:pools"')
    assert listed == {"name": "logs.day", "key": "k", "kind": "append"}
    assert lake.query('select * from "logs.day:branches"') == [
        {"name": "main", "tip": 2, "references": 2, "records": 3, "is_exact": True, "stored": 3}
    ]
    assert lake.query('select version, branch, parent, actions, added from "logs.day:log"') == [
        {"version": 2, "branch": "main", "parent": 1, "actions": 2, "added": 1},
        {"version": 1, "branch": "main", "parent": 0, "actions": 2, "added": 2},
    ]
    assert lake.query('select low, records, version from "logs.day:references" order by low') == [
        {"low": "1", "records": 2, "version": 1},
        {"low": "3", "records": 1, "version": 2},
    ]
    assert lake.query('select sum(records) as n, count(distinct object) as o from "logs.day:objects"') == [
        {"n": 3, "o": 2}
    ]


def test_a_time_in_the_name_of_a_table_may_have_colons(lake: Command, pool: str) -> None:
    now = "9999-01-01T00:00:00Z"
    assert lake.query(f'select count(*) as n from "logs.day@main@{now}"') == [{"n": 3}]
    assert lake.query(f'select records from "logs.day@main@{now}:branches"') == [{"records": 3}]


def test_the_lakes_own_tables_know_the_past_too(lake: Command, pool: str) -> None:
    assert lake.query('select records from "logs.day@1:branches"') == [{"records": 2}]
    assert lake.query('select version from "logs.day@1:log"') == [{"version": 1}]
    assert lake.query('select records from "logs.day@1:objects"') == [{"records": 2}]


def test_the_bounds_of_a_reference_are_shown_as_values_of_the_key(lake: Command) -> None:
    lake.pool("p", key="a,b:desc")
    lake.load_records("p", [{"a": "x", "b": 1}, {"a": "y", "b": 2}])
    assert lake.query('select low, high from "p:references"') == [{"low": '["x",1]', "high": '["y",2]'}]


@pytest.mark.parametrize(
    ("sql", "status", "says"),
    [
        ("selec 1", INVALID_INPUT, "syntax error"),
        ("", INVALID_INPUT, "write one SELECT"),
        ("select 1; select 2", INVALID_INPUT, "write one SELECT"),
        ("create table x as select 1", INVALID_INPUT, "CREATE: a pool needs a key; CREATE TABLE NAME AS SELECT"),
        ("insert into \"logs.day\" values (1)", INVALID_INPUT, "a pool's fields have no order: name them"),
        ("copy (select 1) to '/tmp/x'", INVALID_INPUT, "write one SELECT"),
        ("attach '/tmp/x.db'", INVALID_INPUT, "write one SELECT"),
        ('select nope from "logs.day"', INVALID_INPUT, '"nope" not found'),
        ('select cast("id.orig_h" as int) from "logs.day"', INVALID_INPUT, "Could not convert"),
        ("select * from read_csv('/etc/passwd')", INVALID_INPUT, "disabled"),
        ('select * from "/etc/passwd"', NOT_FOUND, "pool '/etc/passwd' does not exist"),
        ('select * from "nope"', NOT_FOUND, "pool 'nope' does not exist; there are: logs.day"),
        ('select * from "logs.day@9"', NOT_FOUND, "version 9 does not exist"),
        ('select * from "logs.day@side"', NOT_FOUND, "revision 'side' does not exist"),
        ('select * from "logs.day:nope"', NOT_FOUND, "there are: actions, branches, coverage, log, objects"),
        ('select * from "nope:log"', NOT_FOUND, "pool 'nope' does not exist"),
        ('select * from "lake:nope"', NOT_FOUND, 'there are "lake:pools", "lake:transactions" and "lake:health"'),
    ],
)  # fmt: skip
def test_a_question_that_cannot_be_answered_says_why(
    lake: Command, pool: str, sql: str, status: int, says: str
) -> None:
    assert says in lake.fails(status, "query", sql)


@pytest.mark.parametrize(
    ("sql", "marked"),
    [
        ('select _path\nfrom "logs.day" wher 1 = 1', "1"),
        ('select * from (select cast("id.orig_h" as int) from "logs.day")', "cast"),
    ],
)
def test_an_error_inside_of_sql_keeps_its_line_and_its_caret(
    lake: Command, pool: str, sql: str, marked: str
) -> None:
    _, line, caret = lake.fails(INVALID_INPUT, "query", sql).splitlines()
    assert line.startswith("LINE ")
    assert line[caret.index("^") :].startswith(marked)


def test_two_tables_that_sql_takes_for_one_are_refused(lake: Command) -> None:
    lake.pool("a")
    lake.pool("A")
    assert 'takes "A" and "a" for one table' in lake.fails(INVALID_INPUT, "query", 'select * from "a", "A"')


def test_an_object_that_is_missing_is_an_error_not_a_shorter_answer(lake: Command, pool: str) -> None:
    counted = lake.query('select count(*) as records from "logs.day"')
    first, *_ = sorted(Path(lake.uri).glob("*/data/*.parquet"))
    first.unlink()
    assert "missing" in lake.fails(8, "query", 'select * from "logs.day"')
    assert "missing" in lake.fails(8, "query", 'select count(distinct k) from "logs.day"')
    assert (
        lake.query('select count(*) as records from "logs.day"') == counted
    )  # the state knows it (decision 426)


def test_times_are_those_of_no_place_whatever_the_machine(lake: Command, pool: str) -> None:
    sql = "select cast(t as date) as d, timestamptz '2020-01-01 10:00' as z, t from \"logs.day\" where k = 1"
    assert lake.query(sql) == [{"d": "2020-01-01", "z": "2020-01-01T10:00:00Z", "t": "2020-01-01T00:00:00Z"}]
    assert lake.query("select current_setting('TimeZone') as zone") == [{"zone": "UTC"}]


ENDS = {
    "unread": "answer = query(lake, SQL)",
    "read in part": "answer = query(lake, SQL + ' order by a desc'); next(iter(answer))",
    "left by an exit": "answer = query(lake, SQL); next(iter(answer)); raise SystemExit(0)",
    "refused": "\ntry:\n    query(lake, 'select nope from \"p\"')\nexcept Exception as error:\n    kept = error",
    "several at once": "answers = [query(lake, SQL) for _ in range(3)]; next(iter(answers[1]))",
}


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The URI of a lake whose answers DuckDB does not have at once."""
    lake = Lake.create(str(tmp_path_factory.mktemp("large") / "lake"))
    rows = range(200_000)
    lake.create_pool("p", key="k").branch().append(pa.table({"k": rows, "a": [i % 97 for i in rows]}))
    return lake.store.uri


def test_the_threads_that_read_a_pool_have_ended_when_its_answer_is_closed(
    large: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading: set[int] = set()
    run = View.run

    def noted(view: View, *words: Any) -> Iterator[pa.Table]:
        for table in run(view, *words):
            reading.add(threading.get_native_id())
            yield table

    monkeypatch.setattr(View, "run", noted)
    answer = query(Lake.open(large), 'select * from "p" order by a desc')
    assert answer.read_next_batch().num_rows > 0
    assert reading
    _Question.close_all()
    reading.discard(threading.get_native_id())
    assert [thread for thread in reading if Path(f"/proc/self/task/{thread}").exists()] == []


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS.keys())
def test_a_program_that_leaves_an_answer_open_ends_in_silence(large: str, end: str) -> None:
    program = (
        "from log_lake.lake.lake import Lake\nfrom log_lake.system_tables import query\n"
        f"lake = Lake.open({large!r})\nSQL = 'select * from \"p\"'\n{end}\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=600, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_an_answer_holds_its_leases_until_it_is_read(tmp_path: Path) -> None:
    lake = Lake.create(str(tmp_path / "lake"))
    pool = lake.create_pool("p", key="k")
    pool.branch().append(pa.table({"k": [1]}))
    reader = query(lake, "SELECT a.k FROM p a, p b", lease=True)
    assert [(lease.note.kind, lease.note.version) for lease in pool.leases().all] == [("read", 1)]
    assert reader.read_all().num_rows == 1
    assert pool.leases().all == ()
