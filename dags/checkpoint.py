"""The checkpoint agent: writes checkpoints of journals that have grown, and purges old entries.

    find (no Spark) -> run (one Spark job for all journals that need it) -> report

The pool's settings `checkpoint.entries`, `checkpoint.age` and `history.keep` decide when.  You may stop and
repeat a run at any point.  If one journal fails, the agent still works on the others, and the report names it.
Runs by schedule (LAKE_CHECKPOINT_SCHEDULE, default hourly), from the trigger form and from the command line:

    airflow dags trigger lake_checkpoint --conf '{"pools": ["flights"], "dry_run": true}'
"""

from airflow_lake.groups import CheckpointGroup, agent_config, agent_dag

with agent_dag("checkpoint", doc=__doc__):
    CheckpointGroup(agent_config("checkpoint"), takes_params=True, prefix_group_id=False)
