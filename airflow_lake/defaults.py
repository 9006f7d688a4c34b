"""What all tasks of the agents have in common: retries, time limits, and who goes first.

A task is tried again for about five minutes in all: an API server or a Spark server on a busy machine takes that
long to come up.  No task runs without a limit: one that looks at journals and source files may take `LOOKING`,
one that works on Spark LAKE_TASK_HOURS (default 6).

If tasks wait for a free slot, those that bring data go first (`PRIORITIES`).  Upkeep weighs as little as it can:
it waits for the user's own tasks too.  Weights order the tasks that wait; they end none that runs, so upkeep that
runs long may still hold all slots.  A pool of Airflow for upkeep bounds that (`LakeConfig.airflow_pool`).
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


def number(variable: str, usually: float) -> float:
    """What a variable of the environment says.  Raises ValueError: it must be a number from 1 to 10,000."""
    text = os.environ.get(variable, "")
    try:
        value = float(text) if text else usually
    except ValueError:
        value = 0.0
    if not 1 <= value <= 10_000:
        raise ValueError(f"{variable}={text!r}: must be a number from 1 to 10,000")
    return value


WORKING = timedelta(hours=number("LAKE_TASK_HOURS", 6))

DEFAULT_ARGS: dict[str, Any] = {
    "retries": 5,
    "retry_delay": timedelta(seconds=10),
    "retry_exponential_backoff": 2.0,
    "max_retry_delay": timedelta(minutes=3),
    "retry_policy": NO_RETRY,
    "execution_timeout": LOOKING,
}
LOADING_WEIGHT, DUE_WEIGHT, UPKEEP_WEIGHT = 10, 5, 1
"""Weights of tasks: readers wait for what is loaded, an erasure has a date, upkeep can wait (decision 113)."""
PRIORITIES = {
    "ingest": LOADING_WEIGHT,
    "intervals": LOADING_WEIGHT,
    "erasure": DUE_WEIGHT,
    "compact": UPKEEP_WEIGHT,
    "checkpoint": UPKEEP_WEIGHT,
    "tombstones": UPKEEP_WEIGHT,
    "retention": UPKEEP_WEIGHT,
}


def priority_args(agent: str) -> dict[str, Any]:
    """The weight of each task of an agent.  It is absolute: by default Airflow adds the weights of later tasks."""
    return {"priority_weight": PRIORITIES[agent], "weight_rule": "absolute"}


WORK: dict[str, Any] = {"execution_timeout": WORKING}
"""For tasks that work on Spark."""
ASKED: dict[str, Any] = {"trigger_rule": "all_success"}
"""For the tasks that ask a person and that do what was approved: no other rule of a DAG lets them run without."""
REPORT: dict[str, Any] = {"trigger_rule": "all_done"}
"""For the last task: it runs whatever became of the others, and reports what was done and what was not."""
