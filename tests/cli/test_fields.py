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


def test_deletes_and_explanations_say_the_new_names(lake: Command, pool: str) -> None:
    lake("delete", pool, "--where", "a = 5")
    lake("fields", pool, "rename", "a", "b")
    assert "where b = 5" in lake("explain", pool, "1").out
    assert lake("query", 'SELECT condition FROM "p:tombstones"', "--json").records == [{"condition": "b = 5"}]


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["rename", "a"], INVALID_INPUT, "write rename OLD NEW or drop FIELD"),
        (["add", "a"], INVALID_INPUT, "write rename OLD NEW or drop FIELD"),
        (["rename", "k", "x"], INVALID_INPUT, "is a field of the key"),
        (["drop", "nothing"], NOT_FOUND, "field 'nothing' does not exist"),
    ],
)
def test_what_is_refused(lake: Command, pool: str, words: list[str], status: int, said: str) -> None:
    assert said in lake.fails(status, "fields", pool, *words)
