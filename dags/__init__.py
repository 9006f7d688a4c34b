"""The agents as Airflow DAGs: each file puts one task group (`airflow_lake.groups`) into a DAG of its own."""
