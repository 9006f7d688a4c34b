"""SQL never gives another field's value: fields that it would take for one another have names of their own."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lake_core.errors import InvalidInput
from log_lake.system_tables.columns import folded, sql_names
from tests.support.command import INVALID_INPUT, Command

APPS = (
    '{"id":1,"app":"web","App":"db","r":{"x":1,"X":2},"l":[{"y":1,"Y":2}]}\n{"id":2,"app":"db","App":"web"}\n'
)
"""The first two fields are those of a public file: a stage and its application."""


@pytest.fixture
def apps(lake: Command) -> Command:
    lake.pool("p", key="id")
    lake.load_records("p", APPS)
    lake.pool("q", key="id")
    lake.load_records("q", [{"id": 1, "app": "q1"}, {"id": 2, "app": "q2"}])
    return lake


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("select id from \"p\" where \"=^app\" = 'db'", [{"id": 1}]),
        ("select id from \"p\" where \"=app\" = 'db'", [{"id": 2}]),
        ("select id from \"p\" where p.\"=^APP\" = 'db'", [{"id": 1}]),
        ('select "=^app", "=app" from "p" where id = 1', [{"App": "db", "app": "web"}]),
        ('select r."=^x" as a, r[\'=x\'] as b, l[1]."=^y" as c from "p" where id = 1', [{"a": 2, "b": 1, "c": 2}]),
        ('select r, l from "p" where r."=^x" = 2', [{"r": {"x": 1, "X": 2}, "l": [{"y": 1, "Y": 2}]}]),
        ('select r.* from "p" where id = 1', [{"x": 1, "X": 2}]),
        ('select map {1: r} as m from "p" where id = 1', [{"m": {"1": {"x": 1, "X": 2}}}]),
        ('select z.s.app from (select {\'app\': id} as s from "p") z where z.s.app = 2', [{"app": 2}]),
        ('select b.app from "p" a join "q" b on a.id = b.id where a."=^app" = \'db\'', [{"app": "q1"}]),
        ('select count(*) as n from "p"', [{"n": 2}]),
        ('select count("=^app") as n, min("=^app") as m from "p"', [{"n": 2, "m": "db"}]),
        ('select "=^app" as a from "p" group by all order by 1', [{"a": "db"}, {"a": "web"}]),
        ('with w as (from "p") select w."=^app" from w where id = 2', [{"App": "web"}]),
        ('select p from "p" where id = 2', [{"p": {"id": 2, "app": "db", "App": "web"}}]),
        ('select * from "p" where id = 2', [{"id": 2, "app": "db", "App": "web"}]),
    ],
)  # fmt: skip
def test_each_field_is_found_by_its_own_name(apps: Command, sql: str, rows: list[dict[str, Any]]) -> None:
    assert apps.query(sql) == rows


@pytest.mark.parametrize(
    "sql",
    [
        'select id from "p" where "App" = \'db\'',
        "select id from \"p\" where app = 'db'",
        'select p.APP from "p"',
        'select a."App" from "p" a',
        'select app from "p" a join "q" b on a.id = b.id',
        'select * from "p" join "q" using (app)',
        'select * from "p" natural join "q"',
        'select (select app from "p" limit 1) from "q"',
        'select (select b.app from "p" b limit 1) from "q" b',
        'select id as app, app from "p"',
        'select * exclude (app) from "p"',
        'select * replace (1 as "App") from "p"',
        'select r.x from "p"',
        "select r['X'] from \"p\"",
        'select l[1].Y from "p"',
        "select struct_extract(r, 'x') from \"p\"",
        'select id from "p" order by App',
        'select sum(id) over (partition by App) from "p"',
        'with w as (from "p") select App from w',
        'explain select App from "p"',
        'select v from "p" unpivot (v for n in (app))',
    ],
)
def test_a_name_that_may_be_several_fields_is_refused_with_their_names(apps: Command, sql: str) -> None:
    message = apps.fails(INVALID_INPUT, "query", sql)
    assert "SQL takes the fields " in message
    assert "\n" not in message
    assert any(name in message for name in ('"=app" or "=^app"', '"=x" or "=^x"', '"=y" or "=^y"'))


def test_no_field_has_the_name_that_duckdb_would_give_to_another(lake: Command) -> None:
    lake.pool("p", key="id")
    records = [{"id": 1, "a": 1, "A": 2, "A_1": 3, "": 4, "v4": 5, "r": {"": 6, "b": 7}}]
    lake.load_records("p", records)
    assert lake.query('select * from "p"') == records
    assert lake.query('select "A_1", "=^a", "=", v4, r."=" as m from "p"') == [
        {"A_1": 3, "A": 2, "": 4, "v4": 5, "m": 6}
    ]
    assert '"v5" not found' in lake.fails(INVALID_INPUT, "query", 'select v5 from "p"')


def test_letters_beyond_ascii_are_told_apart(lake: Command) -> None:
    lake.pool("p", key="id")
    lake.load_records("p", [{"id": 1, "É": 1, "é": 2}])
    assert lake.query('select "É", "é" from "p"') == [{"É": 1, "é": 2}]


def test_a_pool_that_sql_has_no_names_for_is_refused(lake: Command) -> None:
    lake.pool("p", key="id")
    lake.load_records("p", [{"id": 1, "a": 1, "A": 2, "=a": 3}])
    message = lake.fails(INVALID_INPUT, "query", 'select * from "p"')
    assert message.endswith("SQL has no name for field '=a' beside 'a'; read the records with lake scan")


def test_a_filter_and_a_projection_mean_the_field_in_each_object(lake: Command) -> None:
    lake.pool("p", key="id")
    lake.load_records("p", [{"id": n, "a": n % 3, "A": -(n % 3)} for n in range(50)], "one.ndjson")
    lake.load_records("p", [{"id": 50, "A": 1}, {"id": 51, "a": 1}], "two.ndjson")
    assert lake.query('select count(*) as n from "p" where "=^a" = 1') == [{"n": 1}]
    assert lake.query('select count(*) as n from "p" where "=a" = 1 and "=^a" = -1') == [{"n": 17}]
    assert lake.scan("p", "--where", '"A" = 1', "--columns", "A,id") == [{"id": 50, "A": 1}]


NAMES = st.lists(st.text("aAbB^=", max_size=4), unique=True, max_size=6)


@given(NAMES)
def test_names_in_sql_differ_and_depend_on_the_field_alone(names: list[str]) -> None:
    try:
        results = sql_names(names)
    except InvalidInput:
        return
    assert len({folded(name) for name in results}) == len(names)
    assert "" not in results
    alone = [sql_names([name, name.swapcase()])[0] if name.swapcase() != name else name for name in names]
    assert all(sql in (name, own) or not name for name, sql, own in zip(names, results, alone, strict=True))


def test_many_columns_are_as_they_were() -> None:
    names = pa.schema([(f"c{n}", pa.int64()) for n in range(100)]).names
    assert sql_names(names) == names
