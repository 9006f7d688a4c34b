"""`LAKE_READ_ONLY=1`: the commands that need not change anything work, and nothing is changed by any."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from lake_core.errors import Denied
from log_lake.cli.command import Writes
from log_lake.cli.commands import COMMANDS
from log_lake.stores.read_only import VARIABLE
from tests.support.command import Command

READS: dict[str, list[list[str]]] = {
    "ls": [["ls"], ["ls", "--dropped"]],
    "show": [["show", "p"]],
    "export": [["export"]],
    "convert": [["convert", "FILE", "-o", "-", "--output-format", "csv"]],
    "scan": [["scan", "p"], ["scan", "p", "--lease"]],
    "get": [["get", "p", "1"]],
    "query": [
        ["query", "DELETE FROM p", "--dry-run"],
        ["query", 'SELECT * FROM "p"', "--lease"],
        ["query", 'SELECT * FROM "lake:pools"'],
        ["query", 'SELECT * FROM "lake:transactions"'],
    ],
    "explain": [["explain", "p", "1"]],
    "head": [["head", "p"]],
    "describe": [["describe", "p"]],
    "du": [["du"], ["du", "p"]],
    "shell": [["shell"]],
    "log": [["log", "p"]],
    "ranges": [["ranges", "p"]],
    "tags": [["tags"], ["tags", "p", "--cost"]],
    "inspect": [["inspect", "lake.json"]],
    "erasures": [["erasures"]],
    "verify-erasure": [["verify-erasure", "RECEIPT"]],
    "jobs": [["jobs"]],
    "leases": [["leases"], ["leases", "p"]],
    "doctor": [["doctor"]],
    "verify": [["verify", "p", "p"]],
    "coverage": [["coverage", "p"]],
    "fsck": [["fsck", "--data"]],
    "completion": [["completion", "bash"]],
    "load": [["load", "p", "FILE", "--dry-run"]],
    "apply": [["apply", "POLICY", "--dry-run"]],
    "tombstones": [["tombstones", "p", "--dry-run"], ["tombstones", "p", "--at-once", "--dry-run"]],
    "compact": [["compact", "p", "--dry-run"], ["compact", "p", "--strategy", "full", "--dry-run"]],
    "checkpoint": [["checkpoint", "p", "--dry-run"]],
    "purge": [["purge", "p", "--keep", "0s", "--dry-run"]],
    "expire": [["expire", "p", "--dry-run"]],
    "vacuum": [["vacuum", "p", "--dry-run", "--grace", "0s"], ["vacuum", "--dropped", "--dry-run"]],
    "erase": [["erase", "p", "--key", "1", "--dry-run"]],
    "repair": [["repair", "p", "--transaction", "NEWEST", "--dry-run"]],
    "rebuild": [["rebuild", "p", "--name", "q", "--dry-run"]],
    "branch": [["branch", "p"]],
    "parked": [["parked", "p"]],
    "offsets": [["offsets", "p"]],
    "publish": [["publish", "p", "--status"]],
    "transactions": [["transactions"]],
    "index": [["index", "ls"], ["index", "show", "p"]],
    "fields": [["fields", "p"]],
    "derive": [["derive"], ["derive", "--run", "--dry-run"]],
}
"""How each command is called where it changes nothing."""

SERVES = {"ui", "serve"}
"""Commands that run until they are stopped; they have tests of their own."""

CHANGES = [
    *(
        ["init"],
        ["upgrade"],
        ["create", "q", "--key", "k"],
        ["set", "p", "description=x"],
        ["drop", "p", "--yes"],
    ),
    *(
        ["load", "p", "FILE"],
        ["query", "DELETE FROM p"],
        ["delete", "p", "--all"],
        ["compact", "p", "--strategy", "full"],
    ),
    ["query", "DELETE FROM p"],
    *(["tag", "p", "t"], ["branch", "p", "b"], ["purge", "p", "--keep", "0s"], ["checkpoint", "p"]),
    *(["vacuum", "p", "--grace", "0s"], ["erase", "p", "--key", "1", "--yes"], ["rename", "p", "q"]),
    ["fields", "p", "rename", "v", "w"],
]


def test_every_command_that_can_only_read_is_tried() -> None:
    assert READS.keys() | SERVES == {
        command.name for command in COMMANDS.values() if command.writes is not Writes.ALWAYS
    }


@pytest.fixture
def kept(lake: Command, monkeypatch: pytest.MonkeyPatch) -> Command:
    """A lake with a pool of two loads, a delete, a dropped pool and an erasure; from now on it is only read."""
    lake.pool("p")
    lake.pool("gone")
    for n in (1, 2):
        lake.load_records("p", [{"k": n, "v": "x"}, {"k": n + 10, "v": "y"}])
    lake("delete", "p", "--where", "k = 11 and v = 'y'")
    lake("compact", "p", "--strategy", "full")
    lake("erase", "p", "--key", "12", "--yes", "--grace", "0s", "-o", lake.file("receipt.json", ""))
    lake("checkpoint", "p")
    for n in (3, 4):
        lake.load_records("p", [{"k": n, "v": "x"}, {"k": n + 10, "v": "y"}])
    lake("publish", "p")
    lake("set", "p", "expire.age=30d", "history.keep=60d")
    lake("drop", "gone", "--yes")
    monkeypatch.setenv(VARIABLE, "1")
    return lake


def files(lake: Command) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in Path(lake.uri).rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", READS)
def test_a_reading_command_works_and_changes_nothing(
    kept: Command, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("SELECT count(*) FROM p;"))  # for lake shell
    stands_for = {
        "FILE": kept.file("more.ndjson", '{"k": 5, "v": "z"}\n'),
        "RECEIPT": str(kept.folder / "receipt.json"),
        "NEWEST": next(str(t["version"]) for t in kept.history("p") if "add_object" in t["actions"]),
        "POLICY": kept.file("policy.yaml", "pools:\n  p:\n    key: k\n"),
    }
    before = files(kept)
    for words in READS[name]:
        done = kept.run(*(stands_for.get(word, word) for word in words))
        assert done.status == 0, (words, done.err)
        assert "Traceback" not in done.err
    assert files(kept) == before


@pytest.mark.parametrize("words", CHANGES, ids=" ".join)
def test_a_command_that_would_change_something_is_refused_in_one_line(
    kept: Command, words: list[str]
) -> None:
    file = kept.file("more.ndjson", '{"k": 5}\n')
    before = files(kept)
    done = kept.run(*(file if word == "FILE" else word for word in words))
    if words[0] not in ("init", "upgrade"):  # there is a lake, of the newest version
        assert done.status == Denied.exit_status, done.err
        assert "LAKE_READ_ONLY is set" in done.err
    assert len(done.err.splitlines()) <= 1
    assert files(kept) == before


def test_a_reader_says_with_v_that_it_has_no_lease(kept: Command) -> None:
    assert "goes on without a lease" in kept.run("scan", "p", "--lease", "-v").err
    assert "goes on without a lease" not in kept.run("scan", "p", "--lease").err


def test_another_word_for_read_only_is_refused(kept: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "perhaps")
    assert "LAKE_READ_ONLY=perhaps: use 1 or 0" in kept.fails(9, "ls")
    monkeypatch.setenv(VARIABLE, "0")
    kept("set", "p", "description=x")
