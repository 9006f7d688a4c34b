"""`lake clone`, and where users see what a pool is a clone of and what it holds."""

from __future__ import annotations

from pathlib import Path

from tests.support.command import ALREADY_EXISTS, INVALID_INPUT, NOT_FOUND, Command


def load(lake: Command, pool: str, *keys: int) -> None:
    file = lake.file("in.ndjson", "".join(f'{{"k": {key}}}\n' for key in keys))
    lake("load", pool, file)


def keys(lake: Command, pool: str) -> list[int]:
    return [row["k"] for row in lake("scan", pool, "--json").records]


def test_a_clone_is_a_pool_of_its_own(lake: Command) -> None:
    lake("create", "p", "--key", "k")
    load(lake, "p", 1, 2)
    load(lake, "p", 3)
    said = lake("clone", "p", "test").err
    assert said.endswith("made the pool test, a clone of p@2: 3 records; no object was copied\n")
    (before,) = lake("clone", "p", "before", "--at", "1", "--json").records
    assert (before["pool"], before["version"], before["branch"]) == ("before", 1, "main")
    load(lake, "test", 4)
    assert [keys(lake, pool) for pool in ("p", "test", "before")] == [[1, 2, 3], [1, 2, 3, 4], [1, 2]]
    assert lake("verify", "p@1", "before").out.splitlines()[-1] == "equal: both hold the same records"
    assert lake("fsck").out == "no fault found\n" or not lake("fsck", "--json").records


def test_users_see_who_holds_what(lake: Command) -> None:
    lake("create", "p", "--key", "k")
    load(lake, "p", 1)
    lake("clone", "p", "test")
    assert "clone of     p@1\n" in lake("show", "test").out
    assert lake("show", "p", "--json").records[0]["clone_of"] is None
    shown = lake("query", 'SELECT name, clone_of FROM "lake:pools" ORDER BY name', "--json").records
    assert shown == [{"name": "p"}, {"name": "test", "clone_of": "p@1"}]
    (tag,) = lake("tags", "p", "--json").records
    assert (tag["name"][:6], tag["reason"]) == ("clone-", "clone test")
    assert "keeps what a clone of pool 'p' needs" in lake.fails(INVALID_INPUT, "tag", "p", "-d", tag["name"])


def test_dropping_either_harms_neither(lake: Command) -> None:
    lake("create", "p", "--key", "k")
    load(lake, "p", 1)
    lake("clone", "p", "test")
    assert "p is dropped; its objects stay for its clones: test\n" in lake("drop", "p", "--yes").err
    lake("vacuum", "--dropped", "--grace", "0s")
    assert keys(lake, "test") == [1]
    assert (
        lake("vacuum", "--dropped", "--grace", "0s", "--dry-run", "--json").records[0]["kept_by"] == "clone"
    )
    lake("restore", "p")
    assert "its objects stay" not in lake("drop", "test", "--yes").err
    lake("vacuum", "--dropped", "--grace", "0s")
    assert keys(lake, "p") == [1]
    assert lake("tags", "p", "--json").records == []


def test_another_lake_gets_copies(lake: Command, tmp_path: Path) -> None:
    lake("create", "p", "--key", "k")
    load(lake, "p", 1, 2)
    there = Command(str(tmp_path / "there"), tmp_path)
    there("init")
    said = lake("clone", "p", "copy", "--to", there.uri).err
    assert said.endswith(f"made the pool copy in {there.uri}: 2 records of p@1\n")
    assert keys(there, "copy") == [1, 2]
    assert lake("tags", "p", "--json").records == []
    (again,) = lake("clone", "p", "again", "--to", there.uri, "--json").records
    assert (again["pool"], again["lake"], again["version"]) == ("again", there.uri, 1)
    assert lake.fails(NOT_FOUND, "clone", "p", "q", "--to", str(tmp_path / "nowhere")).endswith("lake init")


def test_a_mistake_is_told_in_one_line(lake: Command) -> None:
    lake("create", "p", "--key", "k")
    assert "nothing to clone" in lake.fails(INVALID_INPUT, "clone", "p", "test")
    load(lake, "p", 1)
    assert "did you mean 'p'" in lake.fails(NOT_FOUND, "clone", "pp", "test")
    assert "exists already" in lake.fails(ALREADY_EXISTS, "clone", "p", "p")
    assert "version 7 does not exist" in lake.fails(NOT_FOUND, "clone", "p", "test", "--at", "7")
    assert lake("tags", "p", "--json").records == []


def test_who_drops_is_asked_with_the_names_of_the_clones(lake: Command) -> None:
    lake("create", "p", "--key", "k")
    load(lake, "p", 1)
    lake("clone", "p", "test")
    lake("clone", "p", "before")
    said = lake.fails(INVALID_INPUT, "drop", "p")
    assert "remove the pool p (1 record; its objects stay for its clones: before, test), add --yes" in said
