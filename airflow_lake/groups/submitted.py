"""The task `run` of an agent as a job of spark-submit: `LakeConfig(submit={...})`.

    LakeConfig(spark="yarn", submit={"deploy_mode": "cluster", "yarn_track_via_rm_api": True})

The job is `spark_apps/agent.py`: it reads its pack of work from the lake, and writes its outcome there.
Airflow's SparkSubmitOperator submits it, with these arguments.  In cluster mode that operator stores the id of
the job, so that a retry after a killed worker finds the job that still runs (`durable`).  This task also stores
the name of the outcome, and the names of its packs.  Once the outcome is read, all this is deleted, so a retry
after a failure submits a new job.

Airflow stores such values by map index, and keeps them when the run is cleared.  Then the index may have another
pack, or the files of an interval may have changed.  In that case the task waits until the old job has ended, and
submits its own.

In client mode the driver is a process of the worker, and inherits the options of the connection.  In cluster
mode it opens the lake with the credentials that it finds in the cluster, or with `env_vars` (decision 132).
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator

import spark_apps
from airflow_lake.effects import Effect, done_work
from airflow_lake.groups import tasks
from airflow_lake.lineage import Tells
from airflow_lake.links import LINKS
from airflow_lake.reach import open_lake
from airflow_lake.rendering import KeepsTexts
from airflow_lake.tries import tell_of_tries

if TYPE_CHECKING:
    from log_lake.agents.work import Work
    from log_lake.lake import Lake

APPLICATION = str(Path(spark_apps.__path__[0]) / "agent.py")
OUTCOME = "lake_outcome"
"""The name under which Airflow stores, with the task, the packs of its job, and the name of its outcome."""


class SubmittedRun(KeepsTexts, Tells, SparkSubmitOperator):
    """One pack of work as a submitted job, or all packs of an agent that does them together.

    `work`: a pack, or a list of packs, from `tasks.find`.  `config`: the plain values of the group.
    `to_announce`: the group has a task `announce`.  The other arguments are those of SparkSubmitOperator.
    """

    template_fields: Sequence[str] = (*SparkSubmitOperator.template_fields, "work", "config")
    operator_extra_links = LINKS

    def __init__(
        self,
        *,
        agent: str,
        work: Any,
        config: Mapping[str, Any],
        to_announce: bool = False,
        application: str = APPLICATION,
        name: str = "",
        **kwargs: Any,
    ) -> None:
        super().__init__(application=application, name=name or f"lake {agent}", **kwargs)
        self.agent = agent
        self.to_announce = to_announce
        self.work = work
        self.config = config
        self.effects: list[Effect] = []
        self.outcome = ""

    @property
    def packs(self) -> list[Mapping[str, Any]]:
        """Returns the packs; call it when the task runs."""
        return [self.work] if isinstance(self.work, Mapping) else list(self.work)

    @property
    def pack_names(self) -> list[str]:
        """Returns the names of the packs; each `find` makes new names."""
        return [str(pack["pack"]) for pack in self.packs]

    def planned_effects(self) -> Iterable[Effect]:
        """Returns the effects that the packs ask for."""
        work = [self.work] if isinstance(self.work, Mapping) else self.work
        return tasks.planned(self.agent, work, self.config, params=self.params_of_run)

    def execute(self, context: Any) -> list[dict[str, Any]]:
        """Returns the results of the packs.  Raises the error of a piece of work, and AirflowException if the job
        failed."""
        from lake_core import naming
        from lake_core.store import address_of
        from log_lake.agents.driver import Outcome
        from log_lake.agents.packs import read_outcome
        from log_lake.lake.author import default_metadata
        from spark_apps.agent import OPTIONS

        tell_of_tries(context.get("ti"))
        tasks.check_any(self.packs)
        named = tasks.named_lake(self.config, context.get("params"))
        tasks.check_lake(self.packs, named=named)
        lake = open_lake(named)
        all_work = tasks.work_of(self.agent, self.packs, named=named, opened=lambda _: lake)
        self.fresh = self.outcome = naming.pack(lake.context.ids.new(), 0)
        kept = context.get("task_state_store")
        if kept is not None and (before := kept.get(OUTCOME)) is not None:
            if before["packs"] == self.pack_names and not self._has_changed(lake, all_work):
                self.outcome = str(before["outcome"])
            else:
                self._end_other(lake, str(before["outcome"]), context)
        self.application_args = [
            *("--lake", lake.store.uri, "--agent", self.agent, "--outcome", self.fresh),
            *(word for name in self.pack_names for word in ("--pack", name)),
            *("--metadata", json.dumps(default_metadata())),
        ]
        os.environ[OPTIONS] = json.dumps(dict(address_of(lake.store).options))
        try:
            super().execute(context)
        finally:  # `dag.test()` runs other tasks in this process, and these may be credentials
            os.environ.pop(OPTIONS, None)
        values = read_outcome(lake, self.outcome)
        _forget(kept)
        outcome = Outcome.of(values, agent=self.agent)
        self.effects = [
            effect
            for piece, result in outcome.done
            if not getattr(result, "failed", "")
            for effect in done_work(all_work[piece], result, agent=self.agent)
        ]
        if self.to_announce:
            tasks.announce_later(outcome.results, context)
        return tasks.results_of(outcome, context)

    def submit_job(self, context: Any) -> str | None:
        """Submits the job.  First it stores the outcome's name, before the job can write it; from then on an
        earlier job no longer counts."""
        self.outcome = self.fresh
        if (kept := context.get("task_state_store")) is not None:
            kept.set(OUTCOME, {"outcome": self.fresh, "packs": self.pack_names})
        return super().submit_job(context)

    def _has_changed(self, lake: Lake, all_work: Iterable[Work]) -> bool:
        """Whether an interval of the work has other files now than `find` found."""
        from log_lake.agents.driver import agent_of

        return any(agent_of(self.agent).has_changed(lake, work) for work in all_work)

    def _end_other(self, lake: Lake, outcome: str, context: Any) -> None:
        """Waits until a job with other packs, or other files, has ended, reports what it loaded, and forgets it.

        Otherwise it would work beside this one, and might replace an interval by older files.
        """
        from airflow.sdk.exceptions import AirflowException

        from lake_core.errors import NotFound
        from log_lake.agents.driver import Outcome
        from log_lake.agents.packs import read_outcome

        kept = context["task_state_store"]
        job = kept.get(self.external_id_key)
        self.log.warning(
            "the job %s of an earlier try did other work; its outcome is not that of this task", job
        )
        if job and self.is_job_active(self.get_job_status(job, context)):
            self.log.info("waits until it has ended")
            with contextlib.suppress(AirflowException):  # its failure is not that of this task
                self.poll_until_complete(job, context)
        if self.to_announce:
            with contextlib.suppress(NotFound):  # it did not get to its end
                values = read_outcome(lake, outcome)
                results = Outcome.of(values, agent=self.agent).results
                tasks.announce_later(results, context)
        _forget(kept)


def _forget(kept: Any) -> None:
    """Forgets the job of a try: the stored facts about its end, and its outcome, but not the results to
    announce."""
    if kept is None:
        return
    handed_over = kept.get(tasks.UNANNOUNCED)
    kept.clear()
    if handed_over:
        kept.set(tasks.UNANNOUNCED, handed_over)
