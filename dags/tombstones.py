"""The tombstones agent: removes deleted records from the objects in time, and drops finished deletes.

    find (no Spark) -> run (mapped: searches and rewrites on Spark for each pool) -> report

Policy is the pool's: `tombstones.*` (see `lake show`).  Reading never waits for this: a delete holds from its own
transaction on.  A run may be stopped and repeated at any point, and conflicts with no load.  One pool that fails
does not hold back the others; the report names it.  Runs by schedule (LAKE_TOMBSTONES_SCHEDULE, default hourly at a
quarter to), from the trigger form and from the command line:

    airflow dags trigger lake_tombstones --conf '{"pools": ["flights"], "dry_run": true}'
"""

from __future__ import annotations

from typing import Any

from airflow.sdk import task

from airflow_lake.defaults import REPORT, WORK, agent


@agent("tombstones", usually="45 * * * *", doc=__doc__)
def lake_tombstones() -> None:
    @task
    def find(params: dict[str, Any]) -> list[dict[str, Any]]:
        from lake_core.agents.tombstones import run as tombstones

        return tombstones.find(params)

    @task(map_index_template="{{ work['title'] }}", **WORK)
    def run(work: dict[str, Any]) -> dict[str, Any]:
        from spark_apps import tombstones

        return tombstones.run(work)

    @task(**REPORT)
    def report(all_work: list[dict[str, Any]] | None, results: list[dict[str, Any]] | None) -> dict[str, int]:
        from lake_core.agents.tombstones import report as tombstones

        return tombstones.report(all_work, list(results or []))

    all_work = find()
    report(all_work, run.expand(work=all_work))


lake_tombstones()
