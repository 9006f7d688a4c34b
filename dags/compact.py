"""The compact agent: merges pools in which many loads overlap, while loads go on.

    find (no Spark) -> run (mapped: a Spark job and its commits for each pool) -> report

Policy is the pool's: `compact.*` (see `lake show`).  A pool with nothing to compact costs a look at its journal.  A
run may be stopped and repeated at any point: every job is committed on its own, and never conflicts with a load.
One pool that fails does not hold back the others; the report names it.  Runs by schedule (LAKE_COMPACT_SCHEDULE,
default hourly at a quarter past), from the trigger form and from the command line:

    airflow dags trigger lake_compact --conf '{"pools": ["flights"], "dry_run": true}'
"""

from __future__ import annotations

from typing import Any

from airflow.sdk import task

from airflow_lake.defaults import REPORT, WORK, agent


@agent("compact", usually="15 * * * *", doc=__doc__)
def lake_compact() -> None:
    @task
    def find(params: dict[str, Any]) -> list[dict[str, Any]]:
        from lake_core.agents.compact import run as compact

        return compact.find(params)

    @task(map_index_template="{{ work['title'] }}", **WORK)
    def run(work: dict[str, Any]) -> dict[str, Any]:
        from spark_apps import compact

        return compact.run(work)

    @task(**REPORT)
    def report(all_work: list[dict[str, Any]] | None, results: list[dict[str, Any]] | None) -> dict[str, int]:
        from lake_core.agents.compact import report as compact

        return compact.report(all_work, list(results or []))

    all_work = find()
    report(all_work, run.expand(work=all_work))


lake_compact()
