"""`lake compact`, and pools of other kinds than append, as a user types it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.command import INVALID_INPUT, NOT_FOUND, USAGE, Command


@pytest.fixture
def pool(lake: Command) -> str:
    """A pool of ten loads that overlap."""
    lake.pool()
    for n in range(10):
        lake.load_records("p", [{"k": 1, "n": n}, {"k": 100, "n": n}], f"{n}.ndjson")
    return "p"


def answer(lake: Command, *words: str) -> dict[str, Any]:
    (found,) = lake("compact", *words, "--json").records
    return found


def shown(lake: Command, name: str) -> Any:
    return lake("show", "p", "--json").records[0][name]


def test_a_deep_pool_becomes_shallow_and_reads_the_same(lake: Command, pool: str) -> None:
    before = lake.scan(pool)
    done = answer(lake, pool)
    assert (done["version"], done["versions"], done["records"]) == (11, [11], 20)
    assert (done["jobs"], done["inputs"], done["objects"], done["dropped"]) == (1, 10, 1, 0)
    assert (done["depth_before"], done["depth_after"], shown(lake, "depth")) == (10, 1, 1)
    assert done["size_out"] == shown(lake, "size")
    assert lake.scan(pool) == before
    assert lake.scan(pool, "--at", "10") == before
    assert lake.history(pool)[0]["message"].startswith("compaction: ")


def test_what_is_compacted_is_left_alone(lake: Command, pool: str) -> None:
    answer(lake, pool)
    again = answer(lake, pool)
    assert (again["version"], again["jobs"], again["depth_after"]) == (None, 0, 1)
    said = lake("compact", pool, "--strategy", "full").err
    assert said == "p: nothing to compact (no objects overlap; the policy allows 8)\n"
    assert len(lake.history(pool)) == 11


def test_a_dry_run_prints_the_plan_and_changes_nothing(lake: Command, pool: str) -> None:
    plan = answer(lake, pool, "--dry-run")
    assert (plan["depth"], plan["depth_after"], plan["write_amplification"]) == (10, 1, 1.0)
    (job,) = plan["jobs"]
    assert (len(job["inputs"]), job["depth"], job["outputs"]) == (10, 10, 1)
    said = lake("compact", pool, "--dry-run").err.splitlines()
    assert said[0].startswith(
        "p: at most 10 objects overlap (the policy allows 8), 1 after 1 job of size_ratio: rewrite 1"
    )
    assert said[1].startswith("  merge 10 objects, ")
    assert len(lake.history(pool)) == 10


def test_people_are_told_each_job_and_the_sum(lake: Command, pool: str) -> None:
    said = lake("compact", pool).err.splitlines()
    assert said[0].startswith("  version 11: merged 10 objects (")
    assert said[-1].startswith("p: ")
    assert said[-1].endswith("; overlap 10 -> 1")


def test_what_cannot_be_compacted_is_said(lake: Command, pool: str) -> None:
    assert "'q'" in lake.fails(NOT_FOUND, "compact", "q")
    assert "'dev' does not exist" in lake.fails(NOT_FOUND, "compact", pool, "--branch", "dev")
    assert lake.run("compact", pool, "--strategy", "leveled").status == USAGE
    assert "compact.ratio=1" in lake.fails(INVALID_INPUT, "set", pool, "compact.ratio=1")
    assert "compact.strategy=x" in lake.fails(INVALID_INPUT, "set", pool, "compact.strategy=x")


# ---------------------------------------------------------------- kinds


def test_in_an_upsert_pool_the_newest_record_of_a_key_decides(lake: Command) -> None:
    lake("create", "p", "--key", "k", "--kind", "upsert")
    lake.load_records("p", [{"k": 1, "v": "old"}, {"k": 2, "v": "a"}, {"k": 2, "v": "b"}])
    lake.load_records("p", [{"k": 1, "v": "new"}])
    expected = [{"k": 1, "v": "new"}, {"k": 2, "v": "b"}]
    assert lake.scan("p") == expected
    assert lake.query('select count(*) as n from "p"') == [{"n": 2}]
    answer(lake, "p", "--strategy", "full")
    assert lake.scan("p") == expected
    assert lake("get", "p", "1", "--format", "json").records == expected[:1]


def test_in_an_aggregate_pool_records_of_a_key_are_combined(lake: Command) -> None:
    functions = "bytes=sum,seen=max,n=count,host=first"
    lake("create", "p", "--key", "user", "--kind", "aggregate", "--aggregate", functions)
    lake.load_records("p", [{"user": "a", "bytes": 5, "seen": 3, "host": "x"}, {"user": "b", "bytes": 1}])
    lake.load_records("p", [{"user": "a", "bytes": 7, "seen": 2, "host": "y", "note": "last"}])
    expected = [
        {"user": "a", "bytes": 12, "seen": 3, "host": "x", "n": 2, "note": "last"},
        {"user": "b", "bytes": 1, "n": 1},
    ]
    assert lake.scan("p") == expected
    answer(lake, "p", "--strategy", "full")
    assert lake.scan("p") == expected


def test_reserved_names_and_types_that_do_not_fit_are_refused(lake: Command) -> None:
    lake("create", "p", "--key", "k", "--kind", "aggregate", "--aggregate", "v=sum")
    text, reserved = (
        lake.file("text.ndjson", [{"k": 1, "v": "x"}]),
        lake.file("seq.ndjson", [{"k": 1, "_seq": 1}]),
    )
    assert "line 1: field 'v': \"x\" is not a number" in lake.refuses("p", text)
    assert "field '_seq': the name is reserved" in lake.refuses("p", reserved)


def test_jobs_of_ranges_run_in_processes_and_each_is_committed(lake: Command) -> None:
    lake.pool()
    for n in range(4):
        lake.load_records("p", [{"k": k, "n": n} for k in range(n % 2, 40, 2)], f"{n}.ndjson")
    lake("split", "p", "--at", "20")
    lake("compact", "p", "--strategy", "full")
    for n in range(2):
        lake.load_records("p", [{"k": k, "n": n} for k in range(18)], f"low-{n}.ndjson")
        lake.load_records("p", [{"k": k, "n": n} for k in range(22, 40)], f"high-{n}.ndjson")
    before = lake.scan("p")
    done = answer(lake, "p", "--strategy", "full", "-j", "2")
    assert (done["jobs"], done["inputs"], done["depth_after"], len(done["versions"])) == (2, 6, 1, 2)
    assert lake.scan("p") == before
    assert "is too small: use 1 or more" in lake.fails(USAGE, "compact", "p", "-j", "0")
