"""The stack of docker-compose.yaml, once for all tests of this folder: `make test-containers`.

They take long, so `make test` skips them: they run with LAKE_TEST_CONTAINERS=1, as root.  Agents run in the
containers; the tests look at the lake from outside, through the store's address in the network of the containers.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from log_lake.lake import Lake
from tests.support.containers.stack import Stack, eventually, stack

RUN_SECONDS = 1200.0
LANDING = "s3://lake/landing"


@dataclass(frozen=True)
class Pool:
    """A pool with a landing place, kept by the agents of the stack."""

    running: Stack
    name: str

    @property
    def lake(self) -> Lake:
        """The lake, opened anew: after a restart the store may have another address."""
        return Lake.open("s3://lake/lake", options=self.running.store_options())

    def land(self, name: str, records: list[dict[str, Any]] | bytes) -> None:
        """A file that lands."""
        lines = (
            records
            if isinstance(records, bytes)
            else b"".join(json.dumps(r).encode() + b"\n" for r in records)
        )
        self.running.land(f"{LANDING}/{self.name}/{name}", lines)

    @property
    def keys(self) -> list[int]:
        """The keys of all records, in the order of the scan."""
        table = self.lake.pool(self.name).at().to_table()
        return table["k"].to_pylist() if table.num_columns else []

    @property
    def depth(self) -> int:
        return self.lake.pool(self.name).at().depth

    @property
    def stored_records(self) -> int:
        """The records in the objects of the pool, deleted ones too."""
        return self.lake.pool(self.name).at().records

    @property
    def versions(self) -> int:
        """How many transactions the pool has."""
        return len(list(self.lake.pool(self.name).log()))

    @property
    def data(self) -> set[str]:
        """The data objects on the store, committed or not."""
        lake = self.lake
        return {listed.name for listed in lake.store.list(f"{lake.pool(self.name).config.id}/data")}

    # --- agents

    def trigger(self, agent: str, **conf: Any) -> str:
        """Asks for a run of an agent's DAG for this pool; its id."""
        api, dag = self.running.api, f"lake_{agent}"
        api.wait_for_dag(dag, seconds=600)
        api.set_paused(dag, False)
        return api.trigger(dag, conf={"pools": [self.name], **conf})

    def wait(self, agent: str, run: str) -> str:
        """The state in which the run ends."""
        return self.running.api.wait(f"lake_{agent}", run, seconds=RUN_SECONDS)

    def run(self, agent: str, **conf: Any) -> dict[str, Any]:
        """What a run reports that must succeed.  The schedule may have done its work before it."""
        run = self.trigger(agent, **conf)
        assert self.wait(agent, run) == "success", self.running.api.run_url(f"lake_{agent}", run)
        return dict(self.running.api.xcom(f"lake_{agent}", run, "report"))

    def tasks(self, agent: str, run: str) -> dict[str, tuple[str, int]]:
        """The state and the number of tries of each task of a run."""
        return {
            task["task_id"]: (task["state"], task["try_number"])
            for task in self.running.api.tasks(f"lake_{agent}", run)
        }


def make_pool(running: Stack, name: str, **settings: str) -> Pool:
    """A new pool with the key `k`; of a setting's name the dots are written as two underscores."""
    pool = Pool(running, name)
    known = {key.replace("__", "."): value for key, value in settings.items()}
    pool.lake.create_pool(name, key="k", settings={"ingest.source": f"{LANDING}/{name}", **known})
    return pool


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """The stack, with the DAGs known to Airflow."""
    if os.environ.get("LAKE_TEST_CONTAINERS") != "1":
        pytest.skip("takes long: make test-containers, or LAKE_TEST_CONTAINERS=1")
    with stack(tmp_path_factory.mktemp("containers")) as running:
        print(f"\nstand-ins: {', '.join(running.stand_ins) or 'none'}; up in {running.seconds:.0f} s")
        yield running


__all__ = ["Pool", "eventually", "make_pool"]
