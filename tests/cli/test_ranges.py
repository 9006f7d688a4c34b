"""`lake split`, `lake unsplit`, `lake ranges` and the table POOL:ranges, as a user types them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import INVALID_INPUT, NOT_FOUND, USAGE, Command


def bounds(lake: Command, pool: str = "p", *words: str) -> list[tuple[Any, Any]]:
    return [(row["low"], row["high"]) for row in lake("ranges", pool, *words, "--json").records]


@pytest.fixture
def pool(lake: Command) -> str:
    """A pool of three loads over the same keys, 0 to 99."""
    lake.pool()
    for n in range(3):
        lake.load_records("p", [{"k": k, "n": n} for k in range(100)], f"{n}.ndjson")
    return "p"


def test_a_pool_without_split_points_is_one_range(lake: Command, pool: str) -> None:
    (row,) = lake("ranges", pool, "--json").records
    assert row.pop("size") == lake("show", pool, "--json").records[0]["size"]
    assert row == {
        "low": None,
        "high": None,
        "records": 300,
        "objects": 3,
        "straddling": 0,
        "depth": 3,
        "runs": 3,
        "compacted": None,
    }


def test_a_pool_is_split_at_keys_and_joined_again(lake: Command, pool: str) -> None:
    before = lake.scan(pool)
    done = lake("split", pool, "--at", "50", "--at", "20", "--json").records[0]
    assert (done["version"], done["points"], done["ranges"]) == (4, 2, 3)
    assert bounds(lake) == [(None, 20), (20, 50), (50, None)]
    again = lake("split", pool, "--at", "20", "--json").records[0]
    assert (again["version"], again["transaction_id"], again["points"], again["ranges"]) == (None, None, 0, 3)
    assert lake("split", pool, "--at", "20").err == "p: nothing to do: the pool has these already; 3 ranges\n"
    assert lake.scan(pool) == before
    said = lake("unsplit", pool, "--at", "20", "--at", "21").err
    assert said.startswith("p: removed 1 split point; 2 ranges now; version 5, transaction ")
    assert bounds(lake) == [(None, 50), (50, None)]
    assert bounds(lake, "p", "--at", "4") == [(None, 20), (20, 50), (50, None)]
    assert lake("unsplit", pool, "--json").records[0]["ranges"] == 1
    assert lake("unsplit", pool).err == "p: nothing to do: the pool has no split points; 1 range\n"
    assert [(one["version"], one["branch"], one["actions"]) for one in lake.history(pool)[:3]] == [
        (6, "", {"join": 1}),
        (5, "", {"join": 1}),
        (4, "", {"split": 1}),
    ]


def test_a_pool_is_split_into_ranges_of_equal_bytes_by_samples(lake: Command, pool: str) -> None:
    assert lake("split", pool, "--into", "4", "--json").records[0]["points"] == 3
    (_, low), *inner, (high, _) = bounds(lake)
    assert [low, *(end for _, end in inner), high][:-1] == pytest.approx([25, 50, 75], abs=4)
    assert lake("split", pool, "--into", "4", "--json").records[0]["version"] is None
    refused = lake.fails(INVALID_INPUT, "split", pool, "--into", "7")
    assert "pool 'p' has 3 split points already: remove them first (lake unsplit POOL), or name" in refused


def test_compaction_cuts_its_outputs_at_the_points(lake: Command, pool: str) -> None:
    before = lake.scan(pool)
    lake("split", pool, "--at", "10", "--at", "90")
    assert [row["straddling"] for row in lake("ranges", pool, "--json").records] == [3, 3, 3]
    lake("compact", pool, "--strategy", "full")
    rows = lake("ranges", pool, "--json").records
    assert [(row["records"], row["objects"], row["straddling"], row["depth"]) for row in rows] == [
        (30, 1, 0, 1),
        (240, 1, 0, 1),
        (30, 1, 0, 1),
    ]
    assert all(row["compacted"].endswith("Z") for row in rows)
    assert lake.scan(pool) == before


def test_the_ranges_are_a_table(lake: Command, pool: str) -> None:
    lake("split", pool, "--at", "10")
    found = lake("query", 'select low, high, straddling, depth, compacted from "p:ranges"', "--json").records
    assert found == [
        {"high": "10", "straddling": 3, "depth": 3},
        {"low": "10", "straddling": 3, "depth": 3},
    ]
    counted = lake("query", 'select count(*) as n from "p@3:ranges"', "--json").records
    assert counted == [{"n": 1}], "version 3 had no split point"


@pytest.mark.parametrize(
    ("key", "records", "at", "expected"),
    [
        ("k", [{"k": "b"}, {"k": "c"}], ["1.10", "x"], ["1.10", "x"]),
        ("k:desc", [{"k": 1}, {"k": 9}], ["2", "5"], [5, 2]),
        ("a,b:desc", [{"a": 1, "b": "x"}], ['[1, "y"]', '[1, "a"]', "2"], [[1, "y"], [1, "a"], 2]),
        ("u.id", [{"u": {"id": 3}}], ["2.5"], [2.5]),
        ("t", [{"t": "2026-01-31T00:00:00Z"}], ["2026-02-01"], ["2026-02-01T00:00:00Z"]),
    ],
)
def test_points_are_values_of_the_key(
    lake: Command, key: str, records: list[Any], at: list[str], expected: list[Any]
) -> None:
    settings = ["--set", "type.t=timestamp"] if key == "t" else []
    lake("create", "p", "--key", key, *settings)
    lake.load_records("p", records, "in.ndjson")
    lake("split", "p", *(word for text in at for word in ("--at", text)))
    assert [high for _, high in bounds(lake)][:-1] == expected
    lake("unsplit", "p", *(word for text in at for word in ("--at", text)))
    assert bounds(lake) == [(None, None)]


def test_an_empty_pool_is_split_at_keys_of_a_declared_type(lake: Command) -> None:
    lake("create", "p", "--key", "k")
    said = lake.fails(INVALID_INPUT, "split", "p", "--at", "5")
    assert "no record tells the type of the key field 'k' yet" in said
    assert "lake set POOL type.k=TYPE" in said
    assert "has no records whose keys could be divided" in lake.fails(
        INVALID_INPUT, "split", "p", "--into", "4"
    )
    lake("set", "p", "type.k=bigint")
    lake("split", "p", "--at", "5")
    lake.load_records("p", [{"k": k} for k in range(10)], "in.ndjson")
    assert bounds(lake) == [(None, 5), (5, None)]


def test_a_pool_is_split_by_a_sample_of_files(lake: Command) -> None:
    lake("create", "p", "--key", "a,t:desc", "--set", "type.a=string", "--set", "type.t=timestamp")
    records = [{"a": f"x{n % 50:02}", "t": f"2026-01-01T00:00:{n % 60:02}Z"} for n in range(300)]
    file = lake.file("sample.ndjson", "".join(f"{json.dumps(one)}\n" for one in records))
    assert lake("split", "p", "--into", "3", "--sample", file, "--json").records[0]["points"] == 2
    (_, first), (_, second), _ = bounds(lake)
    assert [first[0], second[0]] == ["x17", "x33"]
    assert '["x17", "2026-01-01T00:00:' in lake("ranges", "p").out
    assert lake("show", "p", "--json").records[0]["records"] == 0
    assert "say into how many ranges with --into N" in lake.fails(
        INVALID_INPUT, "split", "p", "--sample", file
    )
    lake("create", "q", "--key", "a", "--set", "type.a=bigint")
    said = lake.fails(INVALID_INPUT, "split", "q", "--into", "3", "--sample", file)
    assert "a" in said


def test_what_cannot_be_split(lake: Command, pool: str) -> None:
    assert "the field is a number, and this is not a number" in lake.fails(
        INVALID_INPUT, "split", pool, "--at", "x"
    )
    assert "a pool is split into 2 to 100,001 ranges" in lake.fails(
        INVALID_INPUT, "split", pool, "--into", "1"
    )
    assert "split: name the keys to split at, or into how many ranges" in lake.fails(
        INVALID_INPUT, "split", pool
    )
    lake.fails(USAGE, "split", pool, "--into", "2", "--at", "3")
    lake.fails(NOT_FOUND, "split", "other", "--into", "2")
    assert "--at '': it is empty; name a key" in lake.fails(INVALID_INPUT, "split", pool, "--at", "")
    sub_pool = lake.fails(INVALID_INPUT, "split", "p.$nokey", "--into", "2")
    assert (
        "the sub-pool $nokey keeps the order of arrival and has no ranges: split the pool itself" in sub_pool
    )


def test_a_lake_of_version_2_is_split_after_an_upgrade(lake: Command, pool: str) -> None:
    head = Path(lake.uri) / "lake.json"
    head.write_text(head.read_text().replace('"version": 3', '"version": 2'))
    said = lake.fails(INVALID_INPUT, "split", pool, "--at", "5")
    assert "this lake has format version 2, which has no split points: run lake upgrade" in said
    lake("upgrade")
    lake("split", pool, "--at", "5")
    assert bounds(lake) == [(None, 5), (5, None)]
