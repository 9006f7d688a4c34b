"""The tombstones application: references searched and rewritten by tasks."""

from __future__ import annotations

import time
from typing import Any

import pyarrow as pa
import pytest

from log_lake.agents.tombstones.run import apply
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from spark_apps.session import spark_session
from spark_apps.workers import workers_of
from tests.spark.conftest import Landing
from tests.support.agents import finder, run

find = finder("tombstones")

pytestmark = pytest.mark.spark


def filled(lake: Lake, **settings: str) -> Pool:
    """Three loads of 1,000 records that overlap; v is 0 to 9."""
    pool = lake.create_pool(
        "p", key="k", settings={name.replace("_", "."): v for name, v in settings.items()}
    )
    for n in range(3):
        pool.branch().append(
            pa.table({"k": list(range(1000)), "n": [n] * 1000, "v": [k % 10 for k in range(1000)]})
        )
    return pool


def test_what_was_deleted_goes_and_the_deletes_are_forgotten(spark: Any, landing: Landing) -> None:
    pool = filled(landing.lake)
    branch = pool.branch()
    branch.delete(where="v = 3 and n < 2")
    branch.delete(key_range=pool.at().key_range(low=990))
    before = pool.at().to_table()
    did = apply(branch, now=time.time(), at_once=True, workers=workers_of(spark, branch.context))
    assert (did.searched, did.rewritten, did.retired, did.left) == (3, 3, 2, 0)
    assert pool.at().to_table() == before
    assert pool.at().records == before.num_rows == 3000 - 200 - 30 + 2
    again = apply(branch, now=time.time(), at_once=True, workers=workers_of(spark, branch.context))
    assert (again.searched, again.rewritten, again.retired) == (0, 0, 0)


def test_the_agent_applies_what_is_due(spark: Any, landing: Landing) -> None:
    pool = filled(landing.lake, tombstones_apply="0s")
    pool.branch().delete(where="v = 3")
    assert find({"lake": landing.uri, "dry_run": True}) == []
    (work,) = find({"lake": landing.uri})
    assert work["pool"] == "p"
    did = run("tombstones", work, open_spark=spark_session)
    assert (did["searched"], did["rewritten"], did["left"]) == (3, 3, 0)
    assert run("tombstones", work, open_spark=spark_session)["searched"] == 0
    assert find({"lake": landing.uri}) == []
