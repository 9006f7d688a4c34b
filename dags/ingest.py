"""The ingest agent: landed files become transactions, each batch exactly once.

    find (no Spark) -> take in (mapped: a Spark job and a commit for each batch) -> report

A pool takes part when its setting `ingest.source` names a place; how files are gathered into batches is the
pool's policy too (`ingest.batch_*`).  It may be stopped and run again at any point: a batch is committed
under a token made of what it holds.  Between tasks go the names of files, never their records.  A task that
failed is tried again, unless its input is at fault.

Runs by schedule (LAKE_INGEST_SCHEDULE, a cron line or a preset; default every five minutes), from the trigger
form and from the command line:

    airflow dags trigger lake_ingest --conf '{"pools": ["flights"], "dry_run": true}'
"""

from __future__ import annotations

from typing import Any

from airflow.sdk import Param, task

from dags.defaults import agent

WAIT = Param(
    True,
    type="boolean",
    title="Let small batches wait",
    description="as the pool's ingest.batch_age says",
)


@agent("ingest", usually="*/5 * * * *", doc=__doc__, params={"wait": WAIT})
def lake_ingest() -> None:
    @task
    def find(params: dict[str, Any]) -> list[dict[str, Any]]:
        from lake_core.maintenance import ingest

        return ingest.find(params)

    @task(map_index_template="{{ batch['pool'] }}: {{ batch['files'] | length }} files")
    def take_in(batch: dict[str, Any]) -> dict[str, Any]:
        from spark_apps.ingest import take_in_batch

        return take_in_batch(batch)

    @task(trigger_rule="none_failed")
    def report(results: list[dict[str, Any]] | None) -> dict[str, int]:
        from lake_core.maintenance import ingest

        return ingest.report(list(results or []))

    report(take_in.expand(batch=find()))


lake_ingest()
