"""The configuration of a task group, as one value that a DAG file makes without a store or a connection.

Texts may be templates of Airflow (`"{{ params.pool }}"`), which are rendered when a task of the group runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from airflow_lake import given
from lake_core.naming import MAIN
from log_lake.agents.roster import KINDS, ParameterKind

_FIELDS = (
    ("lake", ParameterKind.TEXT, False),
    ("pools", ParameterKind.TEXTS, False),
    ("branch", ParameterKind.TEXT, False),
    ("spark", ParameterKind.TEXT, False),
    ("dry_run", ParameterKind.FLAG, False),
    ("airflow_pool", ParameterKind.TEXT, True),
    ("pool_slots", ParameterKind.COUNT, True),
    ("approval", ParameterKind.FLAG, True),
)
"""The types of the fields of the config.  A field marked true accepts no templates, because Airflow reads it when
it parses the file."""


OWN_FIELDS = ("lake", "pools", "branch", "dry_run")
"""Parameters of agents that are fields of the config."""
GROUPS_OWN = {
    "conn_id": "LakeConfig(spark=...) names the connection",
    "do_xcom_push": "the report of the group reads what the job hands over",
    **dict.fromkeys(("task_id", "agent", "work", "config", "to_announce"), "the group says it"),
}
"""Arguments of a submitted job that `submit` may not set, and why."""


LONGEST_WAIT = timedelta(days=29)
"""The longest wait for an approval: the work in question is stored for 30 days (`log_lake.agents.packs`)."""


@dataclass(frozen=True, kw_only=True)
class LakeConfig:
    """The lake, the pools and the Spark of a group.

    `lake`: the id of a connection of type lake, or a URI; empty: the variable LAKE of the worker, then
    lake_default. `pools`: empty: all pools that have work.  `spark`: the id of a connection of type
    spark_connect or spark; empty: the one in the lake's connection, otherwise LAKE_SPARK_REMOTE or
    LAKE_SPARK_MASTER of the worker.  `spark_conf`: settings of Spark, such as resources
    (`{"spark.executor.memory": "8g"}`).  `submit`: arguments of Airflow's SparkSubmitOperator; if it is set,
    even to `{}`, spark-submit submits each pack of work as a job by the connection `spark`, of type spark
    (`groups.submitted`).  `asked`: the parameters of a single agent, as in its trigger form (`{"wait": False}`).

    `airflow_pool`: the Airflow pool for all tasks of the group, which limits how many run at once; empty: that
    of the DAG's default_args, otherwise Airflow's default pool.  `pool_slots`: how many of its slots each task
    `run` takes, at least 1; the other tasks take one.  If the pool has fewer slots, the task never starts.
    `approval`: a person must approve before the retention or the erasure agent deletes; without an answer within
    `approval_timeout` nothing is deleted.
    """

    lake: str = ""
    pools: Sequence[str] | str = ()
    branch: str = MAIN
    spark: str = ""
    spark_conf: Mapping[str, str] = field(default_factory=dict)
    submit: Mapping[str, Any] | None = None
    dry_run: bool | str = False
    asked: Mapping[str, Any] = field(default_factory=dict)
    airflow_pool: str = ""
    pool_slots: int = 1
    approval: bool = False
    approval_timeout: timedelta = timedelta(days=7)

    def __post_init__(self) -> None:
        if not isinstance(self.asked, Mapping):
            raise ValueError(f"LakeConfig: asked must be parameters by name (got {self.asked!r})")
        if not _are_texts(self.spark_conf):
            raise ValueError(
                f"LakeConfig: spark_conf must be texts by the names of settings (got {self.spark_conf!r})"
            )
        for name in self.asked:
            if name in OWN_FIELDS:
                raise ValueError(f"LakeConfig: asked may not have {name!r}: write LakeConfig({name}=...)")
        if self.submit is not None and not isinstance(self.submit, Mapping):
            raise ValueError(
                f"LakeConfig: submit must be arguments of SparkSubmitOperator (got {self.submit!r})"
            )
        for name in self.submit or ():
            if name in GROUPS_OWN:
                raise ValueError(f"LakeConfig: submit may not have {name!r}: {GROUPS_OWN[name]}")
        if self.submit is not None and (not self.spark or given.is_template(self.spark)):
            raise ValueError(
                f"LakeConfig: submit needs spark, the id of a connection of type spark (got {self.spark!r})"
            )
        is_time = isinstance(self.approval_timeout, timedelta)
        if not is_time or not timedelta(0) < self.approval_timeout <= LONGEST_WAIT:
            raise ValueError(
                f"LakeConfig: approval_timeout must be a timedelta above 0, at most {LONGEST_WAIT.days} days "
                f"(got {self.approval_timeout!r})"
            )
        asked = dict(self.asked)
        for name, value in self.asked.items():
            if value is None:
                raise ValueError(f"LakeConfig: asked[{name!r}] is None: give a value, or leave it out")
            if name in KINDS:  # `plain` refuses what the agent does not know
                asked[name] = given.declared(value, name, KINDS[name], who="LakeConfig")
        values: dict[str, Any] = {"asked": asked}
        for name, kind, fixed in _FIELDS:
            values[name] = given.declared(getattr(self, name), name, kind, who="LakeConfig", fixed=fixed)
        pools = values["pools"]
        values["pools"] = tuple(pools) if isinstance(pools, list) else (pools,)
        values["branch"] = given.branch_or_main(self.branch)
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def named_pools(self) -> tuple[str, ...]:
        """The names of the pools, if their assets are known when the DAG file is parsed, that is, without
        templates."""
        return () if given.is_template((self.lake, self.branch, *self.pools)) else tuple(self.pools)

    @property
    def pool_args(self) -> dict[str, Any]:
        """Returns the arguments by which all tasks of the group run in the Airflow pool."""
        return {"pool": self.airflow_pool} if self.airflow_pool else {}

    @property
    def slot_args(self) -> dict[str, Any]:
        """Returns further arguments for the tasks `run`: how many slots of the Airflow pool each of them
        takes."""
        return {"pool_slots": self.pool_slots} if self.pool_slots > 1 else {}

    def plain(self, *, agent: str, also: tuple[str, ...]) -> dict[str, Any]:
        """Returns the request to an agent that knows the parameters `also`, and the Spark settings, as plain
        values.

        Raises ValueError for a parameter that the agent does not know.
        """
        asked = dict(self.asked)
        if self.branch != MAIN:
            asked["branch"] = self.branch
        unknown = sorted(set(asked) - set(also))
        if unknown:
            from log_lake.agents.request import COMMON

            raise ValueError(
                f"the agent {agent} has no parameter {unknown[0]!r}; it has {', '.join((*COMMON, *also))}"
            )
        request = {"lake": self.lake, "pools": list(self.pools), "dry_run": self.dry_run, **asked}
        config = {"request": request, "spark": self.spark, "spark_conf": dict(self.spark_conf)}
        return config | {
            "filled": [
                name for name, value in {**request, "spark": self.spark}.items() if given.is_template(value)
            ]
        }


def checked(config: Any, *, who: str) -> LakeConfig:
    """Returns the config of a group; None means the default lake.  Raises ValueError if `config` is not a
    LakeConfig."""
    if config is not None and not isinstance(config, LakeConfig):
        raise ValueError(
            f"{who}: config must be a LakeConfig, as LakeConfig(pools=['flights']) (got {config!r})"
        )
    return config or LakeConfig()


def in_dag(config: LakeConfig, default_args: Mapping[str, Any]) -> LakeConfig:
    """Returns the config; a lake and a Spark that it leaves out are those of the `default_args`, as for the
    operators of the DAG."""
    left_out = {
        name: default_args[name]
        for name in ("lake", "spark")
        if not getattr(config, name) and default_args.get(name)
    }
    return replace(config, **left_out) if left_out else config


def check_xcom(default_args: Mapping[str, Any], *, who: str, what: str) -> None:
    """Raises ValueError if the `default_args` turn XCom off, by which the tasks of a group hand over `what`."""
    if default_args.get("do_xcom_push", True) is not True:
        raise ValueError(
            f"{who}: do_xcom_push=False in default_args: the tasks of the group hand over {what} by XCom. Leave it "
            "out, or say default_args={'do_xcom_push': True} for the group"
        )


def _are_texts(value: Any) -> bool:
    """Whether the value is a mapping whose names and values are all texts."""
    return isinstance(value, Mapping) and all(isinstance(text, str) for text in (*value, *value.values()))


def request_of(config: Mapping[str, Any], params: Mapping[str, Any] | None) -> dict[str, Any]:
    """Returns the request of a run: the group's parameters, overridden by those that the run sets.

    A run cannot turn off a `dry_run` of the group, because an untouched trigger form says false.  `params` is
    None if the group does not read those of its DAG.  Raises InvalidInput for a parameter of the group that a
    template left empty: without it the agent would do more than intended, or do it elsewhere.
    """
    request = dict(config["request"])
    for name in config["filled"]:
        if name == "spark":
            given.filled_in(config["spark"], name, ParameterKind.TEXT, task="LakeConfig")
        else:
            request[name] = given.filled_in(request[name], name, KINDS[name], task="LakeConfig")
    for name, value in (params or {}).items():
        if name == "dry_run" and request.get(name) is True:
            continue
        is_flag = KINDS.get(name) is ParameterKind.FLAG  # an empty one is refused: it would change the lake
        if value is not None and (is_flag or value not in ("", [])):
            request[name] = value
        else:
            request.setdefault(name, value)
    return request
