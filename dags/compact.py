"""The compact agent: merges pools in which many loads overlap, while loads continue.

    find (no Spark) -> run (mapped: a Spark job and its commits for each pool) -> report

The pool's settings `compact.*` decide what to merge (see `lake show`).  A pool with nothing to compact costs a
look at its journal.  You may stop and repeat a run at any point: every job commits on its own, and never
conflicts with a load.  If one pool fails, the agent still works on the others, and the report names it.  Runs by
schedule (LAKE_COMPACT_SCHEDULE, default hourly at a quarter past), from the trigger form and from the command
line:

    airflow dags trigger lake_compact --conf '{"pools": ["flights"], "dry_run": true}'
"""

from airflow_lake.groups import CompactGroup, agent_config, agent_dag

with agent_dag("compact", doc=__doc__):
    CompactGroup(agent_config("compact"), takes_params=True, prefix_group_id=False)
