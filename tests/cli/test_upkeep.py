"""`lake checkpoint` and `lake purge`, and what the other commands say of a history that was purged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.command import CORRUPT, INVALID_INPUT, NOT_FOUND, USAGE, Command


@pytest.fixture
def pool(three_loads: str) -> str:
    """A pool of three transactions."""
    return three_loads


def marks(lake: Command) -> list[Path]:
    return sorted(Path(lake.uri).glob("*/journal/marks/*"))


def entries(lake: Command) -> list[int]:
    return sorted(int(path.stem) for path in Path(lake.uri).glob("*/journal/*.txn"))


def answer(lake: Command, *words: str) -> dict[str, Any]:
    (found,) = lake(*words, "--json").records
    return found


# ---------------------------------------------------------------- lake checkpoint


def test_a_checkpoint_is_written_and_said(lake: Command, pool: str) -> None:
    assert answer(lake, "checkpoint", pool) == {"pool": "p", "checkpoint": 3, "written": True}
    assert answer(lake, "checkpoint", pool) == {"pool": "p", "checkpoint": 3, "written": False}
    assert len(marks(lake)) == 1
    assert [r["k"] for r in lake.scan(pool)] == [1, 2, 3]


def test_checkpoint_says_which_version_it_wrote_or_that_there_is_one_already(
    lake: Command, pool: str
) -> None:
    assert "wrote the checkpoint of version 3" in lake("checkpoint", pool).err
    assert "there is a checkpoint of version 3 already" in lake("checkpoint", pool).err


def test_an_empty_pool_has_nothing_to_keep(lake: Command) -> None:
    lake.pool("empty")
    assert answer(lake, "checkpoint", "empty") == {"pool": "empty", "checkpoint": None, "written": False}
    assert "is empty" in lake("checkpoint", "empty").err


def test_a_dry_run_says_whether_a_checkpoint_is_due_and_writes_none(lake: Command, pool: str) -> None:
    assert answer(lake, "checkpoint", pool, "--dry-run") == {"pool": "p", "due": None}
    assert "no checkpoint is due" in lake("checkpoint", pool, "--dry-run").err
    lake("set", pool, "checkpoint.entries=3")
    assert (
        answer(lake, "checkpoint", pool, "--dry-run")["due"] == "3 entries or more since the last checkpoint"
    )
    assert marks(lake) == []


def test_the_list_of_pools_is_kept_too(lake: Command, pool: str) -> None:
    assert answer(lake, "checkpoint", "lake:pools") == {
        "pool": "lake:pools",
        "checkpoint": 1,
        "written": True,
    }
    assert answer(lake, "purge", "lake:pools", "--keep", "0s")["fence"] == 1
    assert lake("ls").status == 0
    lake("create", "another", "--key", "k")
    assert lake.history(pool)[0]["version"] == 3


@pytest.mark.parametrize("command", ["checkpoint", "purge"])
def test_a_pool_that_does_not_exist_is_not_found(lake: Command, command: str) -> None:
    assert "'nothing'" in lake.fails(NOT_FOUND, command, "nothing")


# ---------------------------------------------------------------- lake purge


def test_a_purge_keeps_what_the_policy_keeps(lake: Command, pool: str) -> None:
    lake("checkpoint", pool)
    assert answer(lake, "purge", pool) == {"pool": "p", "fence": 0, "entries": 0, "checkpoints": 0}
    assert entries(lake) == [1, 2, 3]


def test_a_purge_deletes_what_it_is_told_to(lake: Command, pool: str) -> None:
    lake("checkpoint", pool)
    assert answer(lake, "purge", pool, "--keep", "0s") == {
        "pool": "p",
        "fence": 3,
        "entries": 3,
        "checkpoints": 0,
    }
    assert entries(lake) == []
    assert [r["k"] for r in lake.scan(pool)] == [1, 2, 3]
    assert lake.load_records(pool, [{"k": 4}], "4.ndjson")["version"] == 4


def test_purge_says_what_it_deleted_and_where_the_history_begins(lake: Command, pool: str) -> None:
    lake("checkpoint", pool)
    said = lake("purge", pool, "--keep", "0s").err
    assert "purged 3 entries and 0 checkpoints; the history begins after 3" in said


def test_a_dry_run_of_a_purge_says_how_much_would_go_and_deletes_nothing(lake: Command, pool: str) -> None:
    lake("checkpoint", pool)
    assert answer(lake, "purge", pool, "--dry-run", "--keep", "0s") == {"pool": "p", "fence": 3, "entries": 3}
    assert "would purge 3 entries, up to 3" in lake("purge", pool, "--dry-run", "--keep", "0s").err
    assert answer(lake, "purge", pool, "--dry-run")["entries"] == 0
    assert entries(lake) == [1, 2, 3]
    assert len(marks(lake)) == 1


def test_without_a_checkpoint_a_purge_deletes_nothing(lake: Command, pool: str) -> None:
    assert answer(lake, "purge", pool, "--keep", "0s")["entries"] == 0
    assert entries(lake) == [1, 2, 3]


@pytest.mark.parametrize("span", ["", "5", "soon", "-1s"])
def test_a_span_that_is_none_is_a_mistake_of_usage(lake: Command, pool: str, span: str) -> None:
    assert lake.run("purge", pool, f"--keep={span}").status == USAGE


# ---------------------------------------------------------------- a purged history


@pytest.fixture
def purged(lake: Command, pool: str) -> str:
    """The pool with a fence at 3 and one transaction after it."""
    lake("checkpoint", pool)
    lake.load_records(pool, [{"k": 4}], "4.ndjson")
    lake("purge", pool, "--keep", "0s")
    return pool


@pytest.mark.parametrize(
    "words", [("scan", "p", "--at", "2"), ("show", "p", "--at", "2"), ("get", "p", "1", "--at", "2")]
)
def test_a_revision_before_the_fence_is_one_clear_line(
    lake: Command, purged: str, words: tuple[str, ...]
) -> None:
    assert lake.fails(NOT_FOUND, *words) == "lake: version 2 is purged: the history begins after 3"


def test_a_time_before_the_fence_is_one_clear_line(lake: Command, purged: str) -> None:
    line = lake.fails(NOT_FOUND, "scan", purged, "--at", "main@2001-01-01")
    assert "(the history begins after 3: earlier versions are purged)" in line


def test_a_revision_from_the_fence_on_is_read(lake: Command, purged: str) -> None:
    assert len(lake.scan(purged, "--at", "3")) == 3
    assert len(lake.scan(purged, "--at", "4")) == 4


def test_the_log_of_a_purged_history_has_what_is_left(lake: Command, purged: str) -> None:
    assert [t["version"] for t in lake.history(purged)] == [4]


def test_a_token_is_answered_though_its_transaction_is_purged(lake: Command) -> None:
    lake.pool()
    file = lake.file("a.ndjson", [{"k": 1}])
    first = answer(lake, "load", "p", file, "--token", "t")
    lake("checkpoint", "p")
    lake("purge", "p", "--keep", "0s")
    again = answer(lake, "load", "p", file, "--token", "t")
    assert (again["version"], again["transaction_id"], again["records"]) == (
        first["version"],
        first["transaction_id"],
        1,
    )
    assert len(lake.scan("p")) == 1


def test_a_damaged_checkpoint_is_passed_over_and_made_again(lake: Command, pool: str) -> None:
    lake("checkpoint", pool)
    (mark,) = marks(lake)
    mark.write_bytes(mark.read_bytes()[:-50])
    assert len(lake.scan(pool)) == 3
    assert answer(lake, "purge", pool, "--keep", "0s")["entries"] == 0
    assert answer(lake, "checkpoint", pool)["written"] is True
    assert answer(lake, "purge", pool, "--keep", "0s")["entries"] == 3


def test_a_purged_history_whose_checkpoint_is_lost_is_one_clear_line(lake: Command, pool: str) -> None:
    lake("checkpoint", pool)
    lake("purge", pool, "--keep", "0s")
    next(m for m in marks(lake) if m.suffix == ".checkpoint").write_bytes(b"half")
    assert "no checkpoint from there on can be read" in lake.fails(CORRUPT, "scan", pool)
    file = lake.file("5.ndjson", [{"k": 5}])
    assert "no checkpoint from there on can be read" in lake.fails(CORRUPT, "load", pool, file)
    assert lake.run("set", pool, "checkpoint.age=never").status == INVALID_INPUT
