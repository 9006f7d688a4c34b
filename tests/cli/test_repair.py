"""`lake repair`: what is damaged goes out, the rest can be read, and nothing goes unasked."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command import CORRUPT, INVALID_INPUT, NOT_FOUND, Command


@pytest.fixture
def pool(three_loads: str) -> str:
    """A pool of three transactions."""
    return three_loads


def objects(lake: Command) -> list[str]:
    rows = lake("query", 'SELECT object FROM "p:references" ORDER BY low', "--json").records
    return [row["object"] for row in rows]


def damage(lake: Command, object_id: str) -> None:
    (path,) = Path(lake.uri).glob(f"*/data/{object_id}.*")
    path.write_bytes(b"PAR1 but no longer")


def test_a_damaged_object_is_taken_out_and_the_rest_is_read(lake: Command, pool: str) -> None:
    bad = objects(lake)[1]
    damage(lake, bad)
    assert lake.run("scan", pool).status == CORRUPT
    assert (
        "would remove 1 object of 1 record and 0 deletes"
        in lake("repair", pool, "--object", bad, "--dry-run").err
    )
    assert lake.run("scan", pool).status == CORRUPT
    assert (
        "removed 1 object of 1 record and 0 deletes; version 4"
        in lake("repair", pool, "--object", bad, "--yes").err
    )
    assert [r["k"] for r in lake.scan(pool)] == [1, 3]
    assert lake("compact", pool, "--strategy", "full").status == 0


def test_a_transaction_is_taken_out_with_its_objects(lake: Command, pool: str) -> None:
    assert lake("repair", pool, "--transaction", "2", "--yes").status == 0
    assert [r["k"] for r in lake.scan(pool)] == [1, 3]


def test_a_delete_is_taken_out_whatever_it_covers(lake: Command, pool: str) -> None:
    lake("delete", pool, "--key", "2")
    assert [r["k"] for r in lake.scan(pool)] == [1, 3]
    assert (
        "removed 0 objects of 0 records and 1 delete"
        in lake("repair", pool, "--transaction", "4", "--yes").err
    )
    assert [r["k"] for r in lake.scan(pool)] == [1, 2, 3]


def test_records_that_were_merged_into_others_stay_and_that_is_said(lake: Command, pool: str) -> None:
    assert lake("compact", pool, "--strategy", "full").status == 0
    said = lake("repair", pool, "--transaction", "2", "--yes").err
    assert "nothing to remove" in said
    assert "1 object had been merged into others, whose records stay" in said
    assert [r["k"] for r in lake.scan(pool)] == [1, 2, 3]


def test_nothing_goes_unasked_and_nothing_unknown(lake: Command, pool: str) -> None:
    assert lake.run("repair", pool).status == INVALID_INPUT
    assert lake.run("repair", pool, "--transaction", "2").status == INVALID_INPUT
    assert lake.run("repair", pool, "--transaction", "9", "--yes").status == NOT_FOUND
    assert lake.run("repair", pool, "--object", "nothing", "--yes").status == NOT_FOUND
    assert [r["k"] for r in lake.scan(pool)] == [1, 2, 3]


def test_an_object_that_is_whole_is_named_and_taken_out_only_if_it_is_said_twice(
    lake: Command, pool: str
) -> None:
    sound = objects(lake)[1]
    whole = f"{sound}, in which no damage was seen"
    assert whole in lake("repair", pool, "--object", sound, "--dry-run").err
    refused = lake.run("repair", pool, "--object", sound, "--yes")
    assert refused.status == INVALID_INPUT
    assert f"to take out {whole}, whose records are lost then, add --whole" in refused.err
    assert [r["k"] for r in lake.scan(pool)] == [1, 2, 3]
    assert lake("repair", pool, "--object", sound, "--yes", "--whole").status == 0
    assert [r["k"] for r in lake.scan(pool)] == [1, 3]
