"""The tombstones agent on a real Airflow and a real Spark: what was deleted goes; young deletes are let be."""

from __future__ import annotations

from functools import partial

import pyarrow as pa
import pytest

from log_lake.lake import Lake
from tests.airflow.conftest import Agent

pytestmark = pytest.mark.airflow

DAG = "lake_tombstones"
POOLS = {"due": "0s", "young": "7d", "never": "0s"}


def test_what_is_due_goes_out_of_the_objects_and_what_is_young_stays(agent: Agent) -> None:
    for name, apply in POOLS.items():
        pool = agent.lake.create_pool(name, key="k", settings={"tombstones.apply": apply})
        for n in range(3):
            pool.branch().append(pa.table({"k": [1, 2, 3], "n": [n, n, n]}))
        if name != "never":
            pool.branch().delete(where="n = 1 or k = 2")
    before = {name: agent.lake.pool(name).at().to_table() for name in POOLS}
    run = partial(agent.report_of, DAG, pools=list(POOLS))
    assert run(dry_run=True)["pools"] == 0
    done = run()
    assert (done["pools"], done["rewritten"], done["retired"], done["left"]) == (1, 3, 1, 0)
    lake = Lake.open(agent.lake.store.uri)
    left = {name: len(lake.pool(name).at().tombstones) for name in POOLS}
    assert left == {"due": 0, "young": 1, "never": 0}
    assert {name: lake.pool(name).at().to_table() for name in POOLS} == before
    assert lake.pool("due").at().records == 4
    assert run()["pools"] == 0
