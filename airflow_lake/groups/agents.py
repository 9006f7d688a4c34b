"""The agents as task groups: one for each row of `log_lake.agents.roster`, with names such as `CompactGroup`.

The pages of the agents say what each does (docs/airflow.md).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from airflow.sdk import get_current_context

from airflow_lake import given
from airflow_lake.assets import lake_asset, partition_keys
from airflow_lake.defaults import REPORT
from airflow_lake.groups import tasks
from airflow_lake.groups.agent import AgentGroup, EmittingGroup
from airflow_lake.groups.config import LakeConfig, request_of
from airflow_lake.groups.decorator import lake_task
from airflow_lake.interval import in_zone, interval_of, refuse_given, zone_of
from log_lake.agents.roster import AGENTS, Purpose, group_name


class IntervalsGroup(EmittingGroup):
    """Replaces the interval of the run in pools with `intervals.source`.

    The DAG's schedule must cut time into intervals (CronDataIntervalTimetable); the days of `intervals.source`
    are days in the schedule's zone.  If the config names the pools, `announce` emits an event for each partition
    of the interval.  Otherwise each pool has one event without a partition, because Airflow accepts partitions
    only for assets that it knows when it parses the file.  A pool to which nothing was committed has no event.

    A run that was not started by a schedule or a backfill appends `files`, because its interval is the last one
    before its date.  With `by_hand=True` it replaces that interval too.
    """

    agent = "intervals"

    def __init__(self, config: LakeConfig | None = None, *, by_hand: bool = False, **kwargs: Any) -> None:
        self.by_hand = given.fixed_flag(by_hand, "by_hand", who=type(self).__name__)
        super().__init__(config, **kwargs)

    def find_task(self) -> Any:
        """Returns the task that finds the files of the run's interval."""
        agent, pools, by_hand, given_by = self.agent, self.config.named_pools, self.by_hand, self.given_by
        zone = zone_of(self.dag)

        @lake_task
        def find(config: dict[str, Any], dag_run: Any = None) -> list[dict[str, Any]]:
            interval = interval_of(dag_run, by_hand=by_hand)
            begin, end = in_zone(interval, zone) if interval else (None, None)
            context = get_current_context()
            task = context["ti"]
            if pools and begin is not None and end is not None:
                partition_keys(begin, end, zone=zone)  # too many are refused before anything is replaced
            return tasks.find(
                agent,
                config,
                task=task,
                **given_by(context),
                begin=begin,
                end=end,
                run=f"{task.dag_id}:{dag_run.run_id}:{task.task_id}",
            )

        return find

    @property
    def assets(self) -> list[Any]:
        """Returns the assets of the named pools: Airflow accepts partitions only for assets that are
        outlets."""
        config = self.config
        return [lake_asset(pool, lake=config.lake, branch=config.branch) for pool in config.named_pools]

    def announce_task(self, *, run: str) -> Any:
        """Returns the task that emits the events.  It is not mapped, because each mapped task would emit the
        events of all outlets."""
        takes_params, assets, by_hand = self.takes_params, self.assets, self.by_hand
        zone = zone_of(self.dag)
        if not assets:
            return super().announce_task(run=run)

        @lake_task(outlets=assets, **REPORT)
        def announce(config: dict[str, Any], params: Any = None, dag_run: Any = None) -> None:
            context = get_current_context()
            request = request_of(config, params if takes_params else None)
            results = tasks.unannounced(context["ti"], run)
            interval = interval_of(dag_run, by_hand=by_hand)
            keys = partition_keys(*interval, zone=zone) if interval else ()
            context["task"].outlets = tasks.announce_partitions(
                results, request, keys, assets, context["outlet_events"]
            )

        return announce


class TogetherGroup(AgentGroup):
    """The group of an agent that does all its work at once: one Spark job for all pools.

    Without work, `run` skips itself and `report` says so, as in the other groups.
    """

    def add_tasks(self, config: dict[str, Any]) -> None:
        """Adds the tasks to the group.  `run` is not mapped, so the group itself may be mapped."""
        agent = self.agent

        @lake_task(agent=agent, **self.work_args)
        def run(packs: list[dict[str, Any]], config: dict[str, Any]) -> list[dict[str, Any]]:
            tasks.check_any(packs)
            return tasks.run(agent, packs, config, get_current_context())

        packs = self.find_task()(config)
        if self.config.submit is None:
            results = run(packs=packs, config=config)
        else:
            results = self.submitted(work=packs, **self.submit_args(config)).output
        self.report_task(find=packs.operator.task_id)(packs, results, config)


class ErasureGroup(AgentGroup):
    """Begins the erasures that the config asks for, and resumes pending ones.  An erasure cannot be undone.

    In a run that was not started by a schedule, a backfill or an asset, templates of the config that read the
    run's interval are refused unless `by_hand=True`.
    """

    agent = "erasure"

    def __init__(self, config: LakeConfig | None = None, *, by_hand: bool = False, **kwargs: Any) -> None:
        self.by_hand = given.fixed_flag(by_hand, "by_hand", who=type(self).__name__)
        super().__init__(config, **kwargs)

    @property
    def given_by(self) -> Callable[[Any], dict[str, Any]]:
        """Returns the function of every group, which here also refuses an interval that the run did not ask
        for."""
        of_run, asked, by_hand = super().given_by, tuple(self.config.asked.values()), self.by_hand

        def given_if_meant(context: Any) -> dict[str, Any]:
            task, find = context["ti"].task_id, context["task"]
            refuse_given(context.get("dag_run"), asked=asked, interval=None, by_hand=by_hand, task=task)
            find.check_condition(find.op_args[0]["request"].get("where"))
            return of_run(context)

        return given_if_meant

    @property
    def find_args(self) -> dict[str, Any]:
        """Returns the argument by which `run` begins the named erasures if a person must approve: a refused
        erasure must not become pending."""
        return {"begins": not self.config.approval}


def _group(name: str) -> type[AgentGroup]:
    """Returns the group of an agent; its row says the kind."""
    facts = AGENTS[name]
    kinds = (EmittingGroup,) if facts.purpose is Purpose.LOADING else (AgentGroup,)
    kinds = (TogetherGroup,) if facts.together else kinds
    return type(group_name(name), kinds, {"__doc__": f"{facts.says}.", "__module__": __name__, "agent": name})


_OWN: dict[str, type[AgentGroup]] = {"intervals": IntervalsGroup, "erasure": ErasureGroup}
"""Agents whose groups need more tasks than their row describes."""

GROUPS: dict[str, type[AgentGroup]] = {name: _OWN.get(name) or _group(name) for name in AGENTS}
"""The group of each agent, by the agent's name."""


def __getattr__(name: str) -> type[AgentGroup]:
    """`CompactGroup`, and so on."""
    for group in GROUPS.values():
        if group.__name__ == name:
            return group
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
