"""The compact agent: merges pools in which many loads overlap, while loads go on.

    find (no Spark) -> run (mapped: a Spark job and its commits for each pool) -> report

Policy is the pool's: `compact.*` (see `lake show`).  A pool with nothing to compact costs a look at its journal.  A
run may be stopped and repeated at any point: every job is committed on its own, and never conflicts with a load.
One pool that fails does not hold back the others; the report names it.  Runs by schedule (LAKE_COMPACT_SCHEDULE,
default hourly at a quarter past), from the trigger form and from the command line:

    airflow dags trigger lake_compact --conf '{"pools": ["flights"], "dry_run": true}'
"""

from airflow_lake.groups import CompactGroup, agent_config, agent_dag

with agent_dag("compact", usually="15 * * * *", doc=__doc__):
    CompactGroup(agent_config("compact"), takes_params=True, prefix_group_id=False)
