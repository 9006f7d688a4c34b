"""The retention agent: expires old records, and deletes objects that are not needed any more.

    find (no Spark) -> run (mapped: expire, scan for orphans, vacuum, purge, for each pool with work) -> report

Policy is the pool's: `expire.*`, `vacuum.grace`, `history.keep` (see `lake show`).  What expired can be had back
until the grace time is over.  A run may be stopped and repeated at any point, and conflicts with no load.  One pool
that fails does not hold back the others; the report names it.  A dry run logs the plan.  Runs by schedule
(LAKE_RETENTION_SCHEDULE, default daily at 3:15), from the trigger form and from the command line:

    airflow dags trigger lake_retention --conf '{"pools": ["flights"], "dry_run": true}'
"""

from __future__ import annotations

from typing import Any

from airflow.sdk import task

from airflow_lake.defaults import REPORT, WORK, agent


@agent("retention", usually="15 3 * * *", doc=__doc__)
def lake_retention() -> None:
    @task
    def find(params: dict[str, Any]) -> list[dict[str, Any]]:
        from lake_core.agents.retention import run as retention

        return retention.find(params)

    @task(map_index_template="{{ work['title'] }}", **WORK)
    def run(work: dict[str, Any]) -> dict[str, Any]:
        from spark_apps import retention

        return retention.run(work)

    @task(**REPORT)
    def report(all_work: list[dict[str, Any]] | None, results: list[dict[str, Any]] | None) -> dict[str, int]:
        from lake_core.agents.retention import report as retention

        return retention.report(all_work, list(results or []))

    all_work = find()
    report(all_work, run.expand(work=all_work))


lake_retention()
