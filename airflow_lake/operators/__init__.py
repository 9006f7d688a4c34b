"""Operators: one action on one pool, in one task of your own DAG.  One file an operator; `base` is shared.

They are thin: what becomes of records is decided in log_lake, and spread by spark_apps.  The agents, which look at
many pools, are task groups (`airflow_lake.groups`).
"""
