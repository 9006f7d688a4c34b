"""The agents as Airflow DAGs: each file puts one task group (`airflow_lake.groups`) into its own DAG.

`apply` is not an agent: it makes the pools of a lake match a policy file.
"""
