"""What all agents have in common: how their tasks are tried again, and the parameters of the trigger form."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

from airflow.sdk import ExceptionRetryPolicy, Param, RetryAction, RetryRule

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
