"""The erasure agent on a real Airflow: what a run names goes, and what a tag held goes with a later run."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lake_core import naming
from log_lake.erasure.receipt import read_all
from log_lake.lake import Lake
from tests.airflow.conftest import RUN_SECONDS, Agent

pytestmark = pytest.mark.airflow

DAG = "lake_erasure"
ANN = "who = 'ann'"


def names(lake: Lake, pool: str) -> set[str]:
    """Those in the objects on the store, read by Arrow alone."""
    infos = lake.store.list(naming.data(lake.pool(pool).config.id))
    tables = [pq.read_table(lake.store.open_input(info.name)) for info in infos]
    return {name for table in tables for name in table["who"].to_pylist()}


def test_what_a_run_names_is_erased_and_what_is_held_by_a_later_run(agent: Agent) -> None:
    for name in ("people", "guests"):
        pool = agent.lake.create_pool(name, key="k")
        pool.branch().append(pa.table({"k": [1, 2], "who": ["ann", "bob"]}))
    agent.lake.pool("people").tag("yearly")
    pools = ["people", "guests"]

    assert agent.report_of(DAG, pools=pools, where=ANN, dry_run=True)["erasures"] == 0
    assert not list(read_all(agent.lake.pool("people")))

    run = agent.services.api.trigger(DAG, conf={"pools": pools, "where": ANN, "keep_history": True})
    assert agent.services.api.wait(DAG, run, seconds=RUN_SECONDS) == "failed"
    states = {(t["task_id"], t["state"]) for t in agent.services.api.tasks(DAG, run)}
    assert states == {("find", "success"), ("run", "success"), ("report", "failed")}
    lake = Lake.open(agent.lake.store.uri)
    assert (names(lake, "people"), names(lake, "guests")) == ({"ann", "bob"}, {"bob"})
    assert lake.pool("people").at().to_table()["who"].to_pylist() == ["bob"]
    metadata = [t.metadata for _, t in lake.pool("guests").log() if "erasure" in t.metadata]
    assert {(one["dag"], one["run"], one["task"]) for one in metadata} == {(DAG, run, "run")}

    lake.pool("people").delete_tag("yearly")
    assert agent.report_of(DAG)["done"] == 1  # as the schedule does: it names no pool and no records
    lake = Lake.open(agent.lake.store.uri)
    assert names(lake, "people") == {"bob"}
    assert {one.status for name in pools for one in read_all(lake.pool(name))} == {"done"}
    assert agent.report_of(DAG)["erasures"] == 0
