"""`lake index`, and what `lake scan --explain` says of indexes, as a user types them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command import INVALID_INPUT, NOT_FOUND, Command


@pytest.fixture
def pool(lake: Command) -> str:
    """A pool of three loads over the same keys and the same bounds of `who`."""
    lake.pool()
    for name in ("bob", "eve", "mia"):
        lake.load_records(
            "p", [{"k": 1, "who": "ada"}, {"k": 2, "who": name}, {"k": 3, "who": "zoe"}], f"{name}.ndjson"
        )
    return "p"


def shown(lake: Command) -> dict[str, object]:
    (row,) = lake("index", "show", "p", "--json").records
    return {name: row[name] for name in ("name", "index", "objects", "indexed", "missing", "unfit")}


def test_an_index_is_created_made_and_dropped(lake: Command, pool: str) -> None:
    said = lake("index", "create", pool, "who").err
    assert said == "index who of p: new objects get bloom(who); 3 objects without it: lake index make p\n"
    state = {"name": "who", "index": "bloom(who)", "objects": 3, "indexed": 0, "missing": 3, "unfit": 0}
    assert shown(lake) == state
    told = lake("scan", pool, "--where", "who = 'eve'", "--explain")
    assert "3 objects read, as the index is missing: lake index make p\n" in told.err
    assert lake("index", "make", pool).err.startswith("p: made the indexes of 3 objects, ")
    assert shown(lake) == state | {"indexed": 3, "missing": 0}
    assert lake("index", "make", pool, "--json").records == [{"pool": "p", "objects": 0, "size": 0}]
    told = lake("scan", pool, "--where", "who = 'eve'", "--explain")
    assert told.err == "left out: 0 objects by statistics, 2 by indexes\n"
    assert lake("scan", pool, "--where", "who = 'eve'", "--explain", "--json").records[-1] == {
        "left_out": {"statistics": 0, "index": 2, "cluster": 0},
        "not_used": {},
    }
    assert [row["who"] for row in lake("scan", pool, "--where", "who = 'eve'", "--json").records] == ["eve"]
    assert (
        lake("delete", pool, "--where", "who = 'kim'").err == "p: nothing to delete; nothing was committed\n"
    )
    assert lake("index", "ls", "--json").records == [
        {"pool": "p", "name": "who", "kind": "bloom", "field": "who"}
    ]
    assert lake("index", "drop", pool, "who").err == (
        "index who of p: dropped; the agent retention, or lake vacuum, deletes its objects\n"
    )
    assert lake("index", "ls").err == "no indexes\n"


def test_a_damaged_index_is_named_and_made_again(lake: Command, pool: str, tmp_path: Path) -> None:
    lake("index", "create", pool, "who")
    lake("index", "make", pool)
    first = min(one for one in tmp_path.rglob("*") if "/data/index/" in str(one))
    first.write_bytes(first.read_bytes()[:-1] + b"?")
    told = lake("scan", pool, "--where", "who = 'kim'", "--explain").err
    assert "1 object read, as the index is damaged, or of another object" in told
    assert "index_damaged" in lake("fsck", "p", "--older-than", "0s").out
    assert lake("index", "make", pool).err.startswith("p: made the indexes of 1 object, ")
    assert (
        "left out: 0 objects by statistics, 3 by indexes"
        in lake("scan", pool, "--where", "who = 'kim'", "--explain").err
    )


def test_the_figures_of_a_field(lake: Command, pool: str) -> None:
    lake("index", "create", pool, "k", "--kind", "sketch")
    lake("index", "make", pool)
    (figures,) = lake("index", "summary", pool, "k", "--json").records
    assert figures == {
        **{"field": "k", "version": 3, "records": 9, "nulls": 0, "low": "1", "high": "3"},
        **{"distinct": 3, "distinct_error": 0.0, "rank_error": 0.0, "sketches": 3, "read": {}},
        **{"q0.01": "1", "q0.05": "1", "q0.25": "1", "q0.5": "2", "q0.75": "3", "q0.95": "3", "q0.99": "3"},
    }
    lake("delete", pool, "--where", "who = 'bob'")
    told = lake("index", "summary", pool, "k")
    assert "distinct" in told.out
    assert told.err.startswith(
        "3 objects: 0 by their sketches, 3 read\n3 objects read, as a delete may hide "
    )
    said = lake("index", "summary", pool, "who", "--at", "1", "--json").records[0]
    assert (said["records"], said["distinct"], list(said["read"].values())) == (
        3,
        3,
        ["no rule makes sketches of the field"],
    )


def test_a_rule_of_values_names_row_groups(lake: Command, pool: str) -> None:
    lake("index", "create", pool, "who", "--kind", "values")
    lake("index", "make", pool)
    told = lake("scan", pool, "--where", "who = 'eve'", "--explain").err
    assert told == (
        "left out: 0 objects by statistics, 2 by indexes\nread: only 1 row group of 1 object, by indexes\n"
    )
    assert lake("scan", pool, "--where", "who = 'eve'", "--explain", "--json").records[-1]["only"] == {
        "row_groups": 1,
        "objects": 1,
    }


@pytest.mark.parametrize(
    ("words", "status", "text"),
    [
        (("create", "p"), INVALID_INPUT, "it takes POOL FIELD; got 1 name"),
        (("show",), INVALID_INPUT, "it takes POOL; got 0 names"),
        (("drop", "p", "what"), NOT_FOUND, "pool 'p' has no index 'what'"),
        (("create", "p", "k", "--name", "a.b"), INVALID_INPUT, "1 to 64 letters, digits"),
        (("ls", "--name", "x"), INVALID_INPUT, "--name belongs to create"),
        (("ls", "--at", "1"), INVALID_INPUT, "--at belongs to summary"),
        (("summary", "p", "what"), INVALID_INPUT, "field 'what' of pool 'p': it does not exist"),
    ],
)
def test_a_mistake_is_refused(
    lake: Command, pool: str, words: tuple[str, ...], status: int, text: str
) -> None:
    assert text in lake.fails(status, "index", *words)


def test_another_index_of_the_same_name_is_refused(lake: Command, pool: str) -> None:
    lake("index", "create", pool, "who")
    lake("index", "create", pool, "who")
    said = lake.fails(INVALID_INPUT, "index", "create", pool, "k", "--name", "who")
    assert "has an index 'who' of bloom(who)" in said
