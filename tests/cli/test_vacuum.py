"""lake vacuum, lake leases, --on-missing, as a user types them."""

from __future__ import annotations

import io

import pytest

from log_lake.console.progress import shown_deleting
from tests.support.command import INVALID_INPUT, NOT_FOUND, Command

VACUUMED = 10


@pytest.fixture
def compacted(lake: Command) -> Command:
    """A pool of two loads, in one object by now; nothing is kept."""
    lake("create", "p", "--key", "k", "--set", "history.keep=0s", "vacuum.grace=0s")
    for n in (1, 2):
        lake("load", "p", lake.file(f"{n}.ndjson", f'{{"k": {n}}}\n'))
    lake("compact", "p", "--strategy", "full")
    return lake


def test_a_vacuum_is_planned_and_then_done(compacted: Command) -> None:
    lake = compacted
    (planned,) = lake("vacuum", "p", "--dry-run", "--json").records
    assert (planned["objects"], planned["held"]) == (2, {})
    assert planned["size"] > 0
    (done,) = lake("vacuum", "p", "--plan", planned["plan"], "--json").records
    assert (done["objects"], done["size"]) == (2, planned["size"])
    assert lake.scan("p") == [{"k": 1}, {"k": 2}]


def test_a_revision_that_was_vacuumed_has_an_exit_status_of_its_own(compacted: Command) -> None:
    lake = compacted
    lake("vacuum", "p")
    assert "was vacuumed at" in lake.fails(VACUUMED, "scan", "p", "--at", "2")
    left = lake.run("scan", "p", "--at", "2", "--on-missing", "warn")
    assert (left.status, left.out) == (0, "")
    assert "left out 2 objects" in left.err
    assert lake("query", 'SELECT count(*) AS n FROM "p@2"', "--on-missing", "warn").records == [{"n": 0}]


def test_what_is_young_is_kept_and_said(compacted: Command) -> None:
    lake = compacted
    (planned,) = lake("vacuum", "p", "--grace", "1d", "--dry-run", "--json").records
    assert (planned["objects"], planned["held"]) == (0, {"grace": 2})
    (done,) = lake("vacuum", "p", "--grace", "1d", "--json").records
    assert done["objects"] == 0
    assert lake("leases", "--json").records == []


def test_a_plan_that_does_not_exist_is_said_so(compacted: Command) -> None:
    assert "has no plan 'x'" in compacted.fails(NOT_FOUND, "vacuum", "p", "--plan", "x")
    compacted.fails(INVALID_INPUT, "vacuum", "p", "--plan", "x", "--dry-run")


@pytest.mark.parametrize(
    "words", [("scan", "p"), ("query", "SELECT k FROM p ORDER BY k"), ("query", "SELECT k FROM 'p@main'")]
)
def test_a_read_with_a_lease_gives_the_same_and_leaves_none(
    compacted: Command, words: tuple[str, ...]
) -> None:
    lake = compacted
    expected = [{"k": 1}, {"k": 2}]
    if "@" in words[-1]:
        words = (words[0], words[1].replace("'", '"') + " ORDER BY k")
    assert lake(*words, "--lease", "--json").records == expected
    assert lake("leases", "--json").records == []


def test_a_read_with_a_lease_of_what_was_vacuumed_is_refused(compacted: Command) -> None:
    lake = compacted
    lake("vacuum", "p")
    assert "are vacuumed" in lake.fails(VACUUMED, "scan", "p", "--at", "2", "--lease")
    lake.fails(VACUUMED, "query", 'SELECT * FROM "p@2"', "--lease")
    assert lake("scan", "p", "--at", "2", "--lease", "--on-missing", "warn").out == ""
    assert lake("leases", "--json").records == []


def test_show_says_what_can_be_had_back_and_until_when(compacted: Command) -> None:
    lake = compacted
    (shown,) = lake("show", "p", "--json").records
    assert (shown["oldest"], shown["removed"]["objects"]) == (1, 2)
    assert shown["removed"]["size"] > 0
    assert shown["removed"]["until"] == shown["removed"]["last"]
    out = lake("show", "p").out
    assert "complete     since version 1\n" in out
    assert f"can come back until {shown['removed']['until']}\n" in out
    lake("vacuum", "p")
    (shown,) = lake("show", "p", "--json").records
    assert (shown["oldest"], shown["removed"]) == (
        3,
        {"objects": 0, "size": 0, "until": None, "last": None},
    )


def test_a_terminal_is_shown_the_bytes_and_objects_that_are_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with shown_deleting("vacuuming p", total=4_000_000) as progress:
        progress(1_000, 2_000_000)
        progress(2_000, 4_000_000)
    said = terminal.getvalue()
    assert "vacuuming p" in said
    assert "4.0/4.0 MB" in said
    assert "2,000 objects" in said
