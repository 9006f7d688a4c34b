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

    airflow dags trigger lake_intervals --conf '{"pools": ["flights"], "files": ["s3://incoming/flights/late.csv"]}'
"""

from airflow_lake.groups import IntervalsGroup, agent_config, agent_dag

with agent_dag("intervals", doc=__doc__):
    IntervalsGroup(agent_config("intervals"), takes_params=True, prefix_group_id=False)
