"""A policy file applied by the bundled DAG on a real Airflow; and what agents put off, in their reports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from log_lake.lake import Lake
from tests.airflow.conftest import RUN_SECONDS, Agent

pytestmark = [pytest.mark.airflow, pytest.mark.timeout(900)]

DAG = "lake_apply"
FILE = """
defaults: {key: ts, settings: {history.keep: 90d}}
pools:
  logs: {settings: {agents: paused}}
  metrics: {kind: upsert}
"""


@pytest.fixture(scope="module")
def other(agent: Agent) -> Lake:
    """A lake of its own, since a file with `prune` drops all other pools."""
    return Lake.create(str(agent.folder / "applied"))


def apply(agent: Agent, lake: Lake, path: str | Path, **conf: Any) -> tuple[str, dict[str, Any], str]:
    """The state of a run, what its task returned, and its log."""
    api = agent.services.api
    api.wait_for_dag(DAG)
    api.set_paused(DAG, False)
    run = api.trigger(DAG, conf={"lake": lake.store.uri, "path": str(path), **conf})
    state = api.wait(DAG, run, seconds=RUN_SECONDS)
    done = api.xcom(DAG, run, "apply") if state == "success" else {}
    return state, done, api.log(DAG, run, "apply")


def described(lake: Lake) -> dict[str, tuple[str, dict[str, str]]]:
    return {one.name: (one.kind, one.settings) for one in lake.pools()}


def test_a_file_is_shown_applied_once_and_pruned_only_with_a_yes(
    agent: Agent, other: Lake, tmp_path: Path
) -> None:
    other.create_pool("old", key="k")
    path = tmp_path / "pools.yaml"
    path.write_text(FILE)
    nothing = {"created": 0, "changed": 0, "dropped": 0, "version": None}

    state, done, log = apply(agent, other, path, dry_run=True)
    assert (state, done) == ("success", nothing)
    assert "+ pool logs: key ts, kind append" in log
    assert list(described(other)) == ["old"]

    state, done, _ = apply(agent, other, path)
    assert (state, done) == ("success", {"created": 2, "changed": 0, "dropped": 0, "version": 2})
    assert described(other) == {
        "logs": ("append", {"history.keep": "90d", "agents": "paused"}),
        "metrics": ("upsert", {"history.keep": "90d"}),
        "old": ("append", {}),
    }
    state, done, log = apply(agent, other, path)
    assert (state, done) == ("success", nothing)
    assert "nothing to do: the lake is as the file says" in log

    state, _, log = apply(agent, other, path, prune=True)
    assert state == "failed"
    assert "- pool old: key k, kind append" in log
    assert "old" in described(other)
    form = {"dry_run": False, "prune": True, "yes": True}  # the form sends each of its values
    state, _, log = apply(agent, other, path, **form, confirm=None)
    assert state == "failed"
    assert "this run would drop 1 pool: to start it, type 'old' in Confirm" in log
    assert "old" in described(other)
    state, done, _ = apply(agent, other, path, **form, confirm="old")
    assert (state, done["dropped"]) == ("success", 1)
    assert list(described(other)) == ["logs", "metrics"]


def test_a_relative_path_begins_at_the_folder_of_the_dag_file(agent: Agent, other: Lake) -> None:
    (agent.folder / "dags" / "beside.yaml").write_text("pools: {beside: {key: k}}\n")
    state, done, _ = apply(agent, other, "beside.yaml")
    assert (state, done["created"]) == ("success", 1)


def test_a_bad_file_fails_at_once_and_the_log_has_every_fault(
    agent: Agent, other: Lake, tmp_path: Path
) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text("pools:\n  a: {key: k, kind: x}\n  b: {key: k, settings: {compact.depth: 0}}\n")
    before = described(other)
    state, _, log = apply(agent, other, path)
    assert state == "failed"
    assert f"{path}:2:21: pool 'a': kind must be append, upsert or aggregate (got 'x')" in log
    assert f"{path}:3:41: setting compact.depth=0: use a whole number of at least 1" in log
    assert described(other) == before


def test_a_paused_pool_is_named_by_the_report_and_gets_no_task(agent: Agent) -> None:
    for name, settings in {"resting": {"agents": "paused"}, "working": {}}.items():
        branch = agent.lake.create_pool(
            name, key="k", settings={"checkpoint.entries": "3", **settings}
        ).branch()
        for number in range(12):
            branch.append(pa.table({"k": [1, 2], "n": [number, number]}))
    api = agent.services.api
    for dag, total in (("lake_compact", "pools"), ("lake_checkpoint", "journals")):
        run = agent.run_dag(dag, pools=["resting", "working"])
        assert api.xcom(dag, run, "report")[total] == 1
        assert "resting: put off: agents=paused" in api.log(dag, run, "report")
        idle = agent.run_dag(dag, pools=["resting"])
        assert "resting: put off: agents=paused" in api.log(dag, idle, "report")
        states = {task["task_id"]: task["state"] for task in api.tasks(dag, idle)}
        assert states["run"] == "skipped"
    assert type(agent.lake).open(agent.lake.store.uri).pool("resting").at().depth == 12
