"""The agents as Airflow DAGs: topology only.  What a task does is in lake_core.maintenance and spark_apps."""
