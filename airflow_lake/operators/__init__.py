"""Operators: one action on one pool, in one task of your own DAG.  Each operator has a file; `base` is shared.

They are thin: log_lake decides what happens to records, and spark_apps spreads the work.  The agents, which
work on many pools, are task groups (`airflow_lake.groups`).
"""
