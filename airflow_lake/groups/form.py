"""An agent as a DAG of its own: its schedule, its trigger form, one run at a time.  The files in `dags/` use it.

    with agent_dag("compact", usually="15 * * * *", doc=__doc__):
        CompactGroup(takes_params=True, prefix_group_id=False)

Scheduled by LAKE_COMPACT_SCHEDULE in the environment of the dag processor, by `usually` if that is not set;
empty: by hand only.
"""

from __future__ import annotations

import os
from datetime import datetime
from typing import Any

from airflow.sdk import DAG, CronDataIntervalTimetable, Param

from airflow_lake.defaults import DEFAULT_ARGS


def _text(title: str, description: str) -> Param:
    """A text that may be left out."""
    return Param(None, type=["null", "string"], title=title, description=description)


COMMON = {
    "lake": Param(
        "",
        type="string",
        title="Lake",
        description=(
            "Id of a connection of type lake, or a URI (path, s3://, gs://). Empty: LAKE of the worker, then "
            "lake_default"
        ),
    ),
    "pools": Param(
        [],
        type="array",
        items={"type": "string"},
        title="Pools",
        description="Names of pools, one a line. Leave empty for all pools",
    ),
    "dry_run": Param(False, type="boolean", title="Dry run", description="Log the plan; change nothing"),
}
OF_AGENT: dict[str, dict[str, Param]] = {
    "ingest": {
        "wait": Param(
            True,
            type="boolean",
            title="Wait for batches to fill",
            description=(
                "Let a batch that is not full wait for the pool's ingest.batch_age. Off: ingest everything now"
            ),
        )
    },
    "intervals": {
        "files": Param(
            [],
            type="array",
            items={"type": "string"},
            title="Files",
            description="Only for manual runs: files to append, one a line",
        )
    },
    "erasure": {
        "where": _text("Where", "Erase records that fulfil this condition, in the pools that are named"),
        "key": _text("Key", "Erase records of this key: a JSON value or list, or plain text"),
        "from": _text("From key", "Erase records from this key on (inclusive)"),
        "to": _text("To key", "Erase records up to this key (exclusive)"),
        "grace": _text(
            "Grace",
            "Objects that were written and not committed may be those of a load for this long (default: "
            "vacuum.grace)",
        ),
        "keep_history": Param(
            False,
            type="boolean",
            title="Keep the history",
            description="Do not purge the journal, whose entries may hold keys and bounds of the records",
        ),
    },
}


def agent_dag(name: str, *, usually: str, doc: str | None, intervals: bool = False) -> DAG:
    """The DAG `lake_NAME`.  With `intervals` its schedule cuts time into intervals, and runs of it may overlap."""
    schedule = os.environ.get(f"LAKE_{name.upper()}_SCHEDULE", usually) or None
    how: dict[str, Any] = {"start_date": datetime(2026, 1, 1), "schedule": schedule, "max_active_runs": 1}
    if intervals:
        how = {
            "start_date": datetime(2000, 1, 1),
            "schedule": CronDataIntervalTimetable(schedule, "UTC") if schedule else None,
        }
    return DAG(
        dag_id=f"lake_{name}",
        catchup=False,
        default_args=DEFAULT_ARGS,
        params=COMMON | OF_AGENT.get(name, {}),
        tags=["lake"],
        doc_md=doc,
        **how,
    )
