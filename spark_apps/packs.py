"""Carries out an agent's work on one Spark session: in a task of Airflow, or in a submitted application.

Callers: `airflow_lake.groups.tasks`, `spark_apps.command`, and `spark_apps.agent`, which stores the outcome in
the lake for the task.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from log_lake.agents import driver
from log_lake.agents.driver import Outcome
from spark_apps.session import OpenSpark, is_gone, one_session
from spark_apps.workers import on_spark


def carry_out(agent: str, all_work: Sequence[Any], *, open_spark: OpenSpark, **how: Any) -> Outcome:
    """Does an agent's work as `driver.carry_out` does, with one Spark session for all of it.  If the session's
    server goes away, the work ends."""
    outcome = Outcome()
    try:
        with one_session(open_spark) as spark:
            outcome = driver.carry_out(agent, all_work, open_workers=on_spark(spark), ends=is_gone, **how)
            Outcome((), outcome.failures).raise_failure()  # the session says whether its Spark is gone
    except Exception as error:
        others = [one for one in outcome.failures if one not in (error, error.__cause__)]
        return replace(outcome, failures=(error, *others))
    return outcome
