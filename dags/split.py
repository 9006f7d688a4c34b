"""The split agent: splits ranges of keys that are too large, and joins those that are small.

    find (no Spark) -> run (mapped: reads key samples in footers, commits split points) -> report

The pool's settings `range.bytes` and `range.records` decide; without them the agent leaves a pool alone.  Split
points are layout: no answer depends on them, and nothing is rewritten.  You may stop and repeat a run at any
point.  Runs by schedule (LAKE_SPLIT_SCHEDULE, default hourly at five past), from the trigger form and from the
command line:

    airflow dags trigger lake_split --conf '{"pools": ["flights"], "dry_run": true}'
"""

from airflow_lake.groups import SplitGroup, agent_config, agent_dag

with agent_dag("split", doc=__doc__):
    SplitGroup(agent_config("split"), takes_params=True, prefix_group_id=False)
