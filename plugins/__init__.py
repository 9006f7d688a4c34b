"""Airflow's face of the lake: plugins of Airflow.  There are none yet; what DAGs share is in `airflow_lake`."""
