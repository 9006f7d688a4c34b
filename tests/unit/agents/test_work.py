"""What goes between tasks, as plain values."""

from __future__ import annotations

import json

from log_lake.agents.compact.run import CompactWork
from log_lake.agents.driver import agent_of
from log_lake.agents.erasure.report import ErasureResult, ErasuresResult
from log_lake.agents.ingest.report import IngestResult
from log_lake.agents.work import encoded
from log_lake.compaction.jobs import NamedJob

ERASURE = ErasureResult("p", 3, "e", "pending", 1, 2, 3, 4, 5, 6, ["tag x"], {"$nokey": 7})


def test_sequences_are_lists_because_airflow_keeps_a_tuple_as_an_object_that_names_its_class() -> None:
    batch = IngestResult(pool="p", version=1, token="t", parked=(("ä\u2028.json", "why"),), parked_files=1)
    assert encoded(batch)["parked"] == [["ä\u2028.json", "why"]]
    erasures = ErasuresResult("p", 3, (ERASURE,))
    assert encoded(erasures)["erasures"] == [vars(ERASURE)]
    work = CompactWork(lake="x", pool="p", jobs=(NamedJob((("a", 2**53 + 1),), 1, "why"),))
    assert encoded(work)["jobs"] == [{"inputs": [["a", 2**53 + 1]], "outputs": 1, "why": "why"}]
    for agent, result in (("ingest", batch), ("erasure", erasures)):
        values = encoded(result)
        assert json.loads(json.dumps(values)) == values
        assert agent_of(agent).decoded_result(values) == result
    assert agent_of("compact").decoded_work(encoded(work)) == work
