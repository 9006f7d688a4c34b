"""Where small work runs instead of on Spark: in the process of the caller, one unit after the other.

A JVM takes seconds to start.  A connection of Airflow may say up to how many bytes of work do without one
(`in_task_mib`, `airflow_lake.reach`); work on the lake's own pools needs none (`log_lake.agents.driver`).  Then the
agents are given an `InTask` in place of a session, and `workers` are then those of the process.  Memory stays that
of one unit at a time.
"""

from __future__ import annotations


class InTask:
    """Stands where a session would; only `workers` and `spread.parallelism` take it."""

    parallelism = 1
    """Units at a time."""
