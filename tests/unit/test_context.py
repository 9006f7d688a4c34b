"""One clock: what a lake's agents, commands and applications do is timed by the clock of the lake."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from lake_core.ids import IdSource
from log_lake.agents.tombstones import run as tombstones
from log_lake.lake import Lake
from log_lake.stores.memory import MemoryStore
from tests.support.repository import ROOT

DAY = 86400.0


def test_a_lake_hands_its_own_clock_to_pools_branches_views_and_the_list_of_pools() -> None:
    seconds = [1_700_000_000.0]
    lake = Lake.create_on(MemoryStore(), ids=IdSource(clock=lambda: seconds[0]))
    pool = lake.create_pool("p", key="k")
    branch = pool.branch()
    branch.append(pa.table({"k": [1, 2]}))
    seconds[0] += DAY
    branch.append(pa.table({"k": [3]}))
    assert [t.time for _, t in pool.log()] == [1_700_086_400_000_000, 1_700_000_000_000_000]
    assert pool.at().now == branch.context.now() == lake.context.now() == seconds[0]
    lake.catalog.rename("p", "q")
    assert lake.catalog.journal.read(2).time == 1_700_086_400_000_000  # type: ignore[union-attr]


def test_deletes_are_due_by_the_clock_of_the_lake() -> None:
    seconds = [1_700_000_000.0]
    lake = Lake.create_on(MemoryStore(), ids=IdSource(clock=lambda: seconds[0]))
    branch = lake.create_pool("p", key="k").branch()
    branch.append(pa.table({"k": [1, 2]}))
    branch.delete(where="k = 1")
    assert not tombstones.plan(branch, now=branch.context.now()).due
    seconds[0] += 2 * DAY
    assert tombstones.plan(branch, now=branch.context.now()).due == 1


READS_THE_CLOCK = {
    "time.time",
    "time.time_ns",
    "datetime.now",
    "datetime.utcnow",
    "date.today",
    "datetime.today",
}


CLOCKS = ("lake_core/ids.py:", "log_lake/stores/memory.py:", "log_lake/stores/caches.py:")
"""The source of ids; a store in memory, which is its own server and says when its objects were written; a cache in
a folder of this machine, whose file system tells ages."""


def _readings_of_the_clock(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute) and ".".join(ast.unparse(node).split(".")[-2:]) in READS_THE_CLOCK:
            yield f"{path.relative_to(ROOT)}:{node.lineno}"


@pytest.mark.parametrize(
    "package", ["lake_core", "log_lake", "spark_apps", "pyspark_lake", "airflow_lake", "dags"]
)
def test_only_the_source_of_ids_reads_the_time_of_day(package: str) -> None:
    found = [place for path in (ROOT / package).rglob("*.py") for place in _readings_of_the_clock(path)]
    assert [place for place in found if not place.startswith(CLOCKS)] == []
