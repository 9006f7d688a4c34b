"""An agent as a DAG of its own, and the DAG that applies a policy file: schedule, trigger form, one run at a time.

The files in `dags/` use it:

    with agent_dag("compact", usually="15 * * * *", doc=__doc__):
        CompactGroup(agent_config("compact"), takes_params=True, prefix_group_id=False)

Variables in the environment of the dag processor:

    LAKE_COMPACT_SCHEDULE       `usually` if it is not set; empty: by hand only
    LAKE_INTERVALS_TIMEZONE     the zone of its days; UTC if it is not set
    LAKE_UPKEEP_AIRFLOW_POOL    the pool of Airflow in which all but ingest and intervals run
    LAKE_UPKEEP_POOL_SLOTS      the slots of it that each task `run` takes
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
from log_lake.agents.roster import AGENTS
from log_lake.compaction.strategies import names

START = datetime(2026, 1, 1)


def _text(title: str, description: str, **schema: Any) -> Param:
    """A text that may be left out."""
    return Param(None, type=["null", "string"], title=title, description=description, **schema)


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
_PARAMETERS = {
    "branch": Param(
        "",
        type=["null", "string"],
        examples=["main"],
        title="Branch",
        description="The branch to work on. Leave empty for main",
    ),
    "limit": Param(
        None,
        type=["null", "integer"],
        minimum=1,
        maximum=1_000_000,  # Airflow hands no task an integer that is too large for its database
        title="Limit",
        description=("Work on at most so many batches of files, or pools; the rest waits for the next run"),
    ),
    "strategy": Param(
        None,
        type=["null", "string"],
        enum=[None, *names()],
        values_display={"null": "as each pool says"},
        title="Strategy",
        description="Use this instead of each pool's compact.strategy",
    ),
    "wait": Param(
        True,
        type="boolean",
        title="Wait for batches to fill",
        description=(
            "Let a batch that is not full wait for the pool's ingest.batch_age. Off: ingest everything now"
        ),
    ),
    "files": Param(
        [],
        type=["null", "array"],
        items={"type": "string"},
        title="Files",
        description="Only for manual runs: files to append, one a line",
    ),
    "where": _text("Where", "Erase records that fulfil this condition, in the pools that are named"),
    "key": _text(
        "Key",
        "Erase records of this key: the value as text; a JSON list of values if the key has several fields",
    ),
    "from": _text("From key", "Erase records from this key on (inclusive)"),
    "to": _text("To key", "Erase records up to this key (exclusive)"),
    "grace": _text(
        "Grace",
        "Objects that were written and not committed may be those of a load for this long (default: vacuum.grace)",
        examples=["1h", "1d", "7d"],
    ),
    "keep_history": Param(
        False,
        type="boolean",
        title="Keep the history",
        description="Do not purge the journal, whose entries may hold keys and bounds of the records",
    ),
}
"""The parameters of single agents; which agent has which, `log_lake.agents.roster` says."""


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
"""Of the agents that delete for good, in place of those of all."""


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
        False, type="boolean", title="Dry run", description="Log the difference; change nothing"
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
}


def apply_dag(*, usually: str, doc: str | None, file: str) -> DAG:
    """The DAG `lake_apply`.  `file` is the DAG file, whose folder relative paths of policy files begin at."""
    schedule = _schedule("apply", usually)
    how = {"start_date": START, "max_active_runs": 1, "default_args": DEFAULT_ARGS}
    dag = _dag("apply", schedule, doc, OF_APPLY, **how)
    dag.fileloc = file
    return dag


APPROVED = tuple(agent.name for agent in AGENTS.values() if agent.deletes)
"""The agents that may ask a person before they delete."""


def agent_dag(name: str, *, usually: str, doc: str | None, intervals: bool = False) -> DAG:
    """The DAG `lake_NAME`.  With `intervals` its schedule cuts time into intervals, and runs of it may overlap."""
    schedule = _schedule(name, usually)
    params = COMMON | of_agent(name) | (OF_DELETING if AGENTS[name].deletes else {})
    if not intervals:
        return _dag(name, schedule, doc, params, start_date=START, max_active_runs=1)
    timetable = CronDataIntervalTimetable(schedule, _zone(name)) if schedule else None
    return _dag(name, timetable, doc, params, start_date=datetime(2000, 1, 1))


def _zone(name: str) -> str:
    """The zone of the schedule's days.  Raises ValueError if there is no such zone."""
    import pendulum

    variable = f"LAKE_{name.upper()}_TIMEZONE"
    zone = os.environ.get(variable, "") or "UTC"
    try:
        pendulum.timezone(zone)
    except (ValueError, LookupError) as error:
        raise ValueError(f"{variable}={zone!r}: must be a time zone, as Asia/Tokyo") from error
    return zone


def of_agent(name: str) -> dict[str, Param]:
    """The parameters of the agent, beside those of all."""
    return {parameter: _PARAMETERS[parameter] for parameter in AGENTS[name].parameters}


def agent_config(name: str) -> LakeConfig:
    """The config of an agent in its own DAG.  Agents that bring data stay in Airflow's default pool."""
    if name in LOADING:
        return LakeConfig(spark_conf=_spark_conf(name))
    return LakeConfig(
        approval=name in _approvals(os.environ.get("LAKE_APPROVAL", "")),
        airflow_pool=os.environ.get("LAKE_UPKEEP_AIRFLOW_POOL", ""),
        pool_slots=count("LAKE_UPKEEP_POOL_SLOTS", 1),
        spark_conf=_spark_conf(name),
    )


def _spark_conf(name: str) -> dict[str, str]:
    """What LAKE_NAME_SPARK_CONF says: settings of Spark, such as resources.  Raises ValueError."""
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
    """The agents that ask a person.  Raises ValueError for another word: a slip must not turn an approval off."""
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
