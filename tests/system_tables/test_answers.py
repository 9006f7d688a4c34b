"""Every type of DuckDB has a right text in an answer, at any depth; every format takes it or says what to do."""

from __future__ import annotations

import json
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from log_lake.columns.json_text import json_lines
from log_lake.lake import Lake
from log_lake.stores.memory import MemoryStore
from log_lake.system_tables import query
from tests.support.command import INVALID_INPUT, Command

ANSWERS: dict[str, Any] = {
    "true": True,
    "1::utinyint": 1,
    "170141183460469231731687303715884105727::hugeint": 2**127 - 1,
    "340282366920938463463374607431768211455::uhugeint": 2**128 - 1,
    "('1' || repeat('0', 100))::bignum": 10**100,
    "-1::bignum": -1,
    "1.10::decimal(4, 2)": 1.1,
    "'nan'::float": "NaN",
    "'-inf'::double": "-Infinity",
    "'b'::enum('a', 'b')": "b",
    "'10101'::bit": "10101",
    "'\\xff\\x00'::blob": "/wA=",
    "uuid '8ef5a2b0-4e7d-4d2a-bc4c-3f4f1d2d3d4d'": "8ef5a2b0-4e7d-4d2a-bc4c-3f4f1d2d3d4d",
    "'12:00:00.5'::time": "12:00:00.5",
    "'24:00:00'::time": "24:00:00",
    "'12:00:00.123456789'::time_ns": "12:00:00.123456789",
    "'12:00:00.5+02:30'::timetz": "12:00:00.5+02:30",
    "'2020-01-01 00:00:00.123456789'::timestamp_ns": "2020-01-01T00:00:00.123456789",
    "'2020-01-01 00:00:00.123'::timestamp_ms": "2020-01-01T00:00:00.123",
    "'2020-01-01'::timestamp_s": "2020-01-01T00:00:00",
    "'2020-01-01 00:00:00+05'::timestamptz": "2019-12-31T19:00:00Z",
    "'2020-01-01 00:00:00.000000001+05'::timestamptz_ns": "2019-12-31T19:00:00.000000001Z",
    "'290000-01-01 00:00:00.5'::timestamp": "290000-01-01T00:00:00.5",
    "'290000-01-01'::timestamptz": "290000-01-01T00:00:00Z",
    "'290000-01-01'::timestamp_s": "290000-01-01T00:00:00",
    "'0044-03-15 (BC)'::date": "-0043-03-15",
    "'5877642-06-25 (BC)'::date": "-5877641-06-25",
    "'290308-12-22 (BC) 00:00:00'::timestamp": "-290307-12-22T00:00:00",
    "'infinity'::date": "infinity",
    "'-infinity'::date": "-infinity",
    "'infinity'::timestamp": "infinity",
    "'-infinity'::timestamptz": "-infinity",
    "'infinity'::timestamp_s": "infinity",
    "'-infinity'::timestamp_ms": "-infinity",
    "interval '14 months 3 days 1.5 seconds'": "1 year 2 months 3 days 00:00:01.5",
    "to_microseconds(9223372036854775807)": "2562047788:00:54.775807",
    "interval '178956970 years 7 months'": "178956970 years 7 months",
    "union_value(num := 2)": {"num": 2},
    "union_value(x := 'nan'::double)": {"x": "NaN"},
    "{'a': 1}::variant": {"a": 1},
    "'{\"a\":[1]}'::json": {"a": [1]},
    "to_json('-inf'::double)": "-Infinity",
    '\'{"lake:date":"2020-01-01"}\'::json': {"lake:date": "2020-01-01"},
    "'POINT(1 2)'::geometry": "POINT (1 2)",
    "[1, 2]::int[2]": [1, 2],
    "row(1, 'x')": {"element1": 1, "element2": "x"},
    "map{}": {},
    "[null]": [None],
}
"""SQL, and what JSON shows of it."""

WRAPPED = {
    "list": ("[{0}]", lambda v: [v]),
    "record": ("{{'a b\"c': {0}}}", lambda v: {'a b"c': v}),
    "map": ("map{{'k': {0}}}", lambda v: {"k": v}),
    "array": ("array_value({0})", lambda v: [v]),
    "tuple": ("row(1, {0})", lambda v: {"element1": 1, "element2": v}),
    "deep": ("[{{'m': map{{'k': [{0}]}}}}]", lambda v: [{"m": {"k": [v]}}]),
}


@pytest.fixture(scope="module")
def empty() -> Lake:
    return Lake.create_on(MemoryStore())


def answer(lake: Lake, sql: str) -> Any:
    (line,) = json_lines(query(lake, f"select {sql} as v").read_all()).to_pylist()
    return json.loads(line)["v"]


@pytest.mark.parametrize("sql", ANSWERS)
def test_a_value_of_every_type_is_shown_as_it_is(empty: Lake, sql: str) -> None:
    assert answer(empty, sql) == ANSWERS[sql]


@pytest.mark.parametrize("shape", WRAPPED)
def test_so_it_is_inside_of_lists_records_and_maps(empty: Lake, shape: str) -> None:
    pattern, wrapped = WRAPPED[shape]
    for sql, value in ANSWERS.items():
        assert answer(empty, pattern.format(sql)) == wrapped(value), sql


def test_a_map_may_have_any_of_them_as_its_key(empty: Lake) -> None:
    for sql in ("'101'::bit", "'a'::enum('a')", "union_value(n := 1)", "1::uhugeint", "interval '1 day'"):
        value = answer(empty, sql)
        key = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
        assert answer(empty, f"map{{{sql}: 1}}") == {key: 1}


def test_no_type_of_duckdb_is_left_out() -> None:
    with duckdb.connect() as connection:
        names = {name for (name,) in connection.sql("select logical_type from duckdb_types()").fetchall()}
        tried = {
            str(kind).partition("(")[0]
            for sql in [*ANSWERS, "1::tinyint", "1::smallint", "1::integer", "1::bigint", "1::usmallint"]
            for kind in connection.sql(f"select {sql}").types
        }
    others = {"UINTEGER", "UBIGINT", "VARCHAR", "LIST", "ARRAY", "NULL", "TYPE", "DOUBLE", "STRUCT"}
    assert names - tried <= others


def test_the_order_and_the_names_of_columns_stay(empty: Lake) -> None:
    table = query(
        empty,
        'select i, (\'1\'::bit || i::bit)::bit as "a""b", i as "a b" from range(5000) t(i) order by hash(i)',
    ).read_all()
    plain = query(empty, "select i from range(5000) t(i) order by hash(i)").read_all()
    assert table.column_names == ["i", 'a"b', "a b"]
    assert table["i"].equals(plain["i"])


def test_columns_of_one_name_are_told_apart(empty: Lake) -> None:
    sql = "select 1 as a, 2 as a, 3 as a_1, 4 as A, '1'::bit as a"
    assert query(empty, sql).read_all().to_pylist() == [{"a": 1, "a_2": 2, "a_1": 3, "A": 4, "a_3": "1"}]


def test_sql_that_is_not_utf8_is_refused_in_one_line(lake: Command) -> None:
    assert "not UTF-8" in lake.fails(INVALID_INPUT, "query", "select '\udcff'")


@pytest.mark.parametrize("format", ["json", "csv", "table", "arrow", "parquet"])
def test_every_format_takes_every_type(lake: Command, format: str) -> None:
    columns = [f"{sql} as c{n}" for n, sql in enumerate(ANSWERS)]
    columns += [f"{WRAPPED['deep'][0].format(sql)} as d{n}" for n, sql in enumerate(ANSWERS)]
    tried = [sql for sql in columns if not _beyond(sql, format)]
    output = lake("query", f"select {', '.join(tried)}", "--format", format).output
    assert b"out of range" not in output
    if format == "parquet":
        assert pq.read_table(pa.BufferReader(output)).num_columns == len(tried)


def _beyond(sql: str, format: str) -> bool:
    """39 digits are no decimal elsewhere; Parquet counts milliseconds, in which infinite seconds do not fit."""
    digits = "105727::hugeint" in sql and format in ("arrow", "parquet")
    return digits or ("'infinity'::timestamp_s" in sql and format == "parquet")


@pytest.mark.parametrize(
    "sql", ["170141183460469231731687303715884105727::hugeint", "'infinity'::timestamp_s"]
)
def test_what_parquet_cannot_hold_is_said_in_one_line_and_no_file_is_left(lake: Command, sql: str) -> None:
    path = lake.folder / "x.parquet"
    message = lake.fails(INVALID_INPUT, "query", f"select {sql} as v", "-o", str(path))
    assert "parquet cannot hold column 'v' of type " in message
    assert message.endswith("choose another format, such as json")
    assert not list(lake.folder.iterdir())


def test_a_pool_may_be_called_lake(lake: Command) -> None:
    lake.pool("lake")
    lake.load_records("lake", [{"k": 1}])
    assert lake.query("select * from lake") == lake.query('select * from "lake@main"') == [{"k": 1}]
    assert lake.query('select name from "lake:pools"') == [{"name": "lake"}]
    for kind, count in (("objects", 1), ("log", 1), ("references", 1), ("branches", 1), ("tombstones", 0)):
        assert lake.query(f'select count(*) as n from "lake:{kind}"') == [{"n": count}]
    assert 'table "lake:pool" does not exist' in lake.fails(3, "query", 'select * from "lake:pool"')
