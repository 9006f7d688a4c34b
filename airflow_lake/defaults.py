"""The defaults of all tasks of the agents: retries, time limits and priorities.

A user's own values, in the `default_args` of a DAG or of a group, or in an operator, take precedence.

A task is tried again for about five minutes in all: an API server or a Spark server on a busy machine takes
that long to start.  A task `find` tries an unreachable lake twice (`OUTAGE_TRIES`).  No task runs without a
limit: one that reads journals and lists source files may take `LOOKING`, one that works on Spark
LAKE_TASK_HOURS (default 6).

If tasks wait for a free slot, those that bring data go first (`WEIGHTS`).  Upkeep has the smallest weight: it
waits for the user's own tasks too.  Weights only order waiting tasks; they end no running task, so upkeep that
runs long may still hold all slots.  A pool of Airflow for upkeep limits that (`LakeConfig.airflow_pool`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from airflow.sdk import ExceptionRetryPolicy, RetryAction, RetryDecision, RetryRule

from lake_core.errors import LakeError, Unavailable, kinds
from log_lake.agents.roster import AGENTS, Purpose

FINAL = [
    f"{kind.__module__}.{kind.__name__}" for kind in kinds() if kind is not LakeError and not kind.may_pass
]
"""Errors that a retry cannot cure: a person must correct the input or the lake."""
NO_RETRY = ExceptionRetryPolicy(
    rules=[RetryRule(exception=list(FINAL), action=RetryAction.FAIL, match_subclasses=False)]
)
"""Fails a task at once for such an error; for any other error the task's own retries apply."""

OUTAGE_TRIES = 2
"""Tries of a task `find` while the lake does not answer: each waits up to LAKE_STORE_TIMEOUT (60 s).

An agent has one run at a time, so a run that tries for nine minutes delays the runs after it; the next
scheduled run tries again anyway (decision 276).
"""


class FindRetryPolicy(ExceptionRetryPolicy):
    """A retry policy like `NO_RETRY`, except that an error of a lake that does not answer ends the task only after
    `OUTAGE_TRIES` tries."""

    def evaluate(
        self, exception: BaseException, try_number: int, max_tries: int, context: Any = None
    ) -> RetryDecision:
        """Returns what to do after an error; the worker calls it.

        Airflow also counts the tries before a clear, and raises `max_tries` to the tries so far plus the task's
        retries.  Here the tries before the clear do not count.
        """
        retries = max_tries if context is None else context["task"].retries
        tries = try_number - (max_tries - retries)
        if isinstance(exception, Unavailable) and tries >= OUTAGE_TRIES:
            return RetryDecision.fail(
                f"the lake did not answer in {tries} tries; the next run of the agent tries again"
            )
        return super().evaluate(exception, try_number, max_tries, context)


LOOKING = timedelta(minutes=30)


def number(variable: str, usually: float) -> float:
    """Returns the number in an environment variable, or `usually` if it is not set.  Raises ValueError unless it
    is from 1 to 10,000."""
    text = os.environ.get(variable, "")
    try:
        value = float(text) if text else usually
    except ValueError:
        value = 0.0
    if not 1 <= value <= 10_000:
        raise ValueError(f"{variable}={text!r}: must be a number from 1 to 10,000")
    return value


def count(variable: str, usually: int) -> int:
    """Returns a whole number as `number` does."""
    value = number(variable, usually)
    if value != int(value):
        raise ValueError(f"{variable}={os.environ[variable]!r}: must be a whole number from 1 to 10,000")
    return int(value)


WORKING = timedelta(hours=number("LAKE_TASK_HOURS", 6))

DEFAULT_ARGS: dict[str, Any] = {
    "retries": 5,
    "retry_delay": timedelta(seconds=10),
    "retry_exponential_backoff": 2.0,
    "max_retry_delay": timedelta(minutes=3),
    "retry_policy": NO_RETRY,
    "execution_timeout": LOOKING,
}
FIND: dict[str, Any] = {"retry_policy": FindRetryPolicy(rules=list(NO_RETRY.rules))}
"""For tasks that look for work: they need the lake, and no Spark."""
WEIGHT = frozenset({"priority_weight", "weight_rule"})
WEIGHTS = {Purpose.LOADING: 10, Purpose.DUE: 5, Purpose.UPKEEP: 1}
"""Weights of tasks: readers wait for loaded data, an erasure is due by a date, upkeep can wait (decision
113)."""


def priority_args(agent: str) -> dict[str, Any]:
    """Returns the weight of each task of an agent.  It is absolute; by default Airflow would add the weights of
    later tasks."""
    return {"priority_weight": WEIGHTS[AGENTS[agent].purpose], "weight_rule": "absolute"}


def unless_given(users_args: Mapping[str, Any], *ours: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the user's arguments, with these defaults for arguments that the user did not set.

    A weight and its rule belong together: either both defaults are used, or neither.
    """
    own: dict[str, Any] = {}
    for args in ours:
        if not (WEIGHT & args.keys() and WEIGHT & users_args.keys()):
            own |= args
    return {**own, **users_args}


WORK: dict[str, Any] = {"execution_timeout": WORKING}
"""For tasks that work on Spark."""
ASKED: dict[str, Any] = {"trigger_rule": "all_success"}
"""For the tasks that ask a person and that do the approved work: no other rule of a DAG lets them run without an
answer."""
NEXT: dict[str, Any] = {"trigger_rule": "all_done"}
"""For the tasks `run` of an agent that works after another one.  They are mapped: Airflow skips or fails them with
their `find`, whatever this rule says."""
REPORT: dict[str, Any] = {"trigger_rule": "all_done"}
"""For the last task: it runs however the others ended, and reports what was done and what was not."""
