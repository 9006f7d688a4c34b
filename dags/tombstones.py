"""The tombstones agent: removes deleted records from the objects in time, and drops finished deletes.

    find (no Spark) -> run (mapped: searches and rewrites on Spark for each pool) -> report

Policy is the pool's: `tombstones.*` (see `lake show`).  Reading never waits for this: a delete holds from its own
transaction on.  A run may be stopped and repeated at any point, and conflicts with no load.  One pool that fails
does not hold back the others; the report names it.  Runs by schedule (LAKE_TOMBSTONES_SCHEDULE, default hourly at a
quarter to), from the trigger form and from the command line:

    airflow dags trigger lake_tombstones --conf '{"pools": ["flights"], "dry_run": true}'
"""

from airflow_lake.groups import TombstonesGroup, agent_config, agent_dag

with agent_dag("tombstones", usually="45 * * * *", doc=__doc__):
    TombstonesGroup(agent_config("tombstones"), takes_params=True, prefix_group_id=False)
