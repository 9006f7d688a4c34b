"""What all agents have in common: how tasks are tried again, the trigger form, how a DAG is scheduled."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from airflow.sdk import ExceptionRetryPolicy, Param, RetryAction, RetryRule, dag

# trying again cannot help: somebody must mend the input or the lake
FINAL = [f"lake_core.errors.{name}" for name in ("InvalidInput", "NotFound", "Corrupt")]

DEFAULT_ARGS: dict[str, Any] = {
    "retries": 3,
    "retry_delay": timedelta(seconds=10),
    "retry_policy": ExceptionRetryPolicy(rules=[RetryRule(exception=FINAL, action=RetryAction.FAIL)]),
}

PARAMS = {
    "lake": Param(
        os.environ.get("LAKE", ""), type="string", title="Lake", description="URI of the lake; default: LAKE"
    ),
    "pools": Param(
        [],
        type="array",
        items={"type": "string"},
        title="Pools",
        description="None named: all that have work",
    ),
    "dry_run": Param(False, type="boolean", title="Dry run", description="Print the plan, change nothing"),
}


def agent(
    name: str, *, usually: str, doc: str | None, params: Mapping[str, Param] | None = None
) -> Callable[[Callable[[], None]], Callable[[], Any]]:
    """The DAG `lake_NAME`, one run at a time.

    Scheduled by LAKE_NAME_SCHEDULE in the environment, `usually` where that is not set; empty: by hand only.
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
