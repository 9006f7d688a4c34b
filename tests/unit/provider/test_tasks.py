"""The tasks of a group, called as Airflow calls them: what one pack hands over when a piece of its work fails."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from airflow_lake.effects import Effect
from airflow_lake.groups import tasks
from airflow_lake.groups.config import LakeConfig
from airflow_lake.groups.pack import pack, unpack
from lake_core.errors import Incomplete, InvalidInput, LakeError
from lake_core.lake import Lake


@dataclass
class Instance:
    """The task instance of Airflow, as far as a task uses it."""

    pushed: dict[str, Any] = field(default_factory=dict)
    task_id: str = "lake_upkeep.retention.report"

    def xcom_push(self, key: str, value: Any) -> None:
        self.pushed[key] = value

    def xcom_pull(self, *, task_ids: str, key: str) -> Any:
        return self.pushed.get(key) if task_ids == "lake_upkeep.retention.find" else None


@dataclass
class Task:
    """The task of Airflow, which keeps what it did."""

    effects: list[Effect] = field(default_factory=list)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Three pools with work for the retention agent: old entries, and nothing to keep them for."""
    lake = Lake.create(str(tmp_path / "lake"))
    for name in ("a", "b", "c"):
        pool = lake.create_pool(name, key="k", settings={"history.keep": "0s"})
        for k in range(3):
            pool.branch().append(pa.table({"k": [k]}))
    return lake


def config(lake: Lake) -> dict[str, Any]:
    return LakeConfig(lake=lake.store.uri).plain(agent="retention", also=("branch",))


def test_what_is_found_is_done_and_reported(lake: Lake) -> None:
    packs = tasks.find("retention", config(lake), None)
    assert [part["title"] for part in packs] == ["a: retention", "b: retention", "c: retention"]
    task = Task()
    results = [tasks.run("retention", part, config(lake), {"ti": Instance(), "task": task}) for part in packs]
    (effect,) = task.effects
    assert (effect.pool, effect.branch, effect.writes, effect.version) == ("c", "main", True, None)
    totals = tasks.report("retention", packs, results, config(lake), None)
    assert (totals["pools"], totals["purged"]) == (3, 9)


def test_a_piece_that_fails_holds_back_neither_the_others_nor_their_results(lake: Lake) -> None:
    (together,) = pack(unpack(tasks.find("retention", config(lake), None)) or [], most=1)
    journal = Path(lake.store.uri.removeprefix("file://")) / lake.pool("b").config.id / "journal"
    os.truncate(next(journal.glob("*1.txn")), 3)
    instance, task = Instance(), Task()
    with pytest.raises(LakeError, match=str(journal.name)):
        tasks.run("retention", together, config(lake), {"ti": instance, "task": task})
    results = instance.pushed[tasks.RESULT]
    assert [one["pool"] for one in results] == ["a", "c"]
    assert [effect.pool for effect in task.effects] == ["a", "c"], (
        "a task that fails tells what it did before"
    )
    with pytest.raises(Incomplete, match=r"1 failure: b: run\[0\] failed; its log says why"):
        tasks.report("retention", [together], [results], config(lake), None)


def test_a_run_takes_its_parameters_only_if_the_group_says_so(lake: Lake) -> None:
    params = {"pools": ["b"], "dry_run": False}
    assert len(tasks.find("retention", config(lake), None)) == 3
    assert [part["title"] for part in tasks.find("retention", config(lake), params)] == ["b: retention"]
    with pytest.raises(InvalidInput, match=r"unknown parameter 'pols': did you mean 'pools'\?"):
        tasks.find("retention", config(lake), {"pols": ["b"]})


def test_what_is_put_off_goes_to_the_report_beside_the_packs(
    lake: Lake, caplog: pytest.LogCaptureFixture
) -> None:
    lake.configure_pool("b", {"agents": "paused"})
    instance, task = Instance(), Task()
    packs = tasks.find("retention", config(lake), None, task=instance)
    assert [part["title"] for part in packs] == ["a: retention", "c: retention"]
    results = [tasks.run("retention", part, config(lake), {"ti": instance, "task": task}) for part in packs]
    caplog.clear()
    caplog.set_level("INFO")
    put_off = tasks.put_off_of(instance)
    assert tasks.report("retention", packs, results, config(lake), None, put_off)["pools"] == 2
    assert "b: put off: agents=paused" in caplog.messages


def test_more_pools_than_a_report_names_are_cut(lake: Lake) -> None:
    for number in range(tasks.MAX_PUT_OFF):
        lake.create_pool(f"paused-{number}", key="k", settings={"agents": "paused"})
    lake.configure_pool("b", {"agents": "paused"})
    instance = Instance()
    assert len(tasks.find("retention", config(lake), None, task=instance)) == 2
    assert len(instance.pushed[tasks.PUT_OFF]) == tasks.MAX_PUT_OFF


def test_a_report_without_packs_says_that_find_failed(lake: Lake) -> None:
    with pytest.raises(Incomplete, match="the task `find` failed"):
        tasks.report("retention", None, [], config(lake), None)
