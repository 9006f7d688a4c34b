"""The derive agent: keeps derived pools, which hold the answer of a query over another pool.

    find (no Spark) -> run (mapped: one pool each, reads what changes touched, commits) -> report

The pool's settings `derive.from` and `derive.query` define it; other pools are left alone.  Each step is one
transaction, so you may stop and repeat a run at any point.  Runs by schedule (LAKE_DERIVE_SCHEDULE, default every
ten minutes), from the trigger form and from the command line:

    airflow dags trigger lake_derive --conf '{"pools": ["hourly"], "dry_run": true}'
"""

from airflow_lake.groups import DeriveGroup, agent_config, agent_dag

with agent_dag("derive", doc=__doc__):
    DeriveGroup(agent_config("derive"), takes_params=True, prefix_group_id=False)
