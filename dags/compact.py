"""The compaction agent: pools that many loads have left deep become shallow again, while loads go on.

    find (no Spark) -> compact (mapped: a Spark job and its commits for each pool) -> report

Policy is the pool's: `compact.*` (see `lake show`).  Pools with nothing to gain cost a look at their journal.  It
may be stopped and run again at any point: every job is committed on its own, and never conflicts with a load.  Runs
by schedule (LAKE_COMPACT_SCHEDULE, default hourly at a quarter past), from the trigger form and from the command
line:

    airflow dags trigger lake_compact --conf '{"pools": ["flights"], "dry_run": true}'
"""

from __future__ import annotations

from typing import Any

from airflow.sdk import task

from dags.defaults import agent


@agent("compact", usually="15 * * * *", doc=__doc__)
def lake_compact() -> None:
    @task
    def find(params: dict[str, Any]) -> list[dict[str, Any]]:
        from lake_core.maintenance import compact

        return compact.find(params)

    @task(map_index_template="{{ work['pool'] }}: {{ work['jobs'] | length }} jobs")
    def compact(work: dict[str, Any]) -> dict[str, Any]:
        from spark_apps.compact import compact_found

        return compact_found(work)

    @task(trigger_rule="none_failed")
    def report(results: list[dict[str, Any]] | None) -> dict[str, int]:
        from lake_core.maintenance import compact

        return compact.report(list(results or []))

    report(compact.expand(work=find()))


lake_compact()
