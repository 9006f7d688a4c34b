"""The index agent: makes the index objects that data objects lack.

    find (no Spark) -> run (mapped: one pool each, reads the indexed fields, writes index objects) -> report

Loads and compactions make the indexes of new objects.  This agent makes those of objects that are older than a
rule, and replaces indexes that were lost or damaged.  Pools without index rules are left alone.  It commits
nothing, so you may stop and repeat a run at any point.  Runs by schedule (LAKE_INDEX_SCHEDULE, default daily at
2:35), from the trigger form and from the command line:

    airflow dags trigger lake_index --conf '{"pools": ["flights"], "dry_run": true}'
"""

from airflow_lake.groups import IndexGroup, agent_config, agent_dag

with agent_dag("index", doc=__doc__):
    IndexGroup(agent_config("index"), takes_params=True, prefix_group_id=False)
