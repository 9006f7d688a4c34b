"""`lake branch`, `merge`, `revert`, `undo`, `tag`, `tags`, `upgrade`, and `--meta`, as a user types them."""

from __future__ import annotations

from pathlib import Path

from tests.support.command import ALREADY_EXISTS, CONFLICT, INVALID_INPUT, NOT_FOUND, Command


def keys(lake: Command, *at: str) -> list[int]:
    return [row["k"] for row in lake("scan", "p", *at, "--json").records]


def load(lake: Command, *keys: int, branch: str = "main") -> None:
    file = lake.file("in.ndjson", "".join(f'{{"k": {key}}}\n' for key in keys))
    lake("load", "p", file, "--branch", branch)


def test_write_audit_publish(lake: Command) -> None:
    lake("create", "p", "--key", "k")
    load(lake, 1)
    assert "created branch audit on main at version 1; version 2" in lake("branch", "p", "audit").err
    load(lake, 2, 2, branch="audit")
    found = lake("query", 'select count(*) as n from "p@audit"', "--json").records
    assert found == [{"n": 3}]
    assert keys(lake) == [1]
    assert "merged 1 write of audit into main; version 4" in lake("merge", "p", "audit").err
    assert keys(lake) == [1, 2, 2]
    assert "nothing new for main" in lake("merge", "p", "audit").err
    assert lake("merge", "p", "audit", "--json").records[0]["version"] is None
    lake("revert", "p", "4")
    assert keys(lake) == [1]
    assert "deleted branch audit" in lake("branch", "p", "-d", "audit").err
    assert [row["name"] for row in lake("branch", "p", "--json").records] == ["main"]
    assert lake("tags", "p", "--json").records[0]["name"] == "audit@5"
    lake("branch", "p", "audit", "--at", "audit@5")
    assert "merged 1 write" in lake("merge", "p", "audit", "--into", "main").err
    assert keys(lake) == [1, 2, 2]


def test_a_checkpoint_shows_branches_and_tags(lake: Command) -> None:
    lake("create", "p", "--key", "k")
    load(lake, 1)
    lake("branch", "p", "dev")
    lake("tag", "p", "t")
    lake("checkpoint", "p")
    names = sorted(Path(lake.uri).glob("*/journal/marks/*.checkpoint"))
    shown = lake("inspect", str(names[-1].relative_to(lake.uri)), "--json").records[0]
    assert shown["fork"]["dev"] == {"parent": "main", "at": 1, "created": 2}
    assert (shown["tag"]["t"]["n"], shown["tag"]["t"]["branch"]) == (2, "main")


def test_branches_are_refused_in_one_line(lake: Command) -> None:
    lake("create", "p", "--key", "k")
    assert "only digits are a version" in lake.fails(INVALID_INPUT, "branch", "p", "17")
    assert "name the branch to create" in lake.fails(INVALID_INPUT, "branch", "p", "--at", "1")
    assert "takes no second name" in lake.fails(INVALID_INPUT, "branch", "p", "a", "-d", "b")
    assert "exists already" in lake.fails(ALREADY_EXISTS, "branch", "p", "main")
    assert "'x' does not exist" in lake.fails(NOT_FOUND, "merge", "p", "x")
    assert "was not created from" in lake.fails(INVALID_INPUT, "merge", "p", "main")


def test_revert_and_undo(lake: Command) -> None:
    lake("create", "p", "--key", "k", "--kind", "upsert")
    load(lake, 1)
    load(lake, 1)
    lake("compact", "p", "--strategy", "full")
    assert "version 3; revert version 3 first" in lake.fails(CONFLICT, "revert", "p", "2")
    assert "no maintenance" in lake.fails(INVALID_INPUT, "undo", "p", "1")
    said = lake("undo", "p", "3").err
    assert "took back version 3: 1 object went, 2 objects came back; version 4" in said
    assert lake("revert", "p", "2", "--json").records[0]["removed"] == 1


def test_tags(lake: Command) -> None:
    lake("create", "p", "--key", "k")
    load(lake, 1)
    assert (
        "tag t names version 1 of main" in lake("tag", "p", "t", "--reason", "audit", "--expires", "30d").err
    )
    load(lake, 2)
    lake("purge", "p", "--keep", "0s")
    assert keys(lake, "--at", "t") == [1]
    (row,) = lake("tags", "--cost", "--json").records
    assert (row["pool"], row["name"], row["reason"], row["expired"], row["cost"]) == (
        "p",
        "t",
        "audit",
        False,
        0,
    )
    (named,) = lake("query", 'select name, version from "p:tags"', "--json").records
    assert named == {"name": "t", "version": 1}
    assert "delete it first" in lake.fails(ALREADY_EXISTS, "tag", "p", "t")
    assert "has passed" in lake.fails(INVALID_INPUT, "tag", "p", "u", "--expires", "2020-01-01")
    assert "not ISO 8601" in lake.fails(INVALID_INPUT, "tag", "p", "u", "--expires", "soon")
    assert "name the tag" in lake.fails(INVALID_INPUT, "tag", "p")
    assert "deleted tag t" in lake("tag", "p", "-d", "t").err
    assert "no tags" in lake("tags").err


def test_a_tag_on_every_pool(lake: Command) -> None:
    for name in ("p", "q", "empty"):
        lake("create", name, "--key", "k")
    load(lake, 1)
    lake("load", "q", lake.file("in.ndjson", '{"k": 7}\n'))
    said = lake("tag", "--all", "close", "--reason", "audit", "--expires", "30d").err
    assert "p: tag close names version 1\nq: tag close names version 1" in said
    assert "empty: has no transaction yet" in said
    load(lake, 2)
    sql = 'select count(*) as n from "p@close", "q@close"'
    assert lake("query", sql, "--json").records == [{"n": 1}]
    assert "pools p, q have a tag" in lake.fails(ALREADY_EXISTS, "tag", "--all", "close")
    deleted = lake("tag", "--all", "-d", "close", "--json").records[0]
    assert (sorted(deleted["pools"]), deleted["pools"]["p"]["tagged"]) == (["p", "q"], 1)
    lake.fails(NOT_FOUND, "tag", "--all", "-d", "close")
    for wrong in (["--all"], ["--all", "p", "close"], ["--all", "close", "--at", "1"], [], ["p"]):
        lake.fails(INVALID_INPUT, "tag", *wrong)


def test_metadata_is_kept_with_the_transactions(lake: Command) -> None:
    lake("create", "p", "--key", "k")
    file = lake.file("in.ndjson", '{"k": 1}\n')
    lake("load", "p", file, "--meta", "team=logs", "--meta", "why=a=b")
    lake("delete", "p", "--key", "1", "--meta", "team=other")
    newest, first = lake("log", "p", "--json").records
    assert (newest["metadata"], first["metadata"]) == (
        {"removed": "1", "team": "other"},
        {"team": "logs", "why": "a=b"},
    )
    assert "team=logs why=a=b" in lake("log", "p").out
    found = lake(
        "query", "select version from \"p:log\" where metadata ->> 'team' = 'logs'", "--json"
    ).records
    assert found == [{"version": 1}]
    for wrong in (["--meta", "x"], ["--meta", "=x"], ["--meta", "a=1", "--meta", "a=2"]):
        assert "write NAME=TEXT" in lake.fails(INVALID_INPUT, "load", "p", file, *wrong)


def test_an_old_lake_is_upgraded(lake: Command) -> None:
    lake("create", "p", "--key", "k")
    head = Path(lake.uri) / "lake.json"
    head.write_text(head.read_text().replace('"version": 3', '"version": 1'))
    load(lake, 1)
    assert "run lake upgrade" in lake.fails(INVALID_INPUT, "branch", "p", "dev")
    assert "has format version 3 now; it had 1" in lake("upgrade").err
    assert "has format version 3 already" in lake("upgrade").err
    assert lake("upgrade", "--json").records[0]["after"] == 3
    lake("branch", "p", "dev")
    assert keys(lake, "--at", "dev") == [1]
