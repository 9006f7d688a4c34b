"""One agent as a task group, for any DAG:

    with DAG("etl", schedule="@hourly"):
        my_task() >> CompactGroup(LakeConfig(lake="lake_default", pools=("flights",)))

    find (no Spark) -> run (mapped: at most 64 tasks, packed) -> report

If the config wants an approval, a person must approve between find and run (`approval`).

The group reads parameters of its DAG only if it `takes_params`, because they may be for something else.  While
the DAG file is parsed, nothing of the lake is read.  If something failed, the report fails, and so does the run
of the DAG.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from airflow.sdk import TaskGroup, get_current_context

from airflow_lake.assets import lake_alias
from airflow_lake.defaults import ASKED, DEFAULT_ARGS, FIND, NEXT, REPORT, WORK, priority_args, unless_given
from airflow_lake.groups import tasks
from airflow_lake.groups.bounds import Bounds
from airflow_lake.groups.config import LakeConfig, check_xcom, checked, in_dag, request_of
from airflow_lake.groups.decorator import lake_task
from airflow_lake.groups.question import ANSWER
from airflow_lake.runs import check_typed, conf_of, marked_for_form, params_of, without_form
from log_lake.agents.roster import AGENTS


class AgentGroup(TaskGroup):
    """A group with the tasks find, run and report of one agent.

    `after`: the group of another agent.  This group's tasks `run` wait until those of the other have ended,
    even if they failed.  `own_pools`: if the config names pools, the agent also looks at the lake's own pools.
    """

    agent: ClassVar[str]
    default_args: dict[str, Any]
    announces: ClassVar[bool] = False
    """Whether a task `announce` emits events of what `run` commits."""

    def __init__(
        self,
        config: LakeConfig | None = None,
        *,
        group_id: str = "",
        takes_params: bool = False,
        after: AgentGroup | None = None,
        own_pools: bool = False,
        default_args: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        config = checked(config, who=type(self).__name__)
        if config.approval and not AGENTS[self.agent].deletes:
            raise ValueError(f"the agent {self.agent} deletes nothing that is needed: it has no approval")
        super().__init__(
            group_id=group_id or self.agent,
            default_args={**config.pool_args, **(default_args or {})},
            tooltip=kwargs.pop("tooltip", AGENTS[self.agent].says),
            **kwargs,
        )
        # Airflow has put those of the groups around this one below them, but not those of the DAG
        self.users_args = {**self.dag.default_args, **self.default_args}
        check_xcom(self.users_args, who=type(self).__name__, what="their work")
        self.default_args = unless_given(self.users_args, DEFAULT_ARGS, priority_args(self.agent))
        self.config = config = in_dag(config, self.users_args)
        self.takes_params = takes_params
        self.after = after
        self.own_pools = own_pools
        with self:
            plain = self.config.plain(agent=self.agent, also=AGENTS[self.agent].parameters)
            self.add_tasks(plain | {"takes_params": takes_params})

    def add_tasks(self, config: dict[str, Any]) -> None:
        """Adds the tasks to the group."""
        packs = self.find_task()(config)
        self.results = results = self.run_results(packs, config)
        if self.after is not None:
            self.after.results >> results
        approve = ""
        if self.config.approval:
            from airflow_lake.groups.approval import LakeApproval

            timeout = self.config.approval_timeout
            # Airflow keeps what a template gave: only what names the lake, and no condition of an erasure
            lake = {
                "request": {"lake": config["request"]["lake"]},
                "filled": [name for name in config["filled"] if name == "lake"],
                "takes_params": config["takes_params"],
            }
            asking = LakeApproval(
                task_id="approve", agent=self.agent, packs=packs, config=lake, timeout=timeout, **ASKED
            )
            asking >> results
            approve = asking.task_id
        self.report_task(find=packs.operator.task_id, approve=approve)(packs, results, config)
        self.add_after(results, config)

    def add_after(self, results: Any, config: dict[str, Any]) -> None:
        """Adds the tasks that run after `run` and use its results."""

    @property
    def find_args(self) -> dict[str, Any]:
        """Returns arguments that only this agent's `find` has."""
        return {}

    @property
    def work_args(self) -> dict[str, Any]:
        """Returns the arguments for the tasks `run`: their time limit, slots and trigger rule."""
        limit = {name: value for name, value in WORK.items() if name not in self.users_args}
        rule = ASKED if self.config.approval else NEXT if self.after is not None else {}
        return {**limit, **self.config.slot_args, **rule}

    @property
    def given_by(self) -> Callable[[Any], dict[str, Any]]:
        """Returns a function that passes to `tasks.find` the run's parameters, and what the run may name.

        The function holds no reference to a task or to the group.
        """
        takes_params = self.takes_params
        bounds = Bounds.of(self.config, params=self.dag.params, takes_params=takes_params)
        marked = marked_for_form(self.dag.params) if takes_params else frozenset()

        def given(context: Any) -> dict[str, Any]:
            params, conf = params_of(context, task="find") if bounds.reads_params else None, conf_of(context)
            if takes_params:
                params = without_form(params or {}, conf, marked=marked)
                if not params.get("dry_run"):
                    pools = params.get("pools") or ()
                    check_typed(conf, pools, marked=marked, what="delete for good", task="find")
            return {"params": params if takes_params else None, "bounds": bounds, "conf": conf}

        return given

    def find_task(self) -> Any:
        """Returns the task that finds the work."""
        agent, find_args, own_pools = self.agent, self.find_args, self.own_pools
        given_by = self.given_by
        own = FIND if "retry_policy" not in self.users_args else {}

        @lake_task(**own)
        def find(config: dict[str, Any]) -> list[dict[str, Any]]:
            context = get_current_context()
            given = given_by(context)
            return tasks.find(agent, config, task=context["ti"], own_pools=own_pools, **given, **find_args)

        return find

    def run_results(self, packs: Any, config: dict[str, Any]) -> Any:
        """Returns the results of the tasks `run`, one for each pack.  Each task does the work itself, or submits
        it as a job."""
        if self.config.submit is None:
            return self.run_task().partial(config=config).expand(work=packs)
        submitted = self.submitted
        return (
            submitted.partial(**self.submit_args(config), map_index_template="{{ task.work['title'] }}")
            .expand(work=packs)
            .output
        )

    @property
    def submitted(self) -> Any:
        """Returns the operator that submits jobs.  Raises ValueError if Airflow's Spark provider is not
        installed."""
        try:
            from airflow_lake.groups.submitted import SubmittedRun
        except ModuleNotFoundError as error:
            raise ValueError(
                "LakeConfig: submit needs Airflow's Spark provider, which is not installed here: "
                "pip install 'log-lake[airflow-spark]'"
            ) from error
        return SubmittedRun

    def submit_args(self, config: dict[str, Any]) -> dict[str, Any]:
        """Returns the arguments for the operator that submits jobs, besides the work."""
        own = {"task_id": "run", "agent": self.agent, "config": config, "conn_id": self.config.spark}
        conf = {**self.config.spark_conf, **(self.config.submit or {}).get("conf", {})}
        return {**self.work_args, **(self.config.submit or {}), **own, "conf": conf}

    def run_task(self) -> Any:
        """Returns the task that does one pack of work."""
        agent, to_announce = self.agent, self.announces

        @lake_task(agent=agent, map_index_template="{{ work['title'] }}", **self.work_args)
        def run(work: dict[str, Any], config: dict[str, Any]) -> list[dict[str, Any]]:
            return tasks.run(agent, [work], config, get_current_context(), to_announce=to_announce)

        return run

    def report_task(self, *, find: str, approve: str = "", **how: Any) -> Any:
        """Returns the last task.  It reads what the tasks with the ids `find` and `approve` returned."""
        agent = self.agent

        @lake_task(**REPORT, **how)
        def report(
            packs: list[dict[str, Any]] | None, results: Any, config: dict[str, Any]
        ) -> dict[str, int]:
            context = get_current_context()
            ti = context["ti"]
            if packs is None:
                tasks.check_wanted(ti, find)
            answer = ti.xcom_pull(task_ids=approve, key=ANSWER, map_indexes=ti.map_index) if approve else None
            put_off = tasks.put_off_by_find(ti, find)
            return tasks.report(
                agent,
                packs,
                list(results or []),
                config,
                params=context.get("params"),
                put_off=put_off,
                answer=answer,
            )

        return report


class EmittingGroup(AgentGroup):
    """The group of an agent that loads: it emits an asset event for each pool to which it committed
    (`airflow_lake.assets`).

    The task `announce` emits the events, in parallel to `report`, which may fail, and even if tasks `run`
    failed.  Airflow emits the events of a task only if it succeeds.  So if `run` emitted them, a task that
    fails would lose the events of what it committed before.
    """

    announces = True

    def submit_args(self, config: dict[str, Any]) -> dict[str, Any]:
        """Returns the arguments, with one more that says that `announce` emits the events."""
        return {**super().submit_args(config), "to_announce": True}

    def add_after(self, results: Any, config: dict[str, Any]) -> None:
        """Adds `announce` to the group."""
        results >> self.announce_task(run=results.operator.task_id)(config)

    def announce_task(self, *, run: str) -> Any:
        """Returns the task that emits the events for what the tasks `run` committed; `run` is their task id."""
        takes_params, alias = self.takes_params, lake_alias(self.config.lake)

        @lake_task(outlets=[alias], **REPORT)
        def announce(config: dict[str, Any], params: Any = None) -> None:
            context = get_current_context()
            request = request_of(config, params if takes_params else None)
            tasks.announce(tasks.unannounced(context["ti"], run), request, context["outlet_events"][alias])

        return announce
