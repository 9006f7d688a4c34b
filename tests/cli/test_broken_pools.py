"""Commands about the whole lake when one pool is damaged, or when its drop was interrupted."""

from __future__ import annotations

from pathlib import Path

import pytest

from log_lake.lake import Lake
from tests.support.command import CORRUPT, NOT_FOUND, Command

INCOMPLETE = 11


@pytest.fixture
def pools(lake: Command) -> Command:
    """Three pools: `a` is sound, the journal of `b` is damaged, the drop of `c` was interrupted."""
    for name in "abc":
        lake.pool(name)
        lake.load_records(name, [{"k": 1}])
        lake("tag", name, "t")
    opened = Lake.open(lake.uri)
    entry = Path(lake.uri, opened.pool("b").config.id, "journal", f"{2:020d}.txn")
    entry.chmod(0o644)
    entry.write_bytes(b"")
    opened.pool("c").close()
    return lake


def test_ls_shows_the_other_pools_and_the_errors(pools: Command) -> None:
    listed = pools.run("ls", "--json")
    assert listed.status == CORRUPT
    assert [(r["pool"], r["records"], bool(r["error"])) for r in listed.records] == [
        ("a", 1, False),
        ("b", None, True),
        ("c", None, True),
    ]
    assert "2 pools cannot be read; pool 'b': " in listed.err
    assert "pool 'c' was dropped by" in listed.records[2]["error"]
    lines = pools.run("ls").out.splitlines()
    assert lines[0].split()[-1] == "error"
    assert "pool 'c' was dropped by" in lines[3]


def test_tags_shows_those_of_the_other_pools(pools: Command) -> None:
    listed = pools.run("tags", "--json")
    assert (listed.status, [r["pool"] for r in listed.records]) == (CORRUPT, ["a"])
    assert pools.run("tags", "a").status == 0


def test_a_tag_is_deleted_from_the_pools_that_can_be_read(pools: Command) -> None:
    deleted = pools.run("tag", "--all", "-d", "t", "--json")
    assert (deleted.status, list(deleted.records[0]["pools"])) == (INCOMPLETE, ["a"])
    assert "2 pools may keep the tag 't'" in deleted.err
    assert "pool 'c' was dropped by" in deleted.records[0]["failures"]["c"]
    assert pools.run("tags", "a", "--json").records == []
    pools("drop", "c", "--yes")
    assert "1 pool may keep the tag 't'" in pools.fails(INCOMPLETE, "tag", "--all", "-d", "t")


def test_a_pool_whose_drop_was_interrupted_can_only_be_dropped(pools: Command) -> None:
    for words in (["rename", "c", "d"], ["set", "c", "description=x"], ["tags", "c"], ["scan", "c"]):
        assert "the pool 'c' was dropped by" in pools.fails(NOT_FOUND, *words)
    assert pools.run("fsck", "c").out.endswith("lake drop c --yes; or take the pool back: lake restore c\n")
    pools("drop", "c", "--yes")
    pools("rename", "b", "d")
    assert [r["pool"] for r in pools.run("ls", "--json").records] == ["a", "d"]
