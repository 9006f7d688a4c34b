"""A report begins when a pool is whole, and a deadline says if that takes too long: docs/coverage.md.

`visits_in` loads the file of each day.  `visits_report` waits until no day is lacking; six hours after it was
queued, Airflow calls `warn_of_gaps`, which logs what is lacking.

    lake create visits --key time --type time=timestamp --set intervals.since=2026-01-01
"""

import datetime as dt

from airflow.sdk import DAG, AsyncCallback, CronDataIntervalTimetable, DeadlineAlert, DeadlineReference

from airflow_lake.deadlines import warn_of_gaps
from airflow_lake.operators.query import LakeQueryOperator
from airflow_lake.operators.replace import LakeReplaceOperator
from airflow_lake.sensors.coverage import LakeCoverageSensor

FILES = "/data/visits"
DAILY = CronDataIntervalTimetable("@daily", "UTC")
FIRST = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
SIX_HOURS = DeadlineAlert(
    reference=DeadlineReference.DAGRUN_QUEUED_AT,
    interval=dt.timedelta(hours=6),
    callback=AsyncCallback(warn_of_gaps, kwargs={"pool": "visits"}),
)

with DAG("visits_in", schedule=DAILY, start_date=FIRST, catchup=True):
    LakeReplaceOperator(
        task_id="load",
        pool_name="visits",
        files=FILES + "/{{ data_interval_start | ds }}.ndjson",
        begin="{{ data_interval_start }}",
        end="{{ data_interval_end }}",
    )

with DAG("visits_report", schedule=DAILY, start_date=FIRST, deadline=SIX_HOURS):
    whole = LakeCoverageSensor(task_id="whole", pool_name="visits", until="{{ data_interval_end }}")
    report = LakeQueryOperator(task_id="report", sql='SELECT count(*) AS visits FROM "visits"')
    whole >> report
