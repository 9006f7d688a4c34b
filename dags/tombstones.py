"""The tombstones agent: what was deleted goes out of the objects within the pool's time, and deletes are forgotten.

    find (no Spark) -> apply (mapped: searches and rewrites on Spark for each pool) -> report

Policy is the pool's: `delete.*` (see `lake show`).  Reading never waits for this: a delete holds from its own
transaction on.  It may be stopped and run again at any point, and conflicts with no load.  Runs by schedule
(LAKE_TOMBSTONES_SCHEDULE, default hourly at a quarter to), from the trigger form and from the command line:

    airflow dags trigger lake_tombstones --conf '{"pools": ["flights"], "dry_run": true}'
"""

from __future__ import annotations

from typing import Any

from airflow.sdk import task

from dags.defaults import agent


@agent("tombstones", usually="45 * * * *", doc=__doc__)
def lake_tombstones() -> None:
    @task
    def find(params: dict[str, Any]) -> list[dict[str, Any]]:
        from lake_core.maintenance import tombstones

        return tombstones.find(params)

    @task(map_index_template="{{ work['pool'] }}")
    def apply(work: dict[str, Any]) -> dict[str, Any]:
        from spark_apps.apply_tombstones import apply_found

        return apply_found(work)

    @task(trigger_rule="none_failed")
    def report(results: list[dict[str, Any]] | None) -> dict[str, int]:
        from lake_core.maintenance import tombstones

        return tombstones.report(list(results or []))

    report(apply.expand(work=find()))


lake_tombstones()
