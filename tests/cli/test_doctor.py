"""`lake doctor`: what it prints, and its exit status."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command import Command


def test_a_lake_that_is_well_has_the_status_0(lake: Command) -> None:
    lake("create", "logs", "--key", "k")
    answer = lake("doctor")
    assert (answer.status, answer.out) == (0, "well: 1 pool\n")


def test_what_needs_attention_has_the_status_1_and_a_command(lake: Command) -> None:
    lake("create", "logs", "--key", "k", "--set", "compact.max_bytes=10MiB")
    lake.load_records("logs", [{"k": 1}])
    said = lake.answers(1, "doctor").out
    assert "attention: 1 pool: 1 attention" in said
    assert "lake show logs" in said


def test_what_is_damaged_has_the_status_2_and_names_the_pool(lake: Command) -> None:
    lake("create", "logs", "--key", "k")
    lake.load_records("logs", [{"k": 1}])
    (entry,) = (path for path in Path(lake.uri).rglob("*00001.txn") if "pools" not in path.parts)
    entry.write_bytes(b"garbage")
    lines = lake.answers(2, "doctor", "--json").records
    assert [(line["pool"], line["verdict"]) for line in lines] == [(None, "well"), ("logs", "ill")]
    (finding,) = lines[1]["findings"]
    assert (finding["kind"], finding["command"]) == ("unseen", "lake fsck logs")


def test_what_cannot_be_looked_at_has_the_status_of_its_error(lake: Command) -> None:
    assert "does not exist" in lake.fails(3, "doctor", "logs")


def test_a_process_that_may_only_read_says_what_it_did_not_try(
    lake: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake("create", "logs", "--key", "k")
    monkeypatch.setenv("LAKE_READ_ONLY", "1")
    answer = lake("doctor")
    assert "may only read here" in answer.out
    assert answer.out.endswith("well: 1 pool\n")
