"""An agent as a DAG of its own, and the DAG that applies a policy file: schedule, trigger form, one run at a time.

The files in `dags/` use it:

    with agent_dag("compact", doc=__doc__):
        CompactGroup(agent_config("compact"), takes_params=True, prefix_group_id=False)

Variables in the environment of the dag processor:

    LAKE_COMPACT_SCHEDULE       when the agent runs; not set: the `schedule` in the agent's row; empty: by hand only
    LAKE_INTERVALS_TIMEZONE     the zone of its days; UTC if it is not set
    LAKE_UPKEEP_AIRFLOW_POOL    the pool of Airflow in which all but ingest and intervals run
    LAKE_UPKEEP_POOL_SLOTS      how many slots of that pool each task `run` takes
    LAKE_COMPACT_SPARK_CONF     settings of Spark for an agent, such as resources, as a JSON object of texts
    LAKE_APPROVAL               retention, erasure, or both with a comma: a person is asked before they delete
"""

from __future__ import annotations

import json
import os
from datetime import datetime
from typing import Any

from airflow.sdk import DAG, CronDataIntervalTimetable, Param

from airflow_lake.defaults import DEFAULT_ARGS, count
from airflow_lake.effects import LOADING
from airflow_lake.groups.config import LakeConfig
from airflow_lake.runs import CONFIRM, OF_FORM
from log_lake.agents.roster import AGENTS, PARAMETERS, Parameter, ParameterKind

START = datetime(2026, 1, 1)


COMMON = {
    "lake": Param(
        "",
        type=["null", "string"],
        title="Lake",
        description=(
            "Id of a connection of type lake, or a URI (path, s3://, gs://). Empty: LAKE of the worker, then "
            "lake_default"
        ),
    ),
    "pools": Param(
        [],
        type=["null", "array"],
        items={"type": "string"},
        title="Pools",
        description="Names of pools, one a line. Leave empty for all pools that have work",
    ),
    "dry_run": Param(False, type="boolean", title="Dry run", description="Log the plan; change nothing"),
}


def _field(parameter: Parameter) -> Param:
    """Returns the field of a parameter in the trigger form."""
    how: dict[str, Any] = {
        "title": parameter.title,
        "description": parameter.says[0].upper() + parameter.says[1:],
    }
    match parameter.kind:
        case ParameterKind.FLAG:
            return Param(parameter.default, type="boolean", **how)
        case ParameterKind.TEXTS:
            return Param([], type=["null", "array"], items={"type": "string"}, **how)
        case ParameterKind.COUNT:  # Airflow hands no task an integer that is too large for its database
            return Param(None, type=["null", "integer"], minimum=1, maximum=1_000_000, **how)
    if parameter.examples:
        how["examples"] = list(parameter.examples)
    if parameter.choices is not None:
        how |= {"enum": [None, *parameter.choices()], "values_display": {"null": "as each pool says"}}
    return Param(parameter.default, type=["null", "string"], **how)


OF_DELETING = {
    "dry_run": Param(
        True,
        type="boolean",
        title="Dry run",
        description="Log the plan; change nothing. Off: delete for good. Runs by schedule are no dry runs",
        **{OF_FORM: True},
    ),
    CONFIRM: Param(
        None,
        type=["null", "string"],
        title="Confirm",
        description="Without a dry run: the names of the pools again, with spaces between; or, for all: all pools",
        **{OF_FORM: True},
    ),
}
"""The fields of the agents that delete for good; they replace the common fields with these names."""


OF_APPLY = {
    "lake": COMMON["lake"],
    "path": Param(
        "",
        type=["null", "string"],
        title="Policy file",
        description=(
            "A path on the worker, s3:// or gs://. A relative one begins at the folder of the DAG file. Empty: "
            "LAKE_POLICY_FILE of the worker"
        ),
    ),
    "dry_run": Param(
        True,
        type="boolean",
        title="Dry run",
        description="Log the difference; change nothing. Off: apply the file. Runs by schedule are no dry runs",
        **{OF_FORM: True},
    ),
    "prune": Param(
        False, type="boolean", title="Prune", description="Drop the pools that the file does not name"
    ),
    "yes": Param(
        False,
        type="boolean",
        title="It may remove",
        description="Without this, a run that would drop pools or let agents remove more fails",
    ),
    CONFIRM: Param(
        None,
        type=["null", "string"],
        title="Confirm",
        description="If pools are dropped: their names again, with spaces between, as a dry run lists them",
        **{OF_FORM: True},
    ),
}


def apply_dag(*, usually: str, doc: str | None, file: str) -> DAG:
    """Returns the DAG `lake_apply`.  `file` is the DAG file; relative paths of policy files begin at its
    folder."""
    schedule = _schedule("apply", usually)
    how = {"start_date": START, "max_active_runs": 1, "default_args": DEFAULT_ARGS}
    dag = _dag("apply", schedule, doc, OF_APPLY, **how)
    dag.fileloc = file
    return dag


APPROVED = tuple(agent.name for agent in AGENTS.values() if agent.deletes)
"""The agents that may ask a person before they delete."""


def agent_dag(name: str, *, doc: str | None) -> DAG:
    """Returns the DAG `lake_NAME` of the agent.  If its schedule cuts time into intervals, runs of the DAG may
    overlap."""
    row = AGENTS[name]
    schedule = _schedule(name, row.schedule)
    params = COMMON | of_agent(name) | (OF_DELETING if row.deletes else {})
    if not row.by_interval:
        return _dag(name, schedule, doc, params, start_date=START, max_active_runs=1)
    timetable = CronDataIntervalTimetable(schedule, _zone(name)) if schedule else None
    return _dag(name, timetable, doc, params, start_date=datetime(2000, 1, 1))


def _zone(name: str) -> str:
    """Returns the zone of the schedule's days.  Raises ValueError if there is no such zone."""
    import pendulum

    variable = f"LAKE_{name.upper()}_TIMEZONE"
    zone = os.environ.get(variable, "") or "UTC"
    try:
        pendulum.timezone(zone)
    except (ValueError, LookupError) as error:
        raise ValueError(f"{variable}={zone!r}: must be a time zone, as Asia/Tokyo") from error
    return zone


def of_agent(name: str) -> dict[str, Param]:
    """Returns the agent's own parameters, besides those of all agents, as parameters of a DAG."""
    return {parameter: _field(PARAMETERS[parameter]) for parameter in AGENTS[name].parameters}


def agent_config(name: str) -> LakeConfig:
    """Returns the config of an agent in its own DAG.  Agents that bring data stay in Airflow's default pool."""
    if name in LOADING:
        return LakeConfig(spark_conf=_spark_conf(name))
    return LakeConfig(
        approval=name in _approvals(os.environ.get("LAKE_APPROVAL", "")),
        airflow_pool=os.environ.get("LAKE_UPKEEP_AIRFLOW_POOL", ""),
        pool_slots=count("LAKE_UPKEEP_POOL_SLOTS", 1),
        spark_conf=_spark_conf(name),
    )


def _spark_conf(name: str) -> dict[str, str]:
    """Returns the settings of Spark in LAKE_NAME_SPARK_CONF, such as resources.  Raises ValueError."""
    variable = f"LAKE_{name.upper()}_SPARK_CONF"
    text = os.environ.get(variable, "")
    try:
        conf = json.loads(text or "{}")
    except ValueError:
        conf = None
    if not isinstance(conf, dict) or not all(isinstance(value, str) for value in conf.values()):
        raise ValueError(
            f'{variable}={text!r}: must be a JSON object of texts, as {{"spark.executor.memory": "8g"}}'
        )
    return conf


def _approvals(text: str) -> set[str]:
    """Returns the agents that ask a person.  Raises ValueError for another word: a typing error must not turn an
    approval off."""
    names = {word.strip().lower() for word in text.split(",")} - {""}
    if unknown := sorted(names - set(APPROVED)):
        raise ValueError(
            f"LAKE_APPROVAL={text!r}: no agent {unknown[0]!r} asks; name {' or '.join(APPROVED)}, or both"
        )
    return names


def _schedule(name: str, usually: str) -> str | None:
    return os.environ.get(f"LAKE_{name.upper()}_SCHEDULE", usually) or None


def _dag(name: str, schedule: Any, doc: str | None, params: dict[str, Param], **how: Any) -> DAG:
    return DAG(
        dag_id=f"lake_{name}",
        schedule=schedule,
        catchup=False,
        params=params,
        tags=["lake"],
        doc_md=doc,
        **how,
    )
