"""Empty names, names that look like options, texts that are too long, and lakes of format version 1."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.command import CORRUPT, INVALID_INPUT, Command


@pytest.mark.parametrize(
    "words",
    [
        ("branch", "p", "new", "--at", ""),
        ("tag", "p", "new", "--at", ""),
        ("merge", "p", "b", "--into", ""),
        ("scan", "p", "--at", ""),
        ("load", "p", "x.ndjson", "--branch", ""),
        ("revert", "p", ""),
    ],
)
def test_an_empty_name_is_refused(lake: Command, three_loads: str, words: tuple[str, ...]) -> None:
    lake("branch", three_loads, "b")
    assert "it is empty" in lake.fails(INVALID_INPUT, *words)


def test_a_name_that_begins_like_an_option_is_refused(lake: Command, three_loads: str) -> None:
    for words in (["branch", "p", "--", "-1"], ["tag", "p", "--", "-1"], ["rename", "p", "--", "-1"]):
        assert "takes it for an option" in lake.fails(INVALID_INPUT, *words)


def test_messages_and_reasons_have_a_limit(lake: Command, three_loads: str) -> None:
    file, longest = lake.file("more.ndjson", [{"k": 9}]), "x" * 8192
    lake("load", "p", file, "--message", longest)
    for words in (
        ["load", "p", file, "--message", longest + "x"],
        ["delete", "p", "--key", "9", "--reason", longest + "x"],
        ["tag", "p", "t", "--reason", longest + "x"],
    ):
        assert "8,193 bytes; at most 8,192" in lake.fails(INVALID_INPUT, *words)


def test_a_pool_that_is_named_twice_is_looked_at_once(lake: Command, three_loads: str) -> None:
    assert lake("fsck", "p", "p").err == lake("fsck", "p").err


def test_the_prefix_of_an_error_is_there_once(lake: Command, three_loads: str) -> None:
    assert lake.fails(INVALID_INPUT, "tag", "p").startswith("lake: tag: ")


def test_leases_and_plans_that_cannot_be_read_are_leftovers(lake: Command, three_loads: str) -> None:
    folder = Path(lake("show", "p", "--json").records[0]["id"])
    for name in ("leases/" + "a" * 27 + ".lease", "plans/" + "a" * 27 + ".json"):
        path = Path(lake.uri) / folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b'{"id"')
    assert [f["kind"] for f in lake("fsck", "p", "--json").records] == ["lease_unreadable", "plan_unreadable"]


def test_a_damaged_checkpoint_of_a_tag_is_named(lake: Command, three_loads: str) -> None:
    lake("tag", "p", "t")
    lake.load_records("p", [{"k": 8}])
    (mark,) = Path(lake.uri).glob("*/journal/marks/*.checkpoint")
    lake("checkpoint", "p")
    lake("purge", "p", "--keep", "0s")
    mark.chmod(0o644)
    mark.write_bytes(mark.read_bytes()[:-40])
    found = lake.run("fsck", "p", "--json")
    assert found.status == CORRUPT
    assert [(f["kind"], f["where"]) for f in found.records if f["severity"] == "damage"] == [
        ("checkpoint_damaged", str(mark.relative_to(lake.uri)))
    ]


def test_a_lake_of_version_1_refuses_before_it_writes(lake: Command, three_loads: str) -> None:
    head = Path(lake.uri, "lake.json")
    head.chmod(0o644)
    head.write_text(json.dumps(json.loads(head.read_text()) | {"version": 1}))
    before = sorted(map(str, Path(lake.uri).rglob("*.*")))
    for words in (["revert", "p", "1"], ["tag", "p", "t"], ["vacuum", "p", "--dry-run", "--grace", "0s"]):
        assert "run lake upgrade" in lake.fails(INVALID_INPUT, *words)
    assert [name for name in map(str, Path(lake.uri).rglob("*.*")) if name not in before] == []
