"""Runs small work without Spark: in the process of the caller, one unit after the other.

A JVM takes seconds to start.  A connection of Airflow may allow work up to a number of bytes without one
(`in_task_mib`, `airflow_lake.reach`); work on the lake's own pools never needs one (`log_lake.agents.driver`).
Then the agents get an `InTask` in place of a session, and `workers` returns workers of this process.  Memory is
that of one unit at a time.
"""

from __future__ import annotations


class InTask:
    """Takes the place of a session; only `workers` and `spread.parallelism` accept it."""

    parallelism = 1
    """Units at a time."""
