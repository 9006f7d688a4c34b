"""The lake that a run names: packs of work of another one, which someone put between tasks, are left alone."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from airflow.sdk import DAG, BaseOperator, Param
from airflow.sdk.definitions.xcom_arg import XComArg
from msgspec.structs import replace

from airflow_lake.groups import CheckpointGroup, RetentionGroup, tasks
from airflow_lake.groups.approval import LakeApproval
from airflow_lake.groups.config import LakeConfig
from airflow_lake.groups.decorator import LakeTaskOperator
from airflow_lake.groups.submitted import SubmittedRun
from lake_core.errors import Corrupt, InvalidInput
from log_lake.agents.jobs import list_jobs
from log_lake.lake import Lake


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Three pools with work for the retention agent."""
    lake = Lake.create(str(tmp_path / "lake"))
    for name in ("a", "b", "c"):
        pool = lake.create_pool(name, key="k", settings={"history.keep": "0s"})
        pool.branch().append(pa.table({"k": [1]}))
    return lake


def config(lake: Lake) -> dict[str, Any]:
    return LakeConfig(lake=lake.store.uri).plain(agent="retention", also=("branch",))


class Instance:
    """The task instance of Airflow, which keeps nothing."""

    def xcom_push(self, key: str, value: Any) -> None:
        return None


def names_in(lake: Lake) -> list[str]:
    return sorted(info.name for info in lake.store.list(""))


def test_work_of_another_lake_is_not_done(lake: Lake, tmp_path: Path) -> None:
    """Airflow lets some people edit what goes between tasks, who may not name a lake."""
    other = Lake.create(str(tmp_path / "other"))
    other.create_pool("a", key="k")
    packs = tasks.find("retention", config(lake), None)
    found = tasks.work_of("retention", packs, named=lake.store.uri)[0]
    work = [replace(found, lake=other.store.uri)]
    (inside,), (outside,) = (tasks.keep(one, one.store.uri, work) for one in (lake, other))
    before = names_in(other)
    given: dict[str, Any] = {"ti": Instance(), "task": SimpleNamespace(), "params": {"lake": other.store.uri}}
    for one, error in ((inside, Corrupt), (outside, InvalidInput), ({**inside, "lake": "any"}, InvalidInput)):
        with pytest.raises(error, match="clear the task `find`"):
            tasks.run("retention", [one], config(lake), given)
    assert names_in(other) == before
    takes_params = {**config(lake), "takes_params": True}
    named = tasks.named_lake(takes_params, given["params"])
    assert [one.pool for one in tasks.work_of("retention", [outside], named=named)] == ["a"]


@dataclass
class Edited:
    """A pack of another lake, which someone put in the place of a pack, and all that the lake holds."""

    pack: dict[str, Any]
    lake: Lake
    before: list[str]

    def is_untouched(self) -> bool:
        return self.before == names_in(self.lake)


@pytest.fixture
def edited(tmp_path: Path) -> Edited:
    """Someone who may edit what goes between tasks hands over a pack of a lake that the run does not name."""
    other = Lake.create(str(tmp_path / "other"))
    other.create_pool("a", key="k", settings={"history.keep": "0s"}).branch().append(pa.table({"k": [1]}))
    (pack,) = tasks.find("retention", config(other), None)
    return Edited(pack, other, names_in(other))


def test_a_report_opens_no_lake_that_the_run_does_not_name(lake: Lake, edited: Edited) -> None:
    """The answer is edited too: what a person refuses is written down as jobs that were put off."""
    refusal = {"chosen_options": ["Reject"], "by": "ann"}
    (inside, *_) = tasks.find("retention", config(lake), None)
    for packs in ([edited.pack], [inside, edited.pack]):
        with pytest.raises(
            InvalidInput, match=r"which was not opened; the run names .*: clear the task `find`"
        ):
            tasks.report("retention", packs, [], config(lake), answer=refusal)
    assert edited.is_untouched()
    assert list_jobs(lake, state="put off") == []
    params = {"lake": edited.lake.store.uri}
    takes_params = {**config(lake), "takes_params": True}
    tasks.report("retention", [edited.pack], [], takes_params, params=params, answer=refusal)
    assert [job.pool for job in list_jobs(edited.lake, state="put off")] == ["a"], "a lake that the run names"


@pytest.mark.parametrize("is_named", [True, False])
def test_a_person_is_asked_about_no_lake_that_the_run_does_not_name(
    lake: Lake, edited: Edited, is_named: bool
) -> None:
    plain = config(edited.lake if is_named else lake)
    with DAG("d", schedule=None):
        asking = LakeApproval(
            task_id="approve",
            agent="retention",
            packs=[edited.pack],
            config=plain,
            timeout=dt.timedelta(days=1),
        )
    if is_named:
        assert asking.asked({}).splitlines()[2].startswith("- `a: ")
    else:
        with pytest.raises(InvalidInput, match="clear the task `find`"):
            asking.execute({})
        assert asking.body is None


@pytest.mark.parametrize("name", ["work", "packs"])
def test_a_task_plans_nothing_in_a_lake_that_the_run_does_not_name(
    lake: Lake, edited: Edited, name: str
) -> None:
    """Lineage and links ask for the plan, without the context of the run."""

    def run(**given: Any) -> None:
        """What the task would do."""

    def planned(config: dict[str, Any], params: dict[str, Any]) -> list[str]:
        pack = edited.pack if name == "work" else [edited.pack]
        kwargs = {name: pack, "config": config}
        with DAG("d", schedule=None):
            task = LakeTaskOperator(task_id="run", agent="retention", python_callable=run, op_kwargs=kwargs)
        task.render_template_fields({"params": params})  # type: ignore[typeddict-item]
        return [effect.lake for effect in task.planned_effects()]

    other = edited.lake.store.uri
    assert planned(config(lake), {"lake": other}) == []
    assert planned({**config(lake), "takes_params": True}, {"lake": other}) == [other]
    assert planned(config(edited.lake), {}) == [other]


def test_a_task_that_airflow_could_hand_no_pack_plans_nothing(lake: Lake) -> None:
    with DAG("d", schedule=None):
        result = XComArg(BaseOperator(task_id="find"))
    assert tasks.planned("retention", result, config(lake), params=None) == []
    assert tasks.planned("retention", [result], config(lake), params=None) == []
    packs = tasks.find("retention", config(lake), None)
    assert len(tasks.planned("retention", packs, config(lake), params=None)) == 3


def test_a_submitted_job_is_of_the_lake_that_the_run_names(lake: Lake, edited: Edited) -> None:
    def task(work: Any) -> SubmittedRun:
        with DAG("d", schedule=None):
            return SubmittedRun(
                task_id="run", agent="retention", work=work, config=config(lake), conn_id="none"
            )

    with pytest.raises(InvalidInput, match="clear the task `find`"):
        task(edited.pack).execute({})
    assert edited.is_untouched()
    assert task(edited.pack).planned_effects() == []
    waiting = task(edited.pack)
    waiting.work = XComArg(BaseOperator(task_id="find"))
    assert waiting.planned_effects() == []
    assert len(list(task(tasks.find("retention", config(lake), None)).planned_effects())) == 3


def test_every_task_that_reads_packs_knows_what_the_group_names() -> None:
    params = {"lake": Param("l")}
    with DAG("d", schedule=None, params=params) as dag:
        named = LakeConfig(lake="{{ params.lake }}", approval=True)
        RetentionGroup(named, takes_params=True)
        CheckpointGroup(LakeConfig(lake="l"))
    approve, report, others = map(
        dag.get_task, ("retention.approve", "retention.report", "checkpoint.report")
    )
    approve.packs = []
    approve.render_template_fields({"params": {"lake": "other"}})
    assert tasks.named_lake(approve.config, None) == "other"
    assert [one.op_args[2]["request"]["lake"] for one in (report, others)] == ["{{ params.lake }}", "l"]
