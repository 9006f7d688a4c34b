"""The compaction agent on a real Airflow and a real Spark: deep pools become shallow, others cost no Spark."""

from __future__ import annotations

from functools import partial

import pyarrow as pa
import pytest

from tests.airflow.conftest import Agent

pytestmark = pytest.mark.airflow

DAG = "lake_compact"


def test_pools_with_work_are_compacted_while_the_others_are_passed_by(agent: Agent) -> None:
    loads = {"deep_a": 12, "deep_b": 12, "flat": 1}
    for name, count in loads.items():
        pool = agent.lake.create_pool(name, key="k")
        for n in range(count):
            pool.branch().append(pa.table({"k": [1, 2], "n": [n, n]}))
    before = {name: agent.lake.pool(name).at().to_table() for name in loads}
    run = partial(agent.report_of, DAG, pools=list(loads))
    assert run(dry_run=True)["pools"] == 0
    done = run()
    assert (done["pools"], done["jobs"], done["inputs"], done["objects"]) == (2, 2, 24, 2)
    lake = type(agent.lake).open(agent.lake.store.uri)
    assert {name: lake.pool(name).at().depth for name in loads} == {"deep_a": 1, "deep_b": 1, "flat": 1}
    assert {name: lake.pool(name).at().to_table() for name in loads} == before
    assert run()["pools"] == 0
