"""The tombstones agent: removes deleted records from the objects, and drops finished deletes.

    find (no Spark) -> run (mapped: searches and rewrites on Spark for each pool) -> report

The pool's settings `tombstones.*` decide when (see `lake show`).  Readers never wait for this: a delete takes
effect with its own transaction.  You may stop and repeat a run at any point; it conflicts with no load.  If one
pool fails, the agent still works on the others, and the report names it.  Runs by schedule
(LAKE_TOMBSTONES_SCHEDULE, default hourly at a quarter to), from the trigger form and from the command line:

    airflow dags trigger lake_tombstones --conf '{"pools": ["flights"], "dry_run": true}'
"""

from airflow_lake.groups import TombstonesGroup, agent_config, agent_dag

with agent_dag("tombstones", doc=__doc__):
    TombstonesGroup(agent_config("tombstones"), takes_params=True, prefix_group_id=False)
