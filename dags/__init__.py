"""The agents as Airflow DAGs: each file puts one task group (`airflow_lake.groups`) into a DAG of its own.

`apply` is no agent: it makes the pools of a lake as a policy file says.
"""
