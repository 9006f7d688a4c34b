"""`lake fields`, as a user types it."""

from __future__ import annotations

import pytest

from tests.support.command import INVALID_INPUT, NOT_FOUND, Command


@pytest.fixture
def pool(lake: Command) -> str:
    lake.pool()
    lake.load_records("p", [{"k": 1, "a": 5, "c": "x"}], "one.ndjson")
    return "p"


def test_fields_are_listed_renamed_and_dropped(lake: Command, pool: str) -> None:
    said = lake("fields", pool, "rename", "a", "b").err
    assert said.startswith("p: field a is now b; version 2, transaction ")
    assert lake("fields", pool, "drop", "c", "--json").records[0]["new"] is None
    listed = [
        {"field": "k", "type": "bigint", "stored": "k"},
        {"field": "b", "type": "bigint", "stored": "a"},
    ]
    assert lake("fields", pool, "--json").records == listed
    assert [one["field"] for one in lake("fields", pool, "--at", "1", "--json").records] == ["k", "a", "c"]
    assert lake("scan", pool).records == [{"k": 1, "b": 5}]
    assert lake("query", 'SELECT b FROM "p" WHERE b > 1', "--json").records == [{"b": 5}]
    assert lake("show", pool, "--json").records[0]["fields"] == {"k": "bigint", "b": "bigint"}


def test_writes_by_sql_take_the_new_names(lake: Command, pool: str) -> None:
    lake("fields", pool, "rename", "a", "b")
    lake("query", "INSERT INTO p BY NAME SELECT 2 AS k, 6 AS b")
    lake("query", "UPDATE p SET b = b + 1 WHERE b = 6")
    lake(
        "query", "MERGE INTO p USING (SELECT 3 AS k, 9 AS b) AS s ON p.b = s.b WHEN NOT MATCHED THEN INSERT *"
    )
    lake("query", "DELETE FROM p WHERE b = 5")
    assert [(one["k"], one["b"]) for one in lake("scan", pool).records] == [(2, 7), (3, 9)]


def test_an_added_field_is_written_by_sql(lake: Command, pool: str) -> None:
    assert lake("fields", pool, "add", "x", "double").err.startswith("p: field x is added; version 2, ")
    assert {"field": "x", "type": "double", "stored": "x"} in lake("fields", pool, "--json").records
    assert lake("query", "SELECT count(*) AS n FROM p WHERE x IS NULL", "--json").records == [{"n": 1}]
    lake("query", "INSERT INTO p BY NAME SELECT 2 AS k, 6 AS x")
    lake("query", "UPDATE p SET x = 1 WHERE x IS NULL")
    assert [(one["k"], one["x"]) for one in lake("scan", pool).records] == [(1, 1.0), (2, 6.0)]


def test_deletes_and_explanations_say_the_new_names(lake: Command, pool: str) -> None:
    lake("delete", pool, "--where", "a = 5")
    lake("fields", pool, "rename", "a", "b")
    assert "where b = 5" in lake("explain", pool, "1").out
    assert lake("query", 'SELECT condition FROM "p:tombstones"', "--json").records == [{"condition": "b = 5"}]


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["rename", "a"], INVALID_INPUT, "write rename OLD NEW or drop FIELD"),
        (["add", "x"], INVALID_INPUT, "write rename OLD NEW or drop FIELD or add FIELD TYPE"),
        (["add", "x", "number"], INVALID_INPUT, "type 'number' of field 'x' is unknown"),
        (["rename", "k", "x"], INVALID_INPUT, "is a field of the key"),
        (["drop", "nothing"], NOT_FOUND, "field 'nothing' does not exist"),
    ],
)
def test_what_is_refused(lake: Command, pool: str, words: list[str], status: int, said: str) -> None:
    assert said in lake.fails(status, "fields", pool, *words)
