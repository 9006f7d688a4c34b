"""What the compaction agent says of its work; the work itself is tested in tests/cli and tests/spark."""

from __future__ import annotations

import pytest

from lake_core.maintenance.compact import Done, job_line, report, summary

LANDED = Done("p", "too deep", 1_200, inputs=10, objects=1, records=5, size_in=11_600, size_out=4_000)
DROPPED = Done("p", "too deep", None, inputs=0, objects=0, records=0, size_in=0, size_out=0)


def test_a_job_is_told_by_its_transaction_or_as_dropped() -> None:
    assert (
        job_line(LANDED) == "  transaction 1,200: 10 references, 11.6 kB, became 1 object, 4.0 kB (too deep)"
    )
    assert job_line(DROPPED) == "  dropped, another compaction was faster (too deep)"


def test_a_report_tells_each_pool_and_the_sum(capsys: pytest.CaptureFixture[str]) -> None:
    made = [summary("p", [LANDED], depth_before=10, depth_after=1)]
    made += [summary("q", [LANDED, DROPPED], depth_before=3, depth_after=2)]
    assert report(made) == {
        "pools": 2, "jobs": 2, "dropped": 1, "inputs": 20, "objects": 2, "size_in": 23_200, "size_out": 8_000,
    }  # fmt: skip
    assert capsys.readouterr().out.splitlines() == [
        "p: 1 job: 11.6 kB in 10 references became 4.0 kB in 1 object; depth 10, now 1",
        "q: 1 job, 1 dropped since another compaction was faster: 11.6 kB in 10 references became 4.0 kB in 1 "
        "object; depth 3, now 2",
        "2 pools, 2 jobs, 1 dropped since another compaction was faster: 23.2 kB in 20 references became 8.0 kB in "
        "2 objects",
    ]
