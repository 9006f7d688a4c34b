"""What the compaction agent says of its work; the work itself is tested in tests/cli and tests/spark."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pyarrow as pa
import pytest

from lake_core.errors import Incomplete, InvalidInput, NotFound
from log_lake.agents import driver
from log_lake.agents.agent import here
from log_lake.agents.compact.plan import PIECE
from log_lake.agents.compact.report import job_line, start_line, summary
from log_lake.agents.compact.run import jobs_now, plan_pool
from log_lake.compaction import CompactionJob, CompactionResult
from log_lake.compaction.gain import Standing
from log_lake.lake import Lake
from log_lake.rewriting.compaction import compact
from log_lake.stores.memory import MemoryStore
from tests.support.agents import finder, reporter, work_of

report = reporter("compact")
find = finder("compact")

JOB = CompactionJob((), 1, "too deep")
COMMITTED = CompactionResult(1_200, inputs=10, objects=1, records=5, size_in=11_600, size_out=4_000)
DROPPED = CompactionResult(None, inputs=0, objects=0, records=0, size_in=0, size_out=0)


def test_a_job_is_told_by_its_transaction_or_as_dropped() -> None:
    assert (
        job_line(JOB, COMMITTED)
        == "  version 1,200: merged 10 objects (11.6 kB) into 1 object (4.0 kB): too deep"
    )
    assert job_line(JOB, DROPPED) == "  dropped: an input changed (too deep)"


def test_a_task_says_which_jobs_are_left_to_do() -> None:
    assert start_line("p", [JOB, JOB, JOB], lost=0) == "p: 3 jobs, 0 B to rewrite"
    assert start_line("p", [JOB], lost=2) == (
        "p: 1 job, 0 B to rewrite; planned again, because inputs of 2 jobs are gone"
    )


def test_a_pool_whose_job_has_lost_an_input_since_is_planned_again(tmp_path: Path) -> None:
    lake = Lake.create(str(tmp_path))
    pool = lake.create_pool("p", key="k", settings={"compact.depth": "4"})
    for number in range(12):
        pool.branch().append(pa.table({"k": [number, 100]}))
    (work,) = find({"lake": str(tmp_path)})
    jobs, lost, before = jobs_now(lake, work_of("compact", work))
    assert (len(jobs), lost, before.depth, before.objects) == (1, 0, 12, 12)
    compact(pool.branch(), pool.at().references[:2])
    (job,), lost, _ = jobs_now(lake, work_of("compact", work))
    held = {(r.object, r.low) for r in pool.at().references}
    assert lost == 1
    assert {(r.object, r.low) for r in job.inputs} <= held
    compact(pool.branch(), pool.at().references)
    assert jobs_now(lake, work_of("compact", work))[:2] == ([], 1)


@pytest.mark.parametrize("revision", ["1", "main@2030-01-01T00:00:00Z", "a_tag", "dve"])
def test_a_run_that_names_anything_but_a_branch_is_refused(tmp_path: Path, revision: str) -> None:
    lake = Lake.create(str(tmp_path))
    pool = lake.create_pool("p", key="k", settings={"compact.depth": "1"})
    for _ in range(2):
        pool.branch().append(pa.table({"k": [1]}))
    pool.tag("a_tag")
    says = f"pool 'p': branch '{revision}' does not exist; "
    with pytest.raises(NotFound, match=re.escape(says)):
        find({"lake": str(tmp_path), "branch": revision})
    with pytest.raises(NotFound, match=re.escape(says)):
        plan_pool(lake, "p", branch=revision, now=lake.context.now())


FOUND = [{"pool": "p"}, {"pool": "q"}]


def test_a_report_tells_each_pool_and_the_sum(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    made = [summary("p", [COMMITTED], before=Standing(10), after=Standing(1))]
    made += [summary("q", [COMMITTED, DROPPED], before=Standing(3), after=Standing(2))]
    assert report(FOUND, made) == {
        "pools": 2, "jobs": 2, "dropped": 1, "inputs": 20, "objects": 2, "size_in": 23_200, "size_out": 8_000,
        "late": 0,
    }  # fmt: skip
    assert caplog.messages == [
        "p: 1 job merged 10 objects (11.6 kB) into 1 object (4.0 kB); overlap 10 -> 1",
        "q: 1 job (1 dropped: an input changed) merged 10 objects (11.6 kB) into 1 object (4.0 kB); "
        "overlap 3 -> 2",
        "2 pools: 2 jobs (1 dropped: an input changed) merged 20 objects (23.2 kB) into 2 objects (8.0 kB)",
    ]


def test_a_report_says_where_the_agent_lags(caplog: pytest.LogCaptureFixture) -> None:
    found = [{"pool": name, "allowed": 4} for name in ("p", "q")]
    made = [summary("p", [COMMITTED], before=Standing(10), after=Standing(4))]
    made += [summary("q", [COMMITTED], before=Standing(10), after=Standing(5))]
    assert report(found, made)["late"] == 1
    (said,) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert said.startswith(
        "q: the agent lags: at most 5 objects overlap, the policy allows 4; more is loaded"
    )


def test_a_report_without_work_says_so(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    assert report([], [])["pools"] == 0
    assert caplog.messages == ["nothing was compacted"]


def test_a_report_says_what_was_done_also_where_a_pool_failed(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    made = [summary("p", [COMMITTED], before=Standing(10), after=Standing(1))]
    with pytest.raises(Incomplete, match=r"^1 failure: q: run\[1\] failed; its log says why\.") as said:
        report(FOUND, made)
    assert caplog.messages[0].startswith("p: 1 job merged")
    assert "next run" in str(said.value)
    with pytest.raises(Incomplete, match="the task `find` failed"):
        report(None, [])


def test_a_pool_that_cannot_be_read_does_not_hold_back_the_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    lake = Lake.create(str(tmp_path), author="test")
    for name in ("bad", "good"):
        pool = lake.create_pool(name, key="k")
        for _ in range(9):
            pool.branch().append(pa.table({"k": [1]}))
    next((tmp_path / lake.pool("bad").config.id / "journal").glob("*05.txn")).write_bytes(b"garbage")
    found = find({"lake": lake.store.uri})
    assert sorted((work["pool"], len(work["jobs"]), work["title"]) for work in found) == [
        ("bad", 0, "bad: cannot be read"),
        ("good", 1, "good: 1 job"),
    ]
    assert any(m.startswith("bad: ") and "not a journal entry" in m for m in caplog.messages)
    assert find({"lake": lake.store.uri, "dry_run": True}) == []
    assert caplog.messages[-1] == "dry run: nothing is rewritten"


def test_a_run_is_refused_before_it_looks_where_a_pool_or_a_parameter_does_not_exist(tmp_path: Path) -> None:
    lake = Lake.create(str(tmp_path), author="test")
    lake.create_pool("flights", key="k")
    with pytest.raises(NotFound, match="did you mean 'flights'"):
        find({"lake": lake.store.uri, "pools": ["flight"]})
    with pytest.raises(InvalidInput, match="did you mean 'pools'"):
        find({"lake": lake.store.uri, "pols": ["flights"]})


def test_pools_take_turns() -> None:
    """A pool of many jobs holds back no other, and what fails of it is not hidden by what was done."""
    lake = Lake.create_on(MemoryStore())
    for name, count in (("many", PIECE + 2), ("one", 1)):
        pool = lake.create_pool(name, key="k", settings={"compact.depth": "1"})
        for k in range(count):
            for _ in range(2):
                pool.branch().append(pa.table({"k": [k]}))
    found = driver.find("compact", {"lake": "x"}, open_lake=lambda _: lake)
    handed = [(work.pool, len(work.jobs), work.others) for work in found.work]
    assert sorted(handed[:2]) == [("many", PIECE, 2), ("one", 1, 0)], (
        "the time decides which of them is first"
    )
    assert handed[2:] == [("many", 2, PIECE)]
    done = driver.carry_out("compact", found.work, open_lake=lambda _: lake, open_workers=here)
    totals = driver.report("compact", found, done.results)
    assert (totals["pools"], totals["jobs"], totals["late"]) == (2, PIECE + 3, 0)
    assert lake.pool("many").at().depth == 1
    with pytest.raises(Incomplete, match=r"^1 failure: many: run\[2\] failed"):
        driver.report("compact", found, done.results[:2])
