"""What all agents have in common: retries, time limits, the trigger form, how a DAG is scheduled.

A task is tried again for about five minutes in all: an API server or a Spark server on a busy machine takes that
long to come up.  No task runs without a limit: one that looks at journals and source files may take `LOOKING`,
one that works on Spark LAKE_TASK_HOURS (default 6).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from airflow.sdk import ExceptionRetryPolicy, Param, RetryAction, RetryRule, dag

# a retry cannot help: a person must mend the input or the lake
FINAL = [f"lake_core.errors.{name}" for name in ("InvalidInput", "NotFound", "Corrupt", "Incomplete")]

LOOKING = timedelta(minutes=30)
WORKING = timedelta(hours=float(os.environ.get("LAKE_TASK_HOURS") or 6))

DEFAULT_ARGS: dict[str, Any] = {
    "retries": 5,
    "retry_delay": timedelta(seconds=10),
    "retry_exponential_backoff": 2.0,
    "max_retry_delay": timedelta(minutes=3),
    "retry_policy": ExceptionRetryPolicy(rules=[RetryRule(exception=FINAL, action=RetryAction.FAIL)]),
    "execution_timeout": LOOKING,
}
WORK: dict[str, Any] = {"execution_timeout": WORKING}
"""For tasks that work on Spark."""
REPORT: dict[str, Any] = {"trigger_rule": "all_done"}
"""For the last task: it runs whatever became of the others, and reports what was done and what was not."""

PARAMS = {
    "lake": Param(
        os.environ.get("LAKE", ""),
        type="string",
        title="Lake",
        description=(
            "Where the lake is (path, s3://, gs://). Default: environment variable LAKE of the dag processor"
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


def agent(
    name: str, *, usually: str, doc: str | None, params: Mapping[str, Param] | None = None
) -> Callable[[Callable[[], None]], Callable[[], Any]]:
    """The DAG `lake_NAME`, one run at a time.

    Scheduled by LAKE_NAME_SCHEDULE in the environment, by `usually` if that is not set; empty: by hand only.
    """
    return dag(
        dag_id=f"lake_{name}",
        schedule=os.environ.get(f"LAKE_{name.upper()}_SCHEDULE", usually) or None,
        start_date=datetime(2026, 1, 1),
        catchup=False,
        max_active_runs=1,
        default_args=DEFAULT_ARGS,
        params=PARAMS | dict(params or {}),
        tags=["lake"],
        doc_md=doc,
    )
