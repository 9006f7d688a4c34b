"""The retention agent on a real Airflow and Spark: what expired goes, and its objects after the grace time."""

from __future__ import annotations

from functools import partial

import pyarrow as pa
import pytest

from log_lake.lake import Lake
from tests.airflow.conftest import Agent

pytestmark = pytest.mark.airflow

DAG = "lake_retention"
POOLS = {
    "expires": {"expire.records": "2", "vacuum.grace": "0s", "history.keep": "0s"},
    "waits": {"expire.records": "2", "vacuum.grace": "7d"},
    "keeps": {},
}


def objects(lake: Lake, name: str) -> int:
    """The data objects of the pool on the store."""
    return sum(1 for _ in lake.store.list(f"{lake.pool(name).config.id}/data"))


def test_old_loads_go_and_their_objects_once_the_grace_time_is_over(agent: Agent) -> None:
    for name, settings in POOLS.items():
        pool = agent.lake.create_pool(name, key="k", settings=settings)
        for k in range(5):
            pool.branch().append(pa.table({"k": [k]}))
    run = partial(agent.report_of, DAG, pools=list(POOLS))

    assert run(dry_run=True)["pools"] == 0
    assert [agent.lake.pool(name).at().records for name in POOLS] == [5, 5, 5]

    done = run()
    assert (done["pools"], done["expired"], done["vacuumed"]) == (2, 6, 3)
    lake = Lake.open(agent.lake.store.uri)
    assert [lake.pool(name).at().to_table()["k"].to_pylist() for name in POOLS] == [
        [3, 4],
        [3, 4],
        [0, 1, 2, 3, 4],
    ]
    assert [objects(lake, name) for name in POOLS] == [2, 5, 5]
    lake.pool("waits").branch().undo("6")
    assert lake.pool("waits").at().records == 5
