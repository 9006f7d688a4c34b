"""What all tasks of the agents have in common: retries and time limits.

A task is tried again for about five minutes in all: an API server or a Spark server on a busy machine takes that
long to come up.  No task runs without a limit: one that looks at journals and source files may take `LOOKING`,
one that works on Spark LAKE_TASK_HOURS (default 6).
"""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

from airflow.sdk import ExceptionRetryPolicy, RetryAction, RetryRule

# a retry cannot help: a person must mend the input or the lake
FINAL = [f"lake_core.errors.{name}" for name in ("InvalidInput", "NotFound", "Corrupt", "Incomplete")]
NO_RETRY = ExceptionRetryPolicy(rules=[RetryRule(exception=FINAL, action=RetryAction.FAIL)])
"""Fails a task at once for such an error; any other error is tried again as the task says."""

LOOKING = timedelta(minutes=30)
WORKING = timedelta(hours=float(os.environ.get("LAKE_TASK_HOURS") or 6))

DEFAULT_ARGS: dict[str, Any] = {
    "retries": 5,
    "retry_delay": timedelta(seconds=10),
    "retry_exponential_backoff": 2.0,
    "max_retry_delay": timedelta(minutes=3),
    "retry_policy": NO_RETRY,
    "execution_timeout": LOOKING,
}
WORK: dict[str, Any] = {"execution_timeout": WORKING}
"""For tasks that work on Spark."""
REPORT: dict[str, Any] = {"trigger_rule": "all_done"}
"""For the last task: it runs whatever became of the others, and reports what was done and what was not."""
