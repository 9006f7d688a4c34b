"""The seven agents as task groups.  What each does is on the pages of the agents (docs/airflow.md)."""

from __future__ import annotations

import datetime as dt
from typing import Any

from airflow.sdk import get_current_context, task

from airflow_lake.assets import lake_asset, partition_keys
from airflow_lake.defaults import REPORT
from airflow_lake.groups import tasks
from airflow_lake.groups.agent import AgentGroup, EmittingGroup
from airflow_lake.groups.decorator import lake_task


def _interval(dag_run: Any) -> tuple[dt.datetime, dt.datetime] | None:
    """The interval of a run; None if it has none, as one that an asset started, or one that is started by hand."""
    if dag_run.run_type == "manual":  # Airflow gives it the last interval before it
        return None
    begin, end = dag_run.data_interval_start, dag_run.data_interval_end
    return None if begin is None or end is None else (begin, end)


class IngestGroup(EmittingGroup):
    """Load new source files of pools with `ingest.source`, each once."""

    agent = "ingest"
    also = ("wait", "limit")
    says = "Loads new files, each once"


class IntervalsGroup(EmittingGroup):
    """Replace the interval of the run in pools with `intervals.source`.

    The DAG's schedule must cut time into intervals (CronDataIntervalTimetable).  If the config names the pools, the
    report emits an event for each partition of the interval; otherwise each pool has one event without a partition,
    since Airflow takes partitions only of assets that it knows when it parses the file.  A pool in which nothing
    was committed has none.
    """

    agent = "intervals"
    also = ("branch", "files")
    says = "A run replaces exactly its interval of time"

    def find_task(self) -> Any:
        """The task that finds the files of the run's interval."""
        agent, takes_params, pools = self.agent, self.takes_params, self.config.named_pools

        @lake_task
        def find(config: dict[str, Any], params: Any = None, dag_run: Any = None) -> list[dict[str, Any]]:
            begin, end = _interval(dag_run) or (None, None)
            if pools and begin is not None and end is not None:
                partition_keys(begin, end)  # too many are refused before anything is replaced
            return tasks.find(
                agent,
                config,
                params if takes_params else None,
                task=get_current_context()["ti"],
                begin=begin,
                end=end,
                run=dag_run.run_id,
            )

        return find

    def run_task(self) -> Any:
        """The task that does one pack; if the pools are named, the report emits the events."""
        return AgentGroup.run_task(self) if self.config.named_pools else super().run_task()

    def report_task(self, *, find: str, approve: str = "", **how: Any) -> Any:
        """The last task."""
        pools, agent, takes_params = self.config.named_pools, self.agent, self.takes_params
        if not pools:
            return super().report_task(find=find, approve=approve, **how)
        where = {"lake": self.config.lake, "branch": self.config.branch}
        assets = {pool: lake_asset(pool, **where) for pool in pools}

        @lake_task(outlets=list(assets.values()), **REPORT, **how)
        def report(
            packs: list[dict[str, Any]] | None,
            results: Any,
            config: dict[str, Any],
            params: Any = None,
            dag_run: Any = None,
        ) -> dict[str, int]:
            asked = params if takes_params else None
            context = get_current_context()
            put_off = tasks.put_off_by_find(context["ti"], find)
            done = list(results or [])
            totals = tasks.report(agent, packs, done, config, asked, put_off)
            interval = _interval(dag_run)
            keys = partition_keys(*interval) if interval else ()
            tasks.announce_partitions(assets, done, config, asked, keys, context)
            return totals

        return report


class CompactGroup(AgentGroup):
    """Merge pools in which many loads overlap, by their `compact.*`."""

    agent = "compact"
    also = ("branch", "limit", "strategy")
    says = "Merges pools in which many loads overlap"


class CheckpointGroup(AgentGroup):
    """Save the states of journals that have grown, and purge old entries: one Spark job for all of them.

    Without work, `run` is skipped and `report` says so, as in the other groups.
    """

    agent = "checkpoint"
    also = ("limit",)
    says = "Saves states, so that pools open quickly; purges old entries"

    def add_tasks(self, config: dict[str, Any]) -> None:
        """Put the tasks into the group; nothing is run if no journal has work."""

        @task.short_circuit(ignore_downstream_trigger_rules=False)
        def has_work(packs: list[dict[str, Any]]) -> bool:
            return bool(packs)

        agent = self.agent

        @lake_task(agent=agent, **self.work_args)
        def run(packs: list[dict[str, Any]], config: dict[str, Any]) -> list[dict[str, Any]]:
            return tasks.run(agent, packs, config, get_current_context())

        packs = self.find_task()(config)
        if self.config.submit is None:
            results = run(packs=packs, config=config)
        else:
            results = self.submitted(work=packs, **self.submit_args(config)).output
        has_work(packs) >> results
        self.report_task(find=packs.operator.task_id)(packs, results, config)


class TombstonesGroup(AgentGroup):
    """Remove deleted records from the objects within `tombstones.apply`."""

    agent = "tombstones"
    says = "Removes deleted records from the objects"


class RetentionGroup(AgentGroup):
    """Expire old records, and delete objects that are not needed any more."""

    agent = "retention"
    deletes = True
    says = "Expires old records; deletes objects that are not needed any more"


class ErasureGroup(AgentGroup):
    """Begin the erasures that the config asks for, and go on with pending ones.  An erasure cannot be undone."""

    agent = "erasure"
    deletes = True
    also = ("where", "key", "from", "to", "grace", "keep_history")
    says = "Erases records from every object; goes on with pending erasures"

    @property
    def find_args(self) -> dict[str, Any]:
        """With an approval, `run` begins what the run names: what is refused must not be pending."""
        return {"begins": not self.config.approval}
