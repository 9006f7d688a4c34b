"""`lake fsck`: one line a finding, JSON for programs, an exit status for scripts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command import CORRUPT, INVALID_INPUT, NOT_FOUND, Command

UNAVAILABLE = 7


@pytest.fixture
def pool(three_loads: str) -> str:
    """A pool of three transactions, each of one record."""
    return three_loads


def first_object(lake: Command) -> Path:
    return min(Path(lake.uri).glob("*/data/*.parquet"))


def test_a_sound_lake_has_status_0_and_says_what_was_looked_at(lake: Command, pool: str) -> None:
    done = lake("fsck", "--data")
    assert done.out == ""
    assert (
        "looked at 4 entries, 0 checkpoints and all data of 3 objects in 1 pool; no damage, 0 leftovers"
        in done.err
    )
    assert "the footers of 3 objects" in lake("fsck", pool).err


def test_damage_has_the_status_of_damage_and_a_line_that_says_what_to_do(lake: Command, pool: str) -> None:
    gone = first_object(lake)
    gone.unlink()
    failed = lake.run("fsck", pool)
    assert failed.status == CORRUPT
    (line,) = failed.out.splitlines()
    assert line.startswith(f"damage: object_missing: {gone.relative_to(lake.uri)}: 1 record cannot be read")
    assert line.endswith(f"lake repair p --object {gone.stem}")
    assert "1 finding of damage, 0 leftovers" in failed.err
    lake("repair", pool, "--object", gone.stem, "--yes")
    assert lake("fsck", pool).out == ""


def test_an_object_that_the_store_does_not_give_has_the_status_of_a_store_that_does_not_answer(
    lake: Command, pool: str
) -> None:
    """A folder stands where the object's file was, so each read of it fails."""
    refused = first_object(lake)
    whole = refused.read_bytes()
    refused.unlink()
    refused.mkdir()
    failed = lake.run("fsck")
    assert failed.status == UNAVAILABLE
    (line,) = failed.out.splitlines()
    assert line.startswith(f"unseen: object_unreadable: {refused.relative_to(lake.uri)}: ")
    assert "no damage seen, 0 leftovers, 1 not given by the store; looked at 4 entries" in failed.err
    assert "footers of 3 objects in 1 pool; run it again" in failed.err
    message = lake.fails(INVALID_INPUT, "repair", pool, "--object", refused.stem, "--yes")
    assert "add --whole" in message
    refused.rmdir()
    refused.write_bytes(whole)
    lake("fsck")


def test_leftovers_alone_have_status_0(lake: Command, pool: str) -> None:
    (Path(lake.uri) / "notes.txt").write_text("mine")
    done = lake("fsck")
    assert done.out.startswith("leftover: object_unknown: notes.txt: ")
    assert "no damage, 1 leftover" in done.err


def test_programs_get_every_finding_as_json(lake: Command, pool: str) -> None:
    for n in range(30):
        (Path(lake.uri) / f"notes{n}.txt").write_text("mine")
    found = lake("fsck", "--json").records
    assert len(found) == 30
    assert set(found[0]) == {"kind", "severity", "pool", "where", "what", "do"}
    people = lake("fsck").out.splitlines()
    assert len(people) == 21
    assert people[-1] == "object_unknown: 10 more; --json prints all"


def test_the_age_of_an_unused_object_is_an_option(lake: Command, pool: str) -> None:
    lake("compact", pool, "--strategy", "full")
    lake("checkpoint", pool)
    lake("purge", pool, "--keep", "0s")
    assert lake("fsck").out == ""
    kinds = [f["kind"] for f in lake("fsck", "--older-than", "0s", "--json").records]
    assert kinds == ["object_unreferenced"] * 3


def test_an_unknown_pool_is_not_found(lake: Command, pool: str) -> None:
    assert lake.run("fsck", "nobody").status == NOT_FOUND
