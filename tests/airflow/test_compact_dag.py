"""The compact agent on a real Airflow and a real Spark: deep pools become shallow, others cost no Spark."""

from __future__ import annotations

from functools import partial

import pyarrow as pa
import pytest

from lake_core import naming
from tests.airflow.conftest import RUN_SECONDS, Agent

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


def test_a_pool_that_fails_is_named_and_the_others_are_compacted(agent: Agent) -> None:
    for name in ("damaged", "sound"):
        pool = agent.lake.create_pool(name, key="k")
        for n in range(12):
            pool.branch().append(pa.table({"k": [1, 2], "n": [n, n]}))
    missing = agent.lake.pool("damaged").at().references[0].object
    agent.lake.store.delete(naming.data_object(agent.lake.pool("damaged").config.id, missing))
    api = agent.services.api
    api.wait_for_dag(DAG)
    api.set_paused(DAG, False)
    run = api.trigger(DAG, conf={"pools": ["damaged", "sound"]})
    assert api.wait(DAG, run, seconds=RUN_SECONDS) == "failed"
    said = api.log(DAG, run, "report")
    assert any(f"damaged: run[{at}] failed; its log says why" in said for at in (0, 1))  # pools take turns
    assert "sound: 1 job merged 12 objects" in said
    assert type(agent.lake).open(agent.lake.store.uri).pool("sound").at().depth == 1
