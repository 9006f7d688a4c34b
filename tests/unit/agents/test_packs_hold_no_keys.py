"""What a compaction hands from one task to the next stays for weeks: it names objects, and holds no key."""

from __future__ import annotations

import json

import msgspec
import pyarrow as pa

from log_lake.agents.compact.run import jobs_now
from log_lake.compaction.jobs import CompactionJob, jobs_still_there
from log_lake.lake import Lake
from log_lake.stores.memory import MemoryStore
from tests.support.agents import finder, work_of

find = finder("compact")

SECRET = "ann@example.org"


def test_the_work_of_a_compaction_holds_no_key() -> None:
    lake = Lake.create_on(MemoryStore("memory://packs"))
    branch = lake.create_pool("p", key="k").branch()
    for _ in range(6):
        branch.append(pa.table({"k": [SECRET, "m", "z"]}))
    (work,) = find({"lake": lake.store.uri}, open_lake=lambda uri: lake)
    text = json.dumps(work)
    assert "inputs" in text
    assert SECRET not in text
    assert SECRET.encode().hex() not in text
    jobs, lost, _ = jobs_now(lake, work_of("compact", json.loads(text)))
    assert (len(jobs), lost) == (len(work["jobs"]), 0)
    assert [job.named for job in jobs] == list(work_of("compact", work).jobs)


def test_a_job_is_sure_of_its_inputs_or_not_there() -> None:
    lake = Lake.create_on(MemoryStore("memory://jobs"))
    branch = lake.create_pool("p", key="k").branch()
    branch.append(pa.table({"k": [1, 2, 3]}))
    (whole,) = branch.revision().references
    values = [CompactionJob((whole,), 1, "why").named]
    assert [job.inputs for job in jobs_still_there([whole], values)] == [(whole,)]
    part = msgspec.structs.replace(whole, low=whole.high, records=1)
    assert [job.inputs for job in jobs_still_there([part, whole], values)] == [(whole,)]
    twin = msgspec.structs.replace(whole, low=whole.high)
    assert jobs_still_there([whole, twin], values) == []
    assert jobs_still_there([part], values) == []
