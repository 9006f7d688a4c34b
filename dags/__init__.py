"""The agents as Airflow DAGs: topology only.  What a task does is in lake_core.agents and spark_apps."""
