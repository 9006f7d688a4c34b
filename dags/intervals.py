"""The intervals agent: a run for an interval of time replaces exactly that interval of a pool, in one transaction.

    find (no Spark) -> run (mapped: a Spark job and a commit for each pool) -> report

Runs may be repeated, in any order, in parallel, killed and tried again: the pool ends as after one clean run of
each.  So a backfill loads months, or loads them again after a mistake:

    airflow backfill create --dag-id lake_intervals --from-date 2026-01-01 --to-date 2026-01-31 \\
        --reprocess-behavior completed --max-active-runs 8

A pool takes part when its setting `intervals.source` says where the files of an interval are, as in
`s3://incoming/flights/%Y-%m-%d/*.csv`, and its key begins with a time.  Schedule: LAKE_INTERVALS_SCHEDULE, a cron
line or a preset that cuts time into intervals (default daily, UTC).  A run that is triggered by hand has no
interval: it appends the files that it is given:

    airflow dags trigger lake_intervals --conf '{"pools": ["flights"], "files": ["/incoming/late.csv"]}'
"""

from __future__ import annotations

import os
from datetime import datetime
from typing import Any

from airflow.sdk import CronDataIntervalTimetable, Param, dag, task

from airflow_lake.defaults import DEFAULT_ARGS, PARAMS, REPORT, WORK

FILES = Param(
    [],
    type="array",
    items={"type": "string"},
    title="Files",
    description="Only for manual runs: files to append, one a line",
)
SCHEDULE = os.environ.get("LAKE_INTERVALS_SCHEDULE", "@daily")


@dag(
    dag_id="lake_intervals",
    schedule=CronDataIntervalTimetable(SCHEDULE, "UTC") if SCHEDULE else None,
    start_date=datetime(2000, 1, 1),
    catchup=False,
    default_args=DEFAULT_ARGS,
    params=PARAMS | {"files": FILES},
    tags=["lake"],
    doc_md=__doc__,
)
def lake_intervals() -> None:
    @task
    def find(params: dict[str, Any], dag_run: Any = None) -> list[dict[str, Any]]:
        from lake_core.agents.intervals import run as intervals

        by_hand = dag_run.run_type == "manual"  # Airflow gives such runs the last interval before them
        return intervals.find(
            params,
            begin=None if by_hand else dag_run.data_interval_start,
            end=None if by_hand else dag_run.data_interval_end,
            run=dag_run.run_id,
        )

    @task(map_index_template="{{ work['title'] }}", **WORK)
    def run(work: dict[str, Any]) -> dict[str, Any]:
        from spark_apps import intervals

        return intervals.run(work)

    @task(**REPORT)
    def report(all_work: list[dict[str, Any]] | None, results: list[dict[str, Any]] | None) -> dict[str, int]:
        from lake_core.agents.intervals import report as intervals

        return intervals.report(all_work, list(results or []))

    all_work = find()
    report(all_work, run.expand(work=all_work))


lake_intervals()
