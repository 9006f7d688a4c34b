"""The retention agent: expires old records, and deletes objects that are no longer needed.

    find (no Spark) -> run (mapped: expire, scan for orphans, vacuum, purge, for each pool with work) -> report

The pool's settings `expire.*`, `vacuum.grace` and `history.keep` decide what is removed (see `lake show`).
Expired records can be restored until the grace time is over.  You may stop and repeat a run at any point; it
conflicts with no load.  If one pool fails, the agent still works on the others, and the report names it.  A dry
run logs the plan.  If LAKE_APPROVAL names this agent, a person must approve before it deletes anything.  Runs
by schedule (LAKE_RETENTION_SCHEDULE, default daily at 3:15), from the trigger form and from the command line:

    airflow dags trigger lake_retention --conf '{"pools": ["flights"], "dry_run": true}'
"""

from airflow_lake.groups import RetentionGroup, agent_config, agent_dag

with agent_dag("retention", doc=__doc__):
    RetentionGroup(agent_config("retention"), takes_params=True, prefix_group_id=False)
