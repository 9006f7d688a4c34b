"""The retention agent: expires old records, and deletes objects that are not needed any more.

    find (no Spark) -> run (mapped: expire, scan for orphans, vacuum, purge, for each pool with work) -> report

Policy is the pool's: `expire.*`, `vacuum.grace`, `history.keep` (see `lake show`).  What expired can be had back
until the grace time is over.  A run may be stopped and repeated at any point, and conflicts with no load.  One pool
that fails does not hold back the others; the report names it.  A dry run logs the plan.  If LAKE_APPROVAL names
this agent, a person is asked before anything is deleted.  Runs by schedule
(LAKE_RETENTION_SCHEDULE, default daily at 3:15), from the trigger form and from the command line:

    airflow dags trigger lake_retention --conf '{"pools": ["flights"], "dry_run": true}'
"""

from airflow_lake.groups import RetentionGroup, agent_config, agent_dag

with agent_dag("retention", usually="15 3 * * *", doc=__doc__):
    RetentionGroup(agent_config("retention"), takes_params=True, prefix_group_id=False)
