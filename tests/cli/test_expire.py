"""`lake expire`: what it removes, what it says of it, and what it refuses."""

from __future__ import annotations

import pytest

from tests.support.command import INVALID_INPUT, NOT_FOUND, Command


@pytest.fixture
def pool(three_loads: str) -> str:
    """A pool of three loads, of which the newest two hold enough."""
    return three_loads


def test_a_pool_without_a_policy_is_refused(lake: Command, pool: str) -> None:
    said = lake.fails(INVALID_INPUT, "expire", pool)
    assert "has no policy: set expire.age, expire.records or expire.bytes" in said
    lake.fails(NOT_FOUND, "expire", "nobody")
    lake("set", pool, "expire.records=1")
    lake.fails(NOT_FOUND, "expire", pool, "--branch", "nobody")


def test_a_dry_run_says_what_would_go_and_why_and_the_run_removes_it(lake: Command, pool: str) -> None:
    lake("set", pool, "expire.records=1")
    assert (
        "p: remove 2 whole objects (2 by expire.records): 2 records, "
        in lake("expire", pool, "--dry-run").err
    )
    (planned,) = lake("expire", pool, "--dry-run", "--json").records
    assert (planned["objects"], planned["records"], planned["why"]) == (2, 2, {"expire.records": 2})
    assert (planned["where"], planned["stays"], len(planned["removed"])) == (None, {}, 2)
    assert len(lake.scan(pool)) == 3
    assert (
        "p: version 4 removed 2 whole objects, 2 records, " in lake("expire", pool, "--meta", "why=test").err
    )
    assert len(lake.scan(pool)) == 1
    (entry, *_) = lake("log", pool, "--json").records
    assert entry["message"] == "expired: expire.records=1"
    assert lake("expire", pool).err == "p: nothing expired\n"
    lake("undo", pool, "4")
    assert len(lake.scan(pool)) == 3


def test_old_records_go_by_a_field(lake: Command) -> None:
    lake.pool("logs", key="ts", types={"ts": "timestamp"})
    lake.load_records(
        "logs", [{"ts": "2020-01-01T00:00:00Z", "n": 1}, {"ts": "2999-01-01T00:00:00Z", "n": 2}]
    )
    lake("set", "logs", "expire.age=30d", "expire.by=ts")
    planned_line = lake("expire", "logs", "--dry-run").err
    assert planned_line.startswith("logs: delete records with ts before 20")
    assert planned_line.splitlines()[0].endswith(" in up to 1 object of 2 records")
    (planned,) = lake("expire", "logs", "--dry-run", "--json").records
    assert "ts < timestamp '20" in planned["where"]
    (done,) = lake("expire", "logs", "--json").records
    assert (done["version"], done["objects"], done["deleted"]) == (2, 0, True)
    assert [r["n"] for r in lake.scan("logs")] == [2]
    assert lake("expire", "logs").err == "logs: nothing expired\n"


def test_settings_that_could_never_expire_anything_are_refused(lake: Command, pool: str) -> None:
    assert "history.keep (30d)" in lake.fails(INVALID_INPUT, "set", pool, "expire.age=31d")
    assert "use a whole number of at least 1" in lake.fails(INVALID_INPUT, "set", pool, "expire.records=0")
    assert "use a duration of at least 1s" in lake.fails(INVALID_INPUT, "set", pool, "expire.age=0s")
