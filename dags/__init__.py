"""The agents as Airflow DAGs: topology only.

The tasks are the same in each: find -> run -> report.  What a task does is in lake_core.agents and spark_apps.
"""
