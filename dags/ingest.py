"""The ingest agent: loads source files, each batch as one transaction, exactly once.

    find (no Spark) -> run (mapped: a Spark job and a commit for each batch) -> report

A pool takes part when its setting `ingest.source` names a place; how files are gathered into batches is the
pool's policy too (`ingest.batch_*`).  A run may be stopped and repeated at any point: a batch is committed
under a token made of its files.  Between tasks go the names of files, never their records.

A file that cannot be loaded does not hold back the others of its batch.  The agent parks it: the run that parks a
file fails at `report`, which names the file and the reason, and later runs pass it over until it changes.
`lake parked POOL` lists such files and releases them.

Runs by schedule (LAKE_INGEST_SCHEDULE, a cron line or a preset; default every five minutes), from the trigger
form and from the command line:

    airflow dags trigger lake_ingest --conf '{"pools": ["flights"], "dry_run": true}'
"""

from __future__ import annotations

from typing import Any

from airflow.sdk import Param, task

from airflow_lake.defaults import REPORT, WORK, agent

WAIT = Param(
    True,
    type="boolean",
    title="Wait for batches to fill",
    description="Let a batch that is not full wait for the pool's ingest.batch_age. Off: ingest everything now",
)


@agent("ingest", usually="*/5 * * * *", doc=__doc__, params={"wait": WAIT})
def lake_ingest() -> None:
    @task
    def find(params: dict[str, Any]) -> list[dict[str, Any]]:
        from lake_core.agents.ingest import run as ingest

        return ingest.find(params)

    @task(map_index_template="{{ batch['title'] }}", **WORK)
    def run(batch: dict[str, Any]) -> dict[str, Any]:
        from spark_apps import ingest

        return ingest.run(batch)

    @task(**REPORT)
    def report(
        all_work: list[dict[str, Any]] | None, results: list[dict[str, Any]] | None, params: dict[str, Any]
    ) -> dict[str, int]:
        from lake_core.agents.ingest import report as ingest

        return ingest.report(params, all_work, list(results or []))

    all_work = find()
    report(all_work, run.expand(batch=all_work))


lake_ingest()
