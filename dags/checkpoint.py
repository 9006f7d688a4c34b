"""The checkpoint agent: writes checkpoints of journals that have grown, and purges old entries.

    find (no Spark) -> run (one Spark job for all journals that need it) -> report

Policy is the pool's: `checkpoint.entries`, `checkpoint.age`, `history.keep`.  A run may be stopped and repeated at
any point.  One journal that fails does not hold back the others; the report names it.  Runs by schedule
(LAKE_CHECKPOINT_SCHEDULE, default hourly), from the trigger form and from the command line:

    airflow dags trigger lake_checkpoint --conf '{"pools": ["flights"], "dry_run": true}'
"""

from airflow_lake.groups import CheckpointGroup, agent_config, agent_dag

with agent_dag("checkpoint", usually="@hourly", doc=__doc__):
    CheckpointGroup(agent_config("checkpoint"), takes_params=True, prefix_group_id=False)
