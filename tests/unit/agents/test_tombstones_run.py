"""What the tombstones agent says of its work; the work itself is tested in tests/cli and tests/spark."""

from __future__ import annotations

import logging
import re
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lake_core.errors import Incomplete, InvalidInput
from log_lake.agents.tombstones.report import ApplyResult, pool_line
from log_lake.agents.tombstones.run import apply
from log_lake.lake import Lake
from log_lake.stores.memory import MemoryStore
from log_lake.workers import Here
from tests.support.agents import finder, reporter
from tests.support.workers import Watched

report = reporter("tombstones")
find = finder("tombstones")

DONE: dict[str, Any] = {
    "pool": "p",
    "version": 9,
    "searched": 3,
    "marked": 1,
    "rewritten": 2,
    "size_in": 10_000,
    "size_out": 8_000,
    "retired": 1,
    "left": 0,
    "covered": 0,
}
FOUND = [{"pool": "p"}, {"pool": "q"}]


def test_a_pool_is_told_by_what_was_rewritten_and_what_is_left() -> None:
    assert pool_line(ApplyResult(**DONE)) == (
        "p: searched 3 objects, rewrote 2 (10.0 kB -> 8.0 kB); 1 delete finished; none left"
    )
    assert pool_line(ApplyResult(**DONE | {"left": 2, "covered": 1})).endswith(
        "; 2 left, which may still cover records of 1 object"
    )
    nothing = {name: 0 for name in DONE if name not in ("pool", "version")}
    assert pool_line(ApplyResult(pool="p", version=None, **nothing)) == "p: no deletes to apply"


def test_a_report_says_what_was_done_also_where_a_pool_failed(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    assert report(FOUND, [DONE, DONE | {"pool": "q"}])["rewritten"] == 4
    assert caplog.messages[-1] == (
        "2 pools: searched 6 objects, rewrote 4 (20.0 kB -> 16.0 kB); 2 deletes finished; 0 left"
    )
    caplog.clear()
    with pytest.raises(Incomplete, match=r"^1 failure: q: run\[1\] failed; its log says why"):
        report(FOUND, [DONE])
    assert caplog.messages[0].startswith("p: searched 3 objects")
    with pytest.raises(Incomplete, match="the task `find` failed"):
        report(None, [])
    caplog.clear()
    assert report([], [])["pools"] == 0
    assert caplog.messages == ["no deletes were applied"]


def test_a_delete_that_lands_during_the_search_counts_as_not_applied() -> None:
    """What was searched did not hold records of the first delete; those of the second stay deleted all the same."""
    branch = Lake.create_on(MemoryStore()).create_pool("p", key="k").branch()
    branch.append(pa.table({"k": [1, 2], "n": [1, 3]}))
    branch.append(pa.table({"k": [3], "n": [2]}))
    branch.delete(where="n = 2")

    def before(name: str, count: int) -> None:
        if name == "holds_covered":
            branch.delete(where="n = 3")

    workers = Watched(Here.of(branch.context), before)
    did = apply(branch, now=time.time(), at_once=True, workers=workers)
    assert (did.searched, did.marked, did.rewritten) == (1, 1, 1)
    pool = Lake.open_on(branch.store).pool("p")
    assert pool.at().to_table()["k"].to_pylist() == [1]
    assert apply(pool.branch(), now=time.time(), at_once=True).rewritten == 1
    assert pool.at().to_table()["k"].to_pylist() == [1]


def test_the_result_names_the_newest_version_that_it_committed() -> None:
    """The search marks in version 4, the rewrite is 5, the tombstone is retired in 6; another load follows."""
    branch = Lake.create_on(MemoryStore()).create_pool("p", key="k").branch()
    for records in ({"k": [1, 5], "n": [1, 2]}, {"k": [2, 6], "n": [1, 3]}):
        branch.append(pa.table(records))
    branch.delete(where="n = 2")
    done = apply(branch, now=time.time(), at_once=True)
    assert done.version == 6
    assert (done.depth_before, done.depth_after, done.objects_before, done.objects_after) == (2, 1, 2, 2)
    assert done.size_after - done.size_before == done.size_out - done.size_in
    branch.append(pa.table({"k": [7]}))
    assert apply(branch, now=time.time(), at_once=True).version is None


def test_the_log_says_what_was_searched_rewritten_and_left(caplog: pytest.LogCaptureFixture) -> None:
    branch = Lake.create_on(MemoryStore()).create_pool("p", key="k").branch()
    branch.append(pa.table({"k": [1, 5], "n": [1, 2]}))
    branch.append(pa.table({"k": [2, 6], "n": [1, 3]}))
    branch.delete(where="n = 2")
    caplog.set_level(logging.INFO, "log_lake.agents.tombstones")
    apply(branch, now=time.time(), at_once=True)
    planned, searched, job, done = caplog.messages
    assert planned == "p: 1 delete is due: search 2 objects; 1 left"
    assert job.startswith("  version 5: merged 1 object")
    assert re.fullmatch(r"p: 1 object, [0-9.]+ kB, to rewrite; 1 object without deleted records", searched)
    assert re.fullmatch(
        r"p: searched 2 objects, rewrote 1 \([0-9.]+ kB -> [0-9.]+ kB\); 1 delete finished; none left", done
    )


def test_a_pool_that_cannot_be_read_does_not_hold_back_the_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    lake = Lake.create(str(tmp_path), author="test")
    for name in ("bad", "good", "idle"):
        pool = lake.create_pool(name, key="k", settings={"tombstones.apply": "0s"})
        pool.branch().append(pa.table({"k": [1, 2], "n": [1, 2]}))
        if name != "idle":
            pool.branch().delete(where="n = 1")
    next((tmp_path / lake.pool("bad").config.id / "journal").glob("*1.txn")).write_bytes(b"garbage")
    assert [work["pool"] for work in find({"lake": lake.store.uri})] == ["bad", "good"]
    assert any(m.startswith("bad: ") and "not a journal entry" in m for m in caplog.messages)
    assert "good: 1 delete is due: search 1 object; 1 left" in caplog.messages
    with pytest.raises(InvalidInput, match="did you mean 'dry_run'"):
        find({"lake": lake.store.uri, "dry-run": True})


def test_a_result_that_names_its_piece_of_work_is_reported() -> None:
    """Packed work is told apart by its piece (decision 176)."""
    figures = (
        "version",
        "searched",
        "marked",
        "rewritten",
        "size_in",
        "size_out",
        "retired",
        "left",
        "covered",
    )
    work = {"pool": "p", "piece": "plan:0"}
    assert report([work], [{**work, **dict.fromkeys(figures, 1)}])["pools"] == 1
