"""Plugins of Airflow: the web view.  What DAGs share is in `airflow_lake`."""
