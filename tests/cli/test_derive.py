"""`lake derive`: makes pools that hold the answer of a query, keeps them, and says how they stand."""

from __future__ import annotations

from tests.support.command import INVALID_INPUT, NOT_FOUND, Command

HOURS = "SELECT k // 10 AS ten, count(*) AS n FROM p GROUP BY ten"


def made(lake: Command) -> None:
    lake.pool("p")
    lake.load_records("p", [{"k": key} for key in range(25)])
    lake("derive", "tens", "--from", "p", "--query", HOURS)


def test_a_derived_pool_is_made_kept_and_listed(lake: Command) -> None:
    made(lake)
    assert lake("scan", "tens", "--json").records[-1] == {"ten": 2, "n": 5}
    lake.load_records("p", [{"k": 25}, {"k": 31}])
    (row,) = lake("derive", "--json").records
    assert (row["pool"], row["source"], row["version"], row["behind"]) == ("tens", "p", 1, 1)
    assert "derived      from p: as of its version 1, 1 change behind\n" in lake("show", "tens").out
    assert lake("derive", "tens", "--dry-run").err == "tens: would compute 2 groups anew, p@1 to 2\n"
    assert lake("derive", "--run").err == "tens: version 2 has 2 groups anew, 2 records, p@1 to 2\n"
    assert lake("derive", "--run", "tens").err == "tens: up to date\n"
    assert lake("scan", "tens", "--json").records[-2:] == [{"ten": 2, "n": 6}, {"ten": 3, "n": 1}]
    assert lake("show", "tens", "--json").records[0]["derived"]["behind"] == 0
    assert lake("show", "p", "--json").records[0]["derived"] is None


def test_what_is_asked_amiss_is_answered_in_a_line(lake: Command) -> None:
    made(lake)
    assert "give the name of the new pool" in lake.fails(INVALID_INPUT, "derive", "x", "--from", "p")
    assert "--key and --set are of a new pool" in lake.fails(INVALID_INPUT, "derive", "tens", "--key", "n")
    assert "'p' is not derived" in lake.fails(INVALID_INPUT, "derive", "p", "--run")
    said = lake.fails(INVALID_INPUT, "derive", "x", "--from", "p", "--query", "SELECT k FROM p LIMIT 1")
    assert said == (
        "lake: derive: the query cannot be kept: LIMIT: which records it leaves depends on all others; leave it out"
    )
    assert "'tens' is derived from another one" in lake.fails(INVALID_INPUT, "delete", "tens", "--all")


def test_a_pool_that_cannot_be_kept_hinders_no_other(lake: Command) -> None:
    made(lake)
    lake.pool("q")
    lake.load_records("q", [{"k": 1}])
    lake("derive", "ones", "--from", "q", "--query", "SELECT k FROM q")
    lake("drop", "p", "--yes")
    lake.load_records("q", [{"k": 2}])
    said = lake.fails(11, "derive", "--run", "--json")
    assert "1 derived pool not kept: tens: pool 'tens' is not kept: its source 'p' is dropped" in said
    assert len(lake("scan", "ones", "--json").records) == 2
    assert "its source 'p' is dropped" in lake.fails(NOT_FOUND, "derive", "tens", "--run")


def test_a_dry_run_of_a_new_pool_makes_nothing(lake: Command) -> None:
    made(lake)
    said = lake("derive", "x", "--from", "p", "--query", "SELECT k FROM p", "--dry-run").err
    assert said == "x: would be derived from p@1, sorted by k\n"
    assert {row["pool"] for row in lake("ls", "--json").records} == {"p", "tens"}
