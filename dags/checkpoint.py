"""The checkpoint agent: writes checkpoints of journals that have grown, and purges old entries.

    find (no Spark) -> run (one Spark job for all journals that need it) -> report

Policy is the pool's: `checkpoint.entries`, `checkpoint.age`, `history.keep`.  A run may be stopped and repeated at
any point.  One journal that fails does not hold back the others; the report names it.  Runs by schedule
(LAKE_CHECKPOINT_SCHEDULE, default hourly), from the trigger form and from the command line:

    airflow dags trigger lake_checkpoint --conf '{"pools": ["flights"], "dry_run": true}'
"""

from __future__ import annotations

from typing import Any

from airflow.sdk import task

from airflow_lake.defaults import REPORT, WORK, agent


@agent("checkpoint", usually="@hourly", doc=__doc__)
def lake_checkpoint() -> None:
    @task
    def find(params: dict[str, Any]) -> list[dict[str, Any]]:
        from lake_core.agents.checkpoint import run as checkpoint

        return checkpoint.find(params)

    @task.short_circuit
    def has_work(all_work: list[dict[str, Any]]) -> bool:
        return bool(all_work)

    @task(**WORK)
    def run(all_work: list[dict[str, Any]]) -> list[dict[str, Any]]:
        from spark_apps import checkpoint

        return checkpoint.run(all_work)

    @task(**REPORT)
    def report(all_work: list[dict[str, Any]] | None, results: list[dict[str, Any]] | None) -> dict[str, int]:
        from lake_core.agents.checkpoint import report as checkpoint

        return checkpoint.report(all_work, list(results or []))

    all_work = find()
    done = run(all_work)
    has_work(all_work) >> done
    report(all_work, done)


lake_checkpoint()
